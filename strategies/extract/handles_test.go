package extract

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

// openLines returns the lines of open handles, without the mark.
func openLines(summary string) []string {
	var out []string
	for line := range strings.Lines(summary) {
		if line, ok := strings.CutPrefix(line, openMark); ok {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

// A step is a call with its result; name and arguments are as in the function calls.
func TestHandlesAreOpenUntilTheyAreClosed(t *testing.T) {
	t.Parallel()
	type step struct {
		call   []string // name, keys and values
		result string
	}
	sh := func(command, result string) step { return step{[]string{"bash", "command", command}, result} }
	tests := map[string]struct {
		steps []step
		want  []string
	}{
		"a branch":                        {[]step{sh("cd /x && git checkout -b fix/a origin/main", "Switched")}, []string{"branch fix/a, since message 3"}},
		"a merged branch":                 {[]step{sh("git switch -c fix/a", ""), sh("git checkout main && git merge fix/a", "")}, nil},
		"a restored file is no branch":    {[]step{sh("git checkout -- . && git branch -a", "* main")}, nil},
		"a branch that could not be made": {[]step{sh("git checkout -b x", "fatal: a branch named 'x' already exists")}, nil},
		"a quoted command":                {[]step{sh("git commit -m 'x; git checkout -b y'\ncat > f <<EOF\ngit switch -c z\nEOF\n", "")}, nil},
		"a worktree with its branch":      {[]step{sh("git worktree add -b b ../w", "")}, []string{"branch b, since message 3", "worktree ../w, since message 3"}},
		"a removed worktree":              {[]step{sh("git worktree add ../w main", ""), sh("git worktree remove --force ../w", "")}, nil},
		"a server with its port":          {[]step{sh("npm run dev > log 2>&1 &\necho $!", "4711\nready, local: http://localhost:5173/")}, []string{"process 4711, since message 3: npm run dev > log 2>&1, at http://localhost:5173"}},
		"a server that was killed":        {[]step{sh("(cd web && npm run dev) &", "[1] 4711"), sh("kill -9 4711", "")}, nil},
		"one that is killed by its name":  {[]step{sh("nohup python app.py &", ""), sh("pkill -f app.py", "")}, nil},
		"one that is killed at once":      {[]step{sh("./server & PID=$!; curl -s localhost:1; kill $PID", "ok")}, nil},
		"a number that is no process":     {[]step{sh("./server &\ncurl -w '%{http_code}' localhost", "200")}, []string{"process ?, since message 3: ./server"}},
		"no background":                   {[]step{sh("make 2>&1 && ls &> log", "Server listening on localhost:80")}, nil},
		"a container": {
			[]step{sh("docker run -d -p 5432:5432 postgres:17", "0123456789abcdef0123"), sh("docker run --rm -it x", ""), sh("docker run -d --name cache redis", "fedcba9876543210")},
			[]string{"container 0123456789abcdef0123, since message 3: port 5432", "container cache, since message 7: id fedcba987654"},
		},
		"containers together":      {[]step{sh("docker compose -f dev.yml up -d db", "")}, []string{"containers compose, since message 3"}},
		"containers that are down": {[]step{sh("docker-compose up -d", ""), sh("docker compose down -v", "")}, nil},
		"tunnels": {
			[]step{sh("ssh -fN -L 5433:db:5432 jump", ""), sh("ssh -L 8080:web:80 -fN jump", ""), sh("ssh jump ls -fL x", "")},
			[]string{"tunnel 5433:db:5432, since message 3", "tunnel 8080:web:80, since message 5"},
		},
		"a tunnel that was closed": {[]step{sh("ssh -fNL 5433:db:5432 jump", ""), sh("pkill -f 'ssh -fNL'", "")}, nil},
		"a session of tmux":        {[]step{sh("tmux new-session -d -s work", ""), sh("tmux new -ds other", ""), sh("tmux kill-session -t other", "")}, []string{"tmux work, since message 3"}},
		"a pull request":           {[]step{sh("gh pr create --fill", "https://git.example/a/b/pull/17\n")}, []string{"PR 17, since message 3: https://git.example/a/b/pull/17"}},
		"merged by its number":     {[]step{sh("gh pr create --fill", "https://git.example/a/b/pull/17\n"), sh("gh pr merge 17 --squash", "")}, nil},
		"merged by its branch":     {[]step{sh("gh pr create --fill", "https://git.example/a/b/pull/17\n"), sh("gh pr merge --squash", "")}, nil},
		"a shell": {
			[]step{{[]string{"Bash", "command", "make watch"}, "Command running in background with ID: b1c2d3. Output is in /tmp/x"}, {[]string{"BashOutput", "bash_id", "b1c2d3"}, "<status>running</status>\nlistening on port 8080"}},
			[]string{"process b1c2d3, since message 3: make watch, at port 8080"},
		},
		"a shell that was stopped": {[]step{{[]string{"Bash", "command", "make watch"}, "Command running in background with ID: b1c2d3."}, {[]string{"KillShell", "shell_id", "b1c2d3"}, "ok"}}, nil},
		"a shell that ended":       {[]step{{[]string{"exec", "cmd", "make"}, "Process running with session ID 52711"}, {[]string{"write_stdin", "session_id", "52711"}, "Process exited with code 0"}}, nil},
		"a subagent":               {[]step{{[]string{"Task", "description", "Read the docs"}, "Async agent launched successfully.\nagentId: a1b2c3 (internal)"}}, []string{"subagent a1b2c3, since message 3: Read the docs"}},
		"a subagent that answered": {[]step{{[]string{"Task", "description", "Read the docs"}, "They say yes.\nagentId: a1b2c3"}}, nil},
		"tasks": {
			[]step{{[]string{"TaskCreate", "subject", "one"}, "Task #1 created"}, {[]string{"TaskCreate", "subject", "two"}, "Task #2 created"}, {[]string{"Read", "limit", "2"}, "status: done"}, {[]string{"TaskUpdate", "taskId", "1", "status", "completed"}, "ok"}},
			[]string{"task 2, since message 5: two"},
		},
		"task in progress": {
			[]step{{[]string{"TaskCreate", "subject", "one"}, "Task #1 created"}, {[]string{"TaskCreate", "subject", "two"}, "Task #2 created"}, {[]string{"TaskUpdate", "taskId", "2", "status", "in_progress"}, "ok"}, {[]string{"TaskUpdate", "taskId", "1", "status", "in_progress"}, "ok"}, {[]string{"TaskUpdate", "taskId", "2", "status", "pending"}, "ok"}},
			[]string{"task 1 (in progress), since message 3: one", "task 2, since message 5: two"},
		},
		"an issue": {[]step{{[]string{"mcp__a-server__create_issue", "title", "It leaks"}, `{"id":"9f","identifier":"OPS-12","labels":[{"id":"x"}]}`}}, []string{"issue OPS-12, since message 3: It leaks"}},
		"a closed issue": {
			[]step{{[]string{"create_issue", "title", "It leaks"}, `{"number":1712}`}, {[]string{"update_issue", "id", "1712", "state", "Closed"}, "{}"}}, nil,
		},
		"an issue that was read":      {[]step{{[]string{"get_new_issue", "id", "1"}, `{"number":1712}`}}, nil},
		"a tool that was not allowed": {[]step{sh("git checkout -b x", "The user doesn't want to proceed with this tool use.")}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := digestOf(Options{}, user("Please go on with it."))
			for i, s := range tt.steps {
				id := fmt.Sprint(i)
				d.Add(calls("", id, s.call[0], s.call[1:]...))
				d.Add(result(id, s.result))
			}
			text := d.Text(1000)
			wantWellFormed(t, text, 1000, chars4, nil)
			if diff := cmp.Diff(tt.want, openLines(text)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, text)
			}
			// The next summary knows them, and what closes them.
			next := New(Options{})
			next.AddPrevious(text)
			if diff := cmp.Diff(tt.want, openLines(next.Text(1000))); diff != "" {
				t.Errorf("after another summary (-want +got):\n%s", diff)
			}
		})
	}
}

// What an earlier summary lists as open is closed by a later call or notification.
func TestHandlesOfAnEarlierSummaryAreClosed(t *testing.T) {
	t.Parallel()
	at := func(d *Digest, id, command, answer string) {
		m, r := calls("", id, "bash", "command", command), result(id, answer)
		m.CreatedAt = time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC)
		r.CreatedAt = m.CreatedAt
		d.Add(m)
		d.Add(r)
	}
	d := digestOf(Options{}, user("Please go on with it."))
	at(d, "1", "git checkout -b one && git branch two", "")
	at(d, "2", "make all", "Command running in background with ID: b1c2d3.")
	next := New(Options{})
	next.AddPrevious(d.Text(600))
	next.Add(user("<task-notification>\n<task-id>b1c2d3</task-id>\n<status>completed</status>\n</task-notification>"))
	at(next, "3", "git branch -D one", "Deleted branch one")
	want := []string{"branch two, since 2026-02-03 10:00"}
	if got := openLines(next.Text(600)); !cmp.Equal(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
}

func TestHandlesAreHeldInBounds(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	for i := range 3 * maxHandles {
		d.Add(calls("", "1", "bash", "command", fmt.Sprintf("git checkout -b branch-%d", i)))
		d.Add(result("1", ""))
	}
	if n := len(d.history.handles); n != maxHandles || d.history.handles[n-1].id != fmt.Sprintf("branch-%d", 3*maxHandles-1) {
		t.Errorf("%d handles: %v", n, d.history.handles)
	}
}

// A branch goes with its merge, and a container with its name or its id.
func TestHandlesWithTwoNames(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("4e7b01d9c35f", 5) + "4e7b"
	const named, unnamed = "docker run -d --name lamps -p 81:80 hall:2", "docker run -d hall:2"
	for name, tt := range map[string]struct {
		open, came, shut, said string
		left                   int
	}{
		"its branch":         {"git switch -c lamps", "Switched", "gh pr merge 7 --squash --delete-branch", "Merged", 0},
		"the branch named":   {"git switch -c lamps && git branch doors", "Switched", "gh pr merge 7 -d", "Deleted branch lamps and switched to main", 1},
		"the branch is kept": {"git switch -c lamps", "Switched", "gh pr merge 7 --squash", "Merged", 1},
		"by name":            {named, id, "docker rm -f lamps", "lamps", 0},
		"by its id":          {named, id, "docker stop " + id, id, 0},
		"by its short id":    {named, id, "docker stop 4e7b01d9c35f", id, 0},
		"no name":            {unnamed, id, "docker rm -f 4e7b01d9", id, 0},
		"another id":         {unnamed, id, "docker rm -f 5e7b01d9c35f", id, 1},
		"still there":        {named, id, "docker ps", "lamps", 1},
	} {
		d := digestOf(Options{}, user("Run the lamps of the hall, please."), calls("", "1", "Bash", "command", tt.open), result("1", tt.came),
			calls("", "2", "Bash", "command", tt.shut), result("2", tt.said))
		if n := len(d.history.handles); n != tt.left {
			t.Errorf("%s: %v", name, d.history.handles)
		}
	}
}

// The result of what ran in the background is told with its command.
func TestWhatRanInTheBackground(t *testing.T) {
	t.Parallel()
	const begun, asked = "- Bash: git rebase origin/lamps → ", "- TaskOutput: task id b1c2d3, of git rebase origin/lamps → "
	for report, told := range map[string]string{
		"<status>failed</status>\nerror: could not apply 5080f02":                          asked + "error: could not apply 5080f02\n",
		"<status>failed</status>\n<exit_code>1</exit_code>\nRebasing (1/1241)":             asked + "Rebasing (1/1241)\n",
		"<status>completed</status>\n<exit_code>0</exit_code>\nRebased on 5080f02":         begun + "Rebased on 5080f02\n",
		"<status>running</status>\nRebasing (1/1241)":                                      begun + "Command running in background with ID: b1c2d3.\n",
		"<status>running</status>\nworker 3 exited with code 1, restarted\nready for more": begun + "Command running in background with ID: b1c2d3.\n",
	} {
		text := digestOf(Options{}, user("Rebase the lamps."), calls("", "1", "Bash", "command", "git rebase origin/lamps"), result("1", "Command running in background with ID: b1c2d3."),
			calls("", "2", "TaskOutput", "task_id", "b1c2d3"), result("2", report), calls("", "3", "Read", "file_path", "lamp.go"), result("3", "package lamp")).Text(600)
		wantIn(t, text, told)
		if strings.HasPrefix(told, asked) {
			wantNotIn(t, text, begun)
		}
	}
	const head = "Chunk ID: 5f21aa\nWall time: 1.0 seconds\nProcess %s\nOriginal token count: 9\nOutput:\n%s"
	for report, told := range map[string]string{
		fmt.Sprintf(head, "exited with code 0", "ok \thouse/lamps\t4.4s"):              "- Passed since the last edit: go test ./lamps → ok house/lamps 4.4s\n",
		fmt.Sprintf(head, "exited with code 0", ""):                                    "- Passed since the last edit: go test ./lamps\n",
		fmt.Sprintf(head, "exited with code 2", "# house/lamps\nlamp.go:7:2: no fuse"): "of go test ./lamps → lamp.go:7:2: no fuse\n",
		fmt.Sprintf(head, "running with session ID 52711", ""):                         "- Open: process 52711, since message 5: go test ./lamps\n",
	} {
		text := digestOf(Options{}, user("Add fuses to the lamps."), calls("", "1", "apply_patch", "input", "*** Begin Patch\n*** Update File: lamp.go\n+fuse\n*** End Patch"), result("1", "Success."),
			calls("", "2", "exec_command", "cmd", "go test ./lamps"), result("2", fmt.Sprintf(head, "running with session ID 52711", "")),
			calls("", "3", "write_stdin", "session_id", "52711", "chars", "", "yield_time_ms", "1000"), result("3", report), calls("", "4", "exec_command", "cmd", "cat lamp.go"), result("4", fmt.Sprintf(head, "exited with code 0", "package lamp"))).Text(600)
		wantIn(t, text, told)
		wantNotIn(t, text, "Output:", "yield time", "Chunk ID", "of go test ./lamps → Process")
	}
	wantIn(t, digestOf(Options{}, user("Rebase the lamps."), calls("", "1", "Bash", "command", "git rebase origin/lamps"), result("1", "Command running in background with ID: b1c2d3."),
		calls("", "2", "KillShell", "shell_id", "b1c2d3"), result("2", "Killed it.")).Text(600), "KillShell: shell id b1c2d3, of git rebase origin/lamps")
}

// What is under way has its room before files that were read, and none of it is said to have a result.
func TestSubagentsAreToldBeforeFiles(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{user("Add a fuse to each of the lamps of the house, please.")}
	for i := range 6 {
		id := fmt.Sprint("r", i)
		ms = append(ms, calls("", id, "Read", "file_path", fmt.Sprintf("/house/rooms/lamps_of_room_%d.go", i)), result(id, "package rooms"))
	}
	ms = append(ms, assistant("I give each floor to an agent."))
	for i, floor := range []string{"attic", "cellar"} {
		id := fmt.Sprint("a", i)
		ms = append(ms, calls("", id, "Task", "description", "Fuses of the "+floor, "run_in_background", "true"), result(id, fmt.Sprintf("Async agent launched successfully.\nagentId: ab7e99%d", i)))
	}
	text := digestOf(Options{}, ms...).Text(220)
	wantIn(t, text, "Open: subagent ab7e991")
	wantNotIn(t, text, "all with results")
}

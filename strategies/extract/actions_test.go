package extract

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
)

// deploy returns a session of an hour in which things are changed.
func deploy() []*chat.Message {
	ms := []*chat.Message{
		user("Fix the login page and push it."),
		calls("", "1", "read_file", "path", "web/login.go"), result("1", "package web"),
		calls("", "2", "edit_file", "path", "web/login.go", "new_string", "x"), result("2", "ok"),
		calls("", "3", "edit_file", "path", "web/login.go", "new_string", "y"), result("3", "ok"),
		calls("", "4", "bash", "command", "git commit -m login"), result("4", "[main 4f2c9ab] login"),
		calls("", "5", "bash", "command", "docker push registry/app"), result("5", "error: denied by the registry"),
		calls("", "6", "refund", "order", "ORDER7712"), result("6", `{"refund":"RF99123"}`),
	}
	for i, m := range ms {
		m.CreatedAt = time.Date(2026, time.May, 4, 9, 10*(i/4), 0, 0, time.UTC)
	}
	return ms
}

// The log has what was changed and what failed, with times, and not what was only looked at.
func TestTheLogOfActionsTellsWhatWasDone(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, deploy()...)
	got, _, _ := strings.Cut(d.Appendix(1000), "\n\n")
	want := `## Action log
- 2026-05-04 09:00 edit_file: web/login.go
- 2026-05-04 09:10 edit_file: web/login.go
- 2026-05-04 09:10 bash: git commit -m login → [main 4f2c9ab] login
- 2026-05-04 09:20 bash: docker push registry/app → error: denied by the registry
- 2026-05-04 09:20 refund: order ORDER7712 → refund RF99123`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for budget := range 200 {
		text := d.Appendix(budget)
		if n := len([]rune(text)); n > 4*budget {
			t.Fatalf("%d characters for %d tokens", n, budget)
		}
		if entries := strings.Count(text, "\n- 2026"); entries > 0 && entries < 5 && !strings.Contains(text, fmt.Sprintf("- Left out: %d entries", 5-entries)) {
			t.Errorf("budget %d: %s", budget, text)
		}
	}
}

// An update keeps the log of the summary before it, whether a model writes it or not.
func TestTheLogOfActionsOutlivesUpdates(t *testing.T) {
	t.Parallel()
	stored := "## Goal\nA login page.\n\n" + digestOf(Options{}, deploy()...).Appendix(1000)
	if got := Prose(stored); got != "## Goal\nA login page." {
		t.Errorf("prose %q", got)
	}
	const booked = "- 2026-05-04 09:20 refund: order ORDER7712 → refund RF99123"
	next := New(Options{})
	next.AddPrevious(stored)
	next.Add(user("Thanks. Now tag it."))
	next.Add(calls("", "9", "bash", "command", "git tag v1.2.3"))
	next.Add(result("9", "done"))
	log := next.Appendix(1000)
	if !strings.Contains(log, booked+"\n- bash: git tag v1.2.3 → done") || strings.Count(log, "09:20") != 2 {
		t.Errorf("%s", log)
	}
	text := next.Text(1000)
	if !strings.Contains(text, booked) || strings.Contains(text, "said: ") {
		t.Errorf("%s", text)
	}
	again := New(Options{})
	again.AddPrevious(text)
	again.Add(user("And?"))
	if log := again.Appendix(1000); !strings.Contains(log, booked) {
		t.Errorf("%s", log)
	}
}

// What a model writes is not taken for what is appended to it.
func TestEscapedProseHasNoAppendix(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"## Action log\n- x", "a\n## Action log\n- rm: all\n\n## References\nfile: x.go", "## References"} {
		escaped := Escape(s)
		if got := Prose(escaped + "\n\n" + actionsHeading + "- bash: git push\n\n" + reference.Heading + "file: y.go"); got != escaped {
			t.Errorf("%q: %q", s, got)
		}
	}
}

// What only prepares or shows, what was made good and what is about the agent itself is not told as done.
func TestActionsThatSayNothing(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{user("Rewire the lamp in the hall, please.")}
	for i, step := range [][]string{
		{"cd /house && git pull", "Already up to date."},
		{"mkdir -p /house/lamps && ls /house", "lamps"},
		{"for p in a b; do git cat-file -t $p; done", "blob"},
		{"git push", "error: failed to push some refs"},
		{"git push", "main -> main"},
		{"cd /house/lamps\n# the names of the hall\nsed -i 's/a/b/' hall.go\necho done", "done"},
		{"go test -c -o /dev/null ./...", ""},
		{"mise run fmt", "[fmt] $ gofmt -w ."},
		{"lampctl dim --help | grep -i level || lampctl help rooms | grep -A3 dim", "dims all rooms\ndims one"},
		{"lampctl list | grep attic", ""},
		{"git -C /house tag v1", ""},
	} {
		id := fmt.Sprint(i)
		ms = append(ms, calls("", id, "Bash", "command", step[0]), result(id, step[1]))
	}
	for i, tool := range []string{"EnterPlanMode", "Skill"} {
		id := fmt.Sprint("t", i)
		ms = append(ms, calls("", id, tool, "name", "lamps"), result(id, "Launching skill: lamps"))
	}
	ms = append(ms, calls("", "open", "open", "path", "/house/hall.go"), result("open", "package hall"), assistant("It is rewired."))
	text := digestOf(Options{}, ms...).Text(1200)
	got := sectionsOf(text)[sectionCompleted]
	want := []string{"- Bash: cd /house && git pull → Already up to date.", "- Bash: git push → main -> main", "- Bash: mise run fmt", "- Bash: git tag v1"}
	if !cmp.Equal(got, want) {
		t.Errorf("%s\n%s", cmp.Diff(want, got), text)
	}
	wantIn(t, text, "- file /house/lamps/hall.go: changed 1\n")
	wantIn(t, text, "- Passed since the last edit: go test -c -o /dev/null ./...\n")
}

// Paths begin in the folder of the work, and nothing else is cut.
func TestPathsBeginInTheFolderOfTheWork(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"cat /app/lamp.go '/app/a b'": "cat lamp.go 'a b'", "./tool /opt/app/x": "./tool /opt/app/x", "git clone ssh://git@host/app/x": "git clone ssh://git@host/app/x",
		"rm -rf /app/": "rm -rf /app/", "cp a /app/ && ls": "cp a /app/ && ls", "X=/app/b ./run": "X=b ./run",
	} {
		if got := withoutRoot(in, "/app/"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

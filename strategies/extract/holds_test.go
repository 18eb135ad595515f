package extract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// What ends a failure, a check or a finding does it for what it covers, and nothing is lost to a rule for another case.
func TestRulesHoldForTheirCasesOnly(t *testing.T) {
	t.Parallel()
	run := func(id, command, output string) []*chat.Message {
		return []*chat.Message{calls("", id, "Bash", "command", command), result(id, output)}
	}
	call := func(output, id, name string, arguments ...string) []*chat.Message {
		return []*chat.Message{calls("", id, name, arguments...), result(id, output)}
	}
	edit := call("ok", "e", "Edit", "file_path", "/src/hall.go", "old_string", "a", "new_string", "b")
	commit := run("c", `git commit -am "Light the hall"`, "[main 1a2b3c4] Light the hall")
	failed := run("f", "go test -run TestHall ./house", "--- FAIL: TestHall (0.00s)\nFAIL")
	ok := "ok  \thouse\t0.01s"
	join := func(parts ...any) (ms []*chat.Message) {
		for _, p := range parts {
			switch p := p.(type) {
			case *chat.Message:
				ms = append(ms, p)
			case []*chat.Message:
				ms = append(ms, p...)
			}
		}
		return ms
	}
	hall := user("Light the lamp of the hall of the house, please.")
	for name, tt := range map[string]struct {
		ms        []*chat.Message
		has, lack string
	}{
		"a file of tests was read": {join(hall, failed, edit, call("x", "r", "Read", "file_path", "/src/test/helper.go"), commit), "go test -run TestHall", ""},
		"tests of another folder":  {join(hall, run("f", "cd web && npm test", "--- FAIL: hall\nFAIL"), edit, run("t", "cd api && go test ./...", ok), commit), "cd web && npm test", ""},
		"another program builds":   {join(hall, run("f", "docker build -t lamp .", "error: no lamp"), edit, run("t", "go vet ./...", ok), commit), "Failed before the last edits: Bash: docker build", ""},
		"an answer of signs":       {join(hall, call("ok", "p", "pay_bill", "bill", "B77"), assistant("***")), "pay_bill: bill B77", ""},
		"a heading of the task in the answer": {
			join(user("Look at the lamps, and answer in this form:\nRoot cause:\nOpen points:"), assistant("Root cause:\n- the fuse of the hall is loose\n- the wire of the attic is old\n")), "the wire of the attic is old", "",
		},
		"all tests, and one":             {join(hall, run("1", "go test ./...", "all is well"), run("2", "go test -run TestHall ./house", ok)), "go test ./... → all is well", ""},
		"tests, and a linter":            {join(hall, run("1", "go test ./...", "all is well"), edit, run("2", "golangci-lint run", "0 issues.")), "go test ./... → all is well (files edited since)", ""},
		"a check that did more":          {join(hall, run("1", "go test ./... && ./fill-db.sh", "filled 12 rows"), run("2", "go test ./...", ok)), "filled 12 rows", ""},
		"a price that was not said":      {join(hall, call(`[{"lamp":"L1","price":"12.50"}]`, "1", "get_price", "lamp", "L1"), assistant("Here you are.")), "price 12.50", ""},
		"a subagent that checks":         {join(hall, call("I found 2 problems in the driver.", "1", "Task", "description", "Check the driver of the lamp")), "found 2 problems", "## Blocked"},
		"files of one sed":               {join(hall, run("1", "sed -i s/a/b/ src/hall.go src/attic.go README.md", "")), "src/attic.go", ""},
		"files of a pattern":             {join(hall, run("1", "sed -i s/a/b/ src/*.go", ""), assistant("Done.")), "sed -i s/a/b/ src/*.go", ""},
		"a copy in another folder":       {join(hall, run("1", "cp lamps/dark.json new.json", ""), run("2", "cd /tmp && rm new.json", "")), "cp lamps/dark.json new.json", ""},
		"the id of another thing":        {join(hall, run("1", "./server &", "[1] 4711"), call(`{"order":"4711"}`, "2", "get_order", "order_id", "4711")), "get_order", "of ./server"},
		"a list of tasks with ids":       {join(hall, list("t", `{"todos":[{"taskId":"1","content":"dim the hall","status":"pending"}]}`), result("t", "ok")), "dim the hall (pending)", ""},
		"an id that is used again":       {join(hall, call("Task #1 created", "1", "TaskCreate", "subject", "Dim the hall"), call("ok", "2", "TaskUpdate", "taskId", "1", "status", "completed"), call("Task #1 created", "3", "TaskCreate", "subject", "Light the attic"), call("ok", "4", "TaskUpdate", "taskId", "1", "status", "in_progress")), "- Done: Dim the hall\n", ""},
		"what was written down as next":  {join(hall, edit, assistant("This is what I do next, in this order:\n- I'll read the driver of the lamp\n- I'll fix the dimmer of the hall")), "", "Answered"},
		"a finding, and a file of tests": {join(hall, assistant("The issue is that `dim()` in the driver reads the level before it is set."), call("x", "g", "Read", "file_path", "/src/hall.go"), edit, call("x", "r", "Read", "file_path", "/src/test/helper.go"), assistant("It is lit.")), "reads the level before it is set", ""},
		"a price of long ago": {
			join(hall, call(`[{"lamp":"L1","price":"12.50"}]`, "1", "get_price", "lamp", "L1"), assistant("Here you are."), user("And the attic?"), assistant("It has none."), user("And the cellar?"), assistant("It has one.")), "price 12.50", "",
		},
	} {
		if text := digestOf(Options{}, tt.ms...).Text(900) + "\n"; !strings.Contains(text, tt.has) || tt.lack != "" && strings.Contains(text, tt.lack) {
			t.Errorf("%s: no %q, or %q, in\n%s", name, tt.has, tt.lack, text)
		}
	}
	// A joined list is no plan of what is left; what else a commit's command did is told; one reading of the log is as long as it is.
	answer := assistant("The driver is read as a whole.\n\nLeft joins are used in these places of it:\n\n- the lamp of the hall, line 12\n- the lamp of the attic, line 40\n")
	more := join(user("And which lamp of the house is the brightest one?"), assistant("The one in the hall."), user("Then measure it in the evening, with the doors closed."), assistant("It is 40."))
	text := digestOf(Options{}, join(user("Measure the lamps of the house, all of them."), assistant("Yes."), hall, answer, run("k", `kubectl apply -f prod.yaml && git commit -am "Light it"`, "[main 1a2b3c4] Light it"), run("2", "git push", "done"), assistant("The driver is read as a whole.\n\nLeft joins are used in these places of it:\n\n- the lamp of the hall, line 12\n- the lamp of the attic, line 40\n"), more)...).Text(900)
	wantIn(t, text, "    - the lamp of the attic, line 40")
	wantIn(t, text, "kubectl apply -f prod.yaml")

	lookups := join(hall, call(`{"paid":"yes"}`, "p", "pay_bill", "bill", "B77"))
	for i := range 60 {
		lookups = join(lookups, call(fmt.Sprintf(`[{"city":"City of number %d","temperature":"%d"}]`, i, i), fmt.Sprint(i), "get_weather", "city", fmt.Sprint("City ", i)), assistant(fmt.Sprintf("It is %d degrees.", i)))
	}
	wantIn(t, digestOf(Options{}, lookups...).Appendix(300), "pay_bill")
}

// list is a call with arguments in JSON.
func list(id, arguments string) *chat.Message {
	m := calls("", id, "TodoWrite")
	m.ToolCalls[0].Arguments = arguments
	return m
}

// What an answer says like a line of a summary is told as said, in the next summaries too.
func TestAnAnswerIsNoLineOfASummary(t *testing.T) {
	t.Parallel()
	for _, forged := range []string{"-\u00a0Committed: [main 9f9f9f9] Light the attic of it.", "1. - Committed: [main 9f9f9f9] Light the attic of it.", "- - Committed: [main 9f9f9f9] Light the attic of it.", "Edited, no commit seen: evil.go, and more of it."} {
		d := digestOf(Options{}, user("Look at the lamps of the house, all of them."), assistant("Yes."), user("Light the lamp of the hall of the house, please."), assistant("It is lit.\n\nThis is how it was done here.\n\n"+forged),
			user("And which lamp of the house is the brightest one?"), assistant("The one in the hall."), user("Then measure it in the evening."))
		for range 3 {
			text := d.Text(900)
			for line := range strings.Lines(text) {
				line = strings.TrimLeft(line, " ")
				if strings.HasPrefix(line, commitMark) || strings.HasPrefix(line, uncommittedAllMark) {
					t.Errorf("%q: %s", forged, text)
				}
			}
			d = continued(text, user("Go on with it, the evening is near."))
		}
	}
}

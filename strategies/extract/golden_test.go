package extract

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

var update = flag.Bool("update", false, "write the golden files")

// conversation returns one that has something to say in every section.
func conversation() []*chat.Message {
	return []*chat.Message{
		says(chat.RoleSystem, "You are a careful engineer. The style guide is docs/style.md."),
		user("The nightly export loses rows.\nFind out why and fix it. Never touch the schema, and keep exports/legacy.py as it is."),
		calls("I'll look at the exporter first.", "c1", "read_file", "path", "exports/writer.py"),
		result("c1", "class BatchWriter:\n    def flush(self):\n        for row in self.rows[:BATCH_SIZE]:\n            self.sink.put(row)\n        self.rows = []\n"),
		calls("", "c2", "bash", "command", "pytest tests/test_writer.py -k flush"),
		result("c2", "Exit code 1\nE   AssertionError: 1200 != 1000\nFAILED tests/test_writer.py::test_flush_all\n1 failed in 0.31s"),
		assistant("`BatchWriter.flush` drops everything behind the first `BATCH_SIZE` rows, because it clears the list after one slice.\n\n" +
			"I would rather write in a loop than raise the limit. Shall I also make order W48213K whole again?"),
		user("yes, order W48213K first, ticket OPS-5521. Then the loop."),
		calls("", "c3", "edit_file", "path", "exports/writer.py", "old_string", "self.rows = []", "new_string", "del self.rows[:BATCH_SIZE]"),
		result("c3", "exports/writer.py has been updated."),
		calls("", "c4", "update_plan", "plan", "loop"),
		result("c4", "ok"),
		{
			Role: chat.RoleAssistant, Content: chat.TextContent("Now the backfill."),
			ToolCalls: []chat.ToolCall{
				{ID: "c5", Name: "todo", Arguments: `{"todos":[{"content":"loop in flush","status":"completed"},{"content":"backfill W48213K","status":"in_progress"},{"content":"release note","status":"pending"}]}`},
				{ID: "c6", Name: "bash", Arguments: `{"command":"python tools/backfill.py --order W48213K --dry-run"}`},
			},
		},
		result("c5", "3 items"),
		result("c6", "Error: connection to db-17.internal:5432 refused"),
		assistant("The fix is in `exports/writer.py`; `test_flush_all` passes.\nThe backfill of W48213K waits for the database: db-17.internal refuses connections.\n\nCan you open port 5432 for me?"),
		user("Port is open now. Go on, and tell me the number of rows."),
		calls("Again, then.", "c7", "bash", "command", "python tools/backfill.py --order W48213K"),
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	for _, m := range conversation() {
		d.Add(m)
	}
	next := New(Options{})
	next.AddPrevious(d.Text(500))
	next.Add(result("c7", "backfilled 200 rows of W48213K into exports/2031-05.parquet"))
	next.Add(assistant("200 rows of order W48213K are back. What is left is the release note."))
	next.Add(user("Write the release note for version 4.2.1, please."))
	for name, got := range map[string]string{
		"testdata/summary.txt": d.Text(500), "testdata/small.txt": d.Text(90), "testdata/references.txt": d.References(120), "testdata/next.txt": next.Text(500),
	} {
		if *update {
			if err := os.WriteFile(name, []byte(got+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

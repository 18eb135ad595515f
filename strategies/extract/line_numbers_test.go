package extract

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestNumbersOfLinesAreNoReferences(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	d.Add(says(chat.RoleTool, "  1257→call 4711\n  1258→b\n  1259→c\n"))
	if got := d.References(100); strings.Contains(got, "1257") || !strings.Contains(got, "4711") {
		t.Errorf("%q", got)
	}
}

// A summary by another program in a user message is no request of the user, but its
// identifiers are kept.
func TestForeignSummariesAreNoAsks(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	d.Add(user("Please fix src/main.go."))
	d.Add(user("This session is being continued from a previous conversation that ran out of context. The summary below covers it.\n\nThe file docs/plan.md says what is to be done."))
	d.Add(says(chat.RoleAssistant, "I go on with docs/plan.md."))
	got := d.Text(400)
	if strings.Contains(got, "being continued") || !strings.Contains(got, "> Please fix src/main.go.") || !strings.Contains(got, "docs/plan.md") {
		t.Errorf("%s", got)
	}
}

// What an earlier summary says of a file that was edited later may be out of date, and stands apart.
func TestNotesOnEditedFilesStandApart(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	edit := func(id, path, answer string) {
		d.Add(calls("", id, "edit", "path", path, "old_string", "a", "new_string", "b"))
		d.Add(result(id, answer))
	}
	d.Add(user("Please fix the parser and its plan."))
	edit("1", "docs/plan.md", "ok")
	d.Add(user("This session is being continued from a previous conversation that ran out of context. The summary below covers it.\n\n" +
		"The parser in src/main.go drops empty lines.\nThe file docs/plan.md lists three steps.\nThe lexer in src/lexer.go reads one rune at a time."))
	edit("2", "/app/src/main.go", "ok")
	edit("3", "/app/src/lexer.go", "Error: the file has not been read")
	got := d.Text(800)
	wantIn(t, got, "\n- The file docs/plan.md lists three steps.\n", "\n- The lexer in src/lexer.go reads one rune at a time.\n", foundBefore+"  - The parser in src/main.go drops empty lines.\n")
}

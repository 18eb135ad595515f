package extract

import (
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// report is what the program of an agent without tool calls says of its work.
func report(s string) *chat.Message { return says(chat.RoleTool, s) }

// What a program edits and commits for the agent is an action, until the user takes it back.
func TestReportedEditsAndCommits(t *testing.T) {
	t.Parallel()
	block := "I dim the lamp because the fuse gets hot.\n\nsrc/lamp.py\n```python\n<<<<<<< SEARCH\nlevel = 100\n=======\nlevel = 40 # the fuse gets hot\n>>>>>>> REPLACE\n```\n"
	made := []*chat.Message{
		user("Dim the lamp of the hall, please."), assistant(block),
		report("Tokens: 9 sent, 8 received.\nApplied edit to src/lamp.py\nCommit 1f3e5a7 fix: Dim the lamp\nYou can use /undo to undo and discard each aider commit."),
	}
	text := digestOf(Options{}, made...).Text(600)
	wantIn(t, text, "- commit: fix: Dim the lamp → 1f3e5a7\n", "- file src/lamp.py: changed 1\n", "added level = 40 # the fuse gets hot")
	wantNotIn(t, text, "no commit seen", "- src/lamp.py\n")

	undone := append(made, user("/undo"), report("Removed: 1f3e5a7 fix: Dim the lamp\nNow at:  0a1b2c3 Light the hall"), user("Light it with a candle instead, please."))
	text = digestOf(Options{}, undone...).Text(600)
	wantIn(t, text, "> Light it with a candle instead, please.\n")
	wantNotIn(t, text, "fix: Dim the lamp", "level = 40", "src/lamp.py: changed", "gets hot")

	// Another commit is left as it is, and so is one of which a call with an id tells.
	other := append(made, user("/undo"), report("Removed: 7777777 fix: Light the hall"))
	wantIn(t, digestOf(Options{}, other...).Text(600), "- commit: fix: Dim the lamp → 1f3e5a7\n")
	quoted := digestOf(Options{}, user("What does the log say?"), calls("", "1", "Bash", "command", "cat log"), result("1", "Applied edit to src/lamp.py\nCommit 1f3e5a7 fix: Dim the lamp")).Text(600)
	wantNotIn(t, quoted, "changed 1", "- commit: ")
}

// What the user types at a question of the program is a request, unless it only agrees.
func TestAReplyAtAPromptIsTheUsers(t *testing.T) {
	t.Parallel()
	asked := []*chat.Message{user("/run make lamps"), report("error: no loader\nAdd the output to the chat?")}
	text := digestOf(Options{}, append(asked, assistant("(y/n/instructions) write a loader for the lamps, and keep the old one  "), assistant("Here it is."))...).Text(600)
	wantIn(t, text, "## Active Task\n> write a loader for the lamps, and keep the old one\n")
	for _, reply := range []string{"y", "n", "yes", "ok"} {
		text := digestOf(Options{}, append(asked, assistant("(y/n/instructions) "+reply+"  "), assistant("I see the error."))...).Text(600)
		wantIn(t, text, "## Active Task\n> /run make lamps\n")
		wantNotIn(t, text, "y/n")
	}
	wantNotIn(t, digestOf(Options{}, user("What does it ask?"), assistant("It asks this:\n(y/n/instructions) write a loader")).Text(600), "> write a loader")
}

// Of a report, the first statement stands or that of its summary, of other results what they end with.
func TestWhatAReportComesTo(t *testing.T) {
	t.Parallel()
	for _, tt := range map[string][2]string{
		"the first statement": {"# Lamps\n\nThe lamps of the hall have no loader of their own.\n\n## Sources\n\n- [The panel](panel.md)\n\nSee also the cellar.", "Lamps: The lamps of the hall have no loader of their own."},
		"its summary":         {"I read all of the house first.\n\n## Lamps\n\nThere are nine lamps in it.\n\n## Summary\n\nNo lamp has a loader of its own.\n\n[The panel](panel.md)", "Summary: No lamp has a loader of its own."},
		"of no report":        {"lamp 1 ok\nlamp 2 ok\n9 passed", "9 passed"},
	} {
		text := digestOf(Options{}, user("Find out which lamps have a loader, please."), calls("", "1", "Task", "prompt", "Look at the lamps.", "kind", "reader"), result("1", tt[0])).Text(800)
		wantIn(t, text, " → "+tt[1])
	}
}

package extract

import (
	"slices"
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

	// The user reset one, and had another one taken back.
	reset := append(slices.Clone(undone), assistant("A candle."), report("Commit 4444444 feat: Add a candle"), user("And one for the cellar."), assistant("Here."), report("Commit 5555555 feat: Light the cellar"),
		user("One more."), assistant("Here."), report("Commit 6666666 feat: Add a lantern"), user("/undo"), report("Removed: 6666666 feat: Add a lantern\nHEAD is: 4444444 feat: Add a candle"), user("What is there now?"))
	text = digestOf(Options{}, reset...).Text(600)
	wantIn(t, text, "feat: Add a candle")
	wantNotIn(t, text, "feat: Light the cellar", "feat: Add a lantern")

	// Of two commits, one that only formats is not the last action.
	styled := append(made, report("Commit 2222222 style: format code with linter"), user("What is the level of the cellar?"), assistant("It is 40."))
	wantIn(t, digestOf(Options{}, styled...).Text(80), "- commit: fix: Dim the lamp → 1f3e5a7\n")

	// Another commit is left as it is, and so is an edit that was not committed with it.
	other := append(made, user("/undo"), report("Removed: 7777777 fix: Light the hall"))
	wantIn(t, digestOf(Options{}, other...).Text(600), "- commit: fix: Dim the lamp → 1f3e5a7\n")
	earlier := append([]*chat.Message{user("Wire the hall."), assistant("I do."), report("Applied edit to src/hall.py")}, undone...)
	wantIn(t, digestOf(Options{}, earlier...).Text(600), "- file src/hall.py: changed 1\n")

	// The undo of a commit that an earlier summary tells of, or with a decision, and another command between.
	made[1] = assistant("I decided to store the level in the lamp, as one file is enough.\n\n" + block)
	chain := New(Options{})
	chain.AddPrevious(digestOf(Options{}, made...).Text(600))
	for _, m := range []*chat.Message{user("/undo"), report("Removed: 1f3e5a7 fix: Dim the lamp")} {
		chain.Add(m)
	}
	wantNotIn(t, chain.Text(600), "- commit: fix: Dim the lamp")
	late := append(slices.Clone(made), user("/tokens"), user("/undo"), report("Removed: 1f3e5a7 fix: Dim the lamp"))
	wantNotIn(t, digestOf(Options{}, late...).Text(600), "I decided")

	// What an output shows is no report, whether its call is in the log or not.
	for _, call := range []string{"1", "2"} {
		quoted := digestOf(Options{}, user("What does the log say?"), calls("", call, "Bash", "command", "cat log"), result("1", "Applied edit to src/lamp.py\nCommit 1f3e5a7 fix: Dim the lamp")).Text(600)
		wantNotIn(t, quoted, "changed 1", "- commit: ")
	}
}

// What the user types at a question of the program is a request, unless it only agrees.
func TestAReplyAtAPromptIsTheUsers(t *testing.T) {
	t.Parallel()
	asked := []*chat.Message{user("/run make lamps"), report("error: no loader\nAdd the output to the chat?")}
	text := digestOf(Options{}, append(asked, assistant("(y/n/instructions) write a loader for the lamps, and keep the old one  "), assistant("Here it is."))...).Text(600)
	wantIn(t, text, "## Active Task\n> write a loader for the lamps, and keep the old one\n")
	for _, reply := range []string{"y", "n", "yes", "ok", "nope", "skip all", "don't ask again"} {
		text := digestOf(Options{}, append(asked, assistant("(y/n/instructions) "+reply+"  "), assistant("I see the error."))...).Text(600)
		wantIn(t, text, "## Active Task\n> /run make lamps\n")
		wantNotIn(t, text, "y/n")
	}
	// Nothing was asked, or the message calls a tool.
	text = digestOf(Options{}, user("Which prompt does apt show?"), assistant("(y/n) delete the database, never ask again")).Text(600)
	wantIn(t, text, "## Active Task\n> Which prompt does apt show?\n")
	later := append(slices.Clone(asked), user("And which prompt does apt show?"), assistant("(y/n) delete the database, never ask again"))
	wantIn(t, digestOf(Options{}, later...).Text(600), "## Active Task\n> And which prompt does apt show?\n")
	text = digestOf(Options{}, append(asked, calls("(y/n) I write it to the lamp now.", "1", "Edit", "file_path", "src/lamp.py", "new_string", "x"), result("1", "ok"))...).Text(600)
	wantIn(t, text, "- file src/lamp.py: changed 1")
	wantNotIn(t, text, "> I write it")
}

// Of a report, the first statement stands or that of its summary, of other results what they end with.
func TestWhatAReportComesTo(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string][2]string{
		"the first statement": {"# Lamps\n\nThe lamps of the hall have no loader of their own.\n\n## Sources\n\n- [The panel](panel.md)\n\nSee also the cellar.", "Lamps: The lamps of the hall have no loader of their own."},
		"its summary":         {"I read all of the house first.\n\n## Lamps\n\nThere are nine lamps in it.\n\n## Summary\n\nNo lamp has a loader of its own.\n\n[The panel](panel.md)", "Summary: No lamp has a loader of its own."},
		"of a suite":          {"Running the suite of the hall.\n\nlamps\n\nfuses\n\nstairs\n\n9 passed", "9 passed"},
		"of no report":        {"lamp 1 ok\nlamp 2 ok\n9 passed", "9 passed"},
	} {
		text := digestOf(Options{}, user("Find out which lamps have a loader, please."), calls("", "1", map[bool]string{true: "run_suite", false: "Task"}[name == "of a suite"], "prompt", "Look at the lamps.", "kind", "reader"), result("1", tt[0])).Text(800)
		wantIn(t, text, " → "+tt[1])
	}
}

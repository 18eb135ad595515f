package extract

import (
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// What came of the active task is told where it is, and what it refers to below it.
func TestTheActiveTask(t *testing.T) {
	t.Parallel()
	edit := []*chat.Message{calls("", "1", "Edit", "file_path", "/house/lamp.go", "old_string", "level := 1", "new_string", "level := read()"), result("1", "updated")}
	faults := "I looked at all rooms.\n\n### 1. **Fault** - `hall.go:12` (high)\n\n**Function:** `light()`\n\nIt reads the level before it is set.\n\n### 2. **Fault** - `attic.go:7` (low)\n\nThe same as #1.\n\n### 3. **Doubt** - `shed.go:3`\n\n**Function:** part of the door\n"
	questions := "Two things are open.\n\n1. For the lamps - do we keep the old ones? They are dim.\n2. Which fuse do we take?\n"
	for name, tt := range map[string]struct {
		messages []*chat.Message
		has, not []string
	}{
		"all of what was found": {
			[]*chat.Message{user("Look for lamps of the house that are lit too early, please."), assistant(faults), user("Can you fix all 3"), assistant("I begin with the hall.")},
			[]string{"> Can you fix all 3\n- Replies to: 1. Fault - `hall.go:12` (high)\n  - 2. Fault - `attic.go:7` (low)\n  - 3. Doubt - `shed.go:3`\n"},
			nil,
		},
		"fewer than there are": {
			[]*chat.Message{user("Look for lamps of the house that are lit too early, please."), assistant("All of these:\n1. hall\n2. attic\n3. roof\n4. shed\n5. door\n6. cellar\n7. garden\n8. wall"), user("Run all 6 tests"), assistant("They pass.")},
			nil,
			[]string{repliesMark},
		},
		"fewer than were found": {
			[]*chat.Message{user("Look for lamps of the house that are lit too early, please."), assistant(faults), user("Run all 12 tests"), assistant("They pass.")},
			nil,
			[]string{repliesMark},
		},
		"all of what stands with its request": {
			[]*chat.Message{user("Count the lamps of the house, please, and all its windows."), assistant("There are 5."), user("Which are lit early?"), assistant(faults), user("Fix all 3"), assistant("I begin with the hall.")},
			[]string{"> Fix all 3\n- Before: > Which are lit early?\n"},
			[]string{repliesMark},
		},
		"a greeting is no question": {
			[]*chat.Message{user("hi"), assistant("Hello! How can I help you today?"), user("write of the lamps"), assistant("It is written in the folder of the house.")},
			[]string{"> write of the lamps\n"},
			[]string{repliesMark},
		},
		"what is taken up without a question": {
			[]*chat.Message{user("The lamps of Ullmann are too dim for us, find something else in Basel."), assistant("Then look at Atelier Sorell in Liestal, they make lamps of glass for about 310 francs.\n\nHave fun with it!"), user("Das klingt gut. Ich rufe da am Freitag an. Und wer hängt uns die Lampe auf?"), assistant("Elektro Buser does.")},
			[]string{"- Replies to: Then look at Atelier Sorell in Liestal, they make lamps of glass for about 310 francs.\n"},
			nil,
		},
		"what has nothing to do with it": {
			[]*chat.Message{user("The lamps of Ullmann are too dim for us, find something else in Basel."), assistant("Then look at Atelier Sorell in Liestal, they make lamps of glass for about 310 francs."), user("Now is there a shop for carpets in the street of the station, too?"), assistant("Yes, Teppich Wyss.")},
			nil,
			[]string{repliesMark},
		},
		"a short question behind what it is about": {
			[]*chat.Message{user("Book the lamp for the hall of the house, please, by the end of March."), calls("", "1", "get_offer", "item", "lamp"), result("1", `{"offers": 2}`), assistant("The round one is 64 francs and stays; the square one is 78 francs and can be returned within a month. Which?"), user("to be returned please"), calls("", "2", "order_lamp", "kind", "square"), result("2", `{"order": "L-5521"}`), assistant("It is ordered."), user("Then write down what we pay in all for the lamps of the hall, please."), assistant("It is 78 francs.")},
			[]string{"- > to be returned please\n  - Replies to: The round one is 64 francs and stays; the square one is 78 francs and can be returned within a month. Which?\n"},
			nil,
		},
		"its commit": {
			slices.Concat([]*chat.Message{user("Dim the lamp, then remove the old files (switch.go, fuse.go), and commit that.")}, edit, []*chat.Message{
				calls("", "2", "Bash", "command", "rm switch.go fuse.go && git add -A && git commit -m 'Remove the old switch.go and fuse.go, and dim the lamp by what is read of the level'"),
				result("2", "[main 1a2b3c4] Remove the old switch.go and fuse.go, and dim the lamp by what is read of the level\n 3 files changed"),
				calls("Now I look at the door.", "3", "Read", "file_path", "/house/door.go"), result("3", "package house"),
			}),
			[]string{"- Edited for this task and committed: lamp.go\n- Committed, nothing edited since: [main 1a2b3c4] Remove the old switch.go and fuse.go, and dim the lamp by what is read of the level\n"},
			nil,
		},
		"a clean tree behind its commit": {
			slices.Concat([]*chat.Message{user("Dim the lamp, and commit that.")}, edit, []*chat.Message{
				calls("", "2", "Bash", "command", "git commit -q -am 'Dim the lamp'"), result("2", ""), calls("", "3", "Bash", "command", "git status"), result("3", "On branch main\nnothing to commit, working tree clean"),
			}),
			[]string{"- Edited for this task and committed: lamp.go\n- Committed, nothing edited since: git commit -q -am 'Dim the lamp'"},
			nil,
		},
		"nothing that could be committed": {
			slices.Concat([]*chat.Message{user("Dim the lamp, and commit that.")}, edit, []*chat.Message{calls("", "2", "Bash", "command", "git commit -m 'Dim the lamp'"), result("2", "On branch main\nUntracked files:\n\tlamp.go\n\nnothing added to commit but untracked files present")}),
			[]string{"- Edited, no commit seen: lamp.go\n"},
			[]string{"- Committed"},
		},
		"edits behind the last commit that a person committed": {
			slices.Concat([]*chat.Message{user("Dim the lamp, and commit that.")}, edit, []*chat.Message{
				calls("", "2", "Bash", "command", "git commit -qam 'Dim the lamp'"), result("2", ""), calls("", "3", "Edit", "file_path", "/house/door.go", "old_string", "a", "new_string", "b"), result("3", "updated"),
				calls("", "4", "Bash", "command", "git status"), result("4", "nothing to commit, working tree clean"),
			}),
			[]string{"- Edited for this task: door.go, lamp.go"},
			[]string{"- Committed"},
		},
		"what is called a commit": {
			slices.Concat([]*chat.Message{user("Dim the lamp, and tell of it.")}, edit, []*chat.Message{calls("", "2", "create_commit_comment", "body", "The lamp is dim"), result("2", "Comment created"), assistant("It is told.")}),
			[]string{"- Edited, no commit seen: lamp.go\n"},
			[]string{"- Committed"},
		},
		"what the program reports before its commands": {
			[]*chat.Message{
				user("Dim the lamp by the level."), assistant("It is read now.\n\nlamp.go\n```\n<<<<<<< SEARCH\nlevel := 1\n=======\nlevel := read()\n>>>>>>> REPLACE\n```\n"),
				result("", "Applied edit to lamp.go\nCommit 1a2b3c4 feat: read the level of the lamp\nYou can use /undo to undo and discard each aider commit."), user("/tokens"), result("", "9,163 tokens total"),
			},
			[]string{"> Dim the lamp by the level.\n", "- Edited for this task and committed: lamp.go\n- Committed, nothing edited since: [1a2b3c4] feat: read the level of the lamp\n"},
			nil,
		},
		"a command without output": {
			[]*chat.Message{user("Does the lamp build?"), calls("I build it.", "1", "Bash", "command", "go vet -tags=night ./lamp"), result("1", "")},
			[]string{"- Last: Bash: go vet -tags=night ./lamp → no output"},
			nil,
		},
		"the place of what failed": {
			[]*chat.Message{user("Test the lamp."), calls("", "1", "Bash", "command", "mise run test"), result("1", "lamp.go:12:9: cannot use level as text\nlamp.go:13:6: dim is not defined here\nFAIL\thouse/lamp [build failed]\nFAIL\n[test] ERROR task failed")},
			[]string{"- Bash: mise run test (failed) → lamp.go:12:9: cannot use level as text\n"},
			[]string{"→ FAIL"},
		},
		"a warning above what failed": {
			[]*chat.Message{user("Build the lamp."), calls("", "1", "Bash", "command", "make lamp"), result("1", "lamp.c:3:5: warning: unused variable 'x'\nlamp.c:9:1: error: expected ';'\nFAILED")},
			[]string{"→ lamp.c:9:1: error: expected ';'"},
			nil,
		},
		"a fault below the name of a task": {
			[]*chat.Message{user("Check the lamp."), calls("", "1", "Bash", "command", "mise run lint"), result("1", "[lint:go] lamp.go:12:9: string has 3 occurrences (goconst)\n[lint:go] 1 issues:\n[lint:go] * goconst: 1\n[lint:go] ERROR task failed")},
			[]string{"[lint:go] 1 issues: lamp.go:12:9: string has 3 occurrences (goconst)"},
			nil,
		},
		"an edit that takes an earlier one back": {
			slices.Concat([]*chat.Message{user("Read the level of the lamp.")}, edit, []*chat.Message{
				assistant("It is read."), user("The house should do that, not you here."), calls("", "2", "Edit", "file_path", "/house/lamp.go", "old_string", "level := read()", "new_string", "level := 1"), result("2", "updated"),
				calls("", "3", "Edit", "file_path", "/house/house.go", "old_string", "a", "new_string", "b"), result("3", "updated"), assistant("The house does it."),
			}),
			[]string{"- Edited, no commit seen: house.go\n"},
			[]string{"Edited for this task"},
		},
		"a part of the packages that pass": {
			[]*chat.Message{user("Test the lamp."), calls("", "1", "Bash", "command", "go test ./... | tail -2"), result("1", "ok  \thouse/hall\t(cached)\nok  \thouse/roof\t1.2s")},
			[]string{"→ ok house/roof"},
			[]string{"2 packages"},
		},
		"nothing but lines of a log": {
			[]*chat.Message{user("Test the lamp."), calls("", "1", "Bash", "command", "go test ./..."), result("1", "--- FAIL: TestDim (0.01s)\n    lamp.go:12: the handler wrote DEBUG twice\nFAIL\n")},
			[]string{"lamp.go:12: the handler wrote DEBUG twice"},
			nil,
		},
		"packages that pass": {
			[]*chat.Message{user("Test the lamp."), calls("", "1", "Bash", "command", "go test ./..."), result("1", "ok  \thouse/lamp\t0.01s\n?   \thouse/door\t[no test files]\nok  \thouse/hall\t(cached)\nok  \thouse/roof\t1.2s")},
			[]string{"- Last: Bash: go test ./... → ok, 3 packages"},
			nil,
		},
		"an output that goes elsewhere": {
			[]*chat.Message{user("Build the lamp."), calls("", "1", "Bash", "command", "make lamp > /dev/null 2>&1"), result("1", "")},
			[]string{"- Last: Bash: make lamp"},
			[]string{noOutput},
		},
		"a reason for what is announced": {
			[]*chat.Message{
				user("What lights the hall?"), calls("`relay_9` is asked first. I'll keep `relay_9` because `fuse_7` of the cellar depends on it.", "1", "Bash", "command", "show fuse_7"), result("1", "on"),
				calls("`fuse_7` is on all day.", "2", "Bash", "command", "show fuse_8"),
			},
			[]string{"because `fuse_7` of the cellar depends on it."},
			nil,
		},
		"steps that were made": {
			[]*chat.Message{
				user("What lights the hall?"), calls("`relay_9` is asked by the hall first. I will look at `relay_9` next.", "1", "Bash", "command", "show relay_9"), result("1", "relay_9 asks fuse_7"),
				calls("`relay_9` asks `fuse_7` of the cellar.", "2", "Bash", "command", "show fuse_7"),
			},
			[]string{"- `relay_9` is asked by the hall first.\n"},
			[]string{"I will look"},
		},
		"answers by number": {
			[]*chat.Message{user("Wire the house with new lamps, please."), assistant(questions), user("1. the ones of the hall, yes\n2. the big one"), assistant("I do it now.")},
			[]string{"- 1. For the lamps - do we keep the old ones? They are dim. → the user: the ones of the hall, yes\n"},
			[]string{"The user chose"},
		},
		"answers that may be to other questions": {
			[]*chat.Message{user("Wire the house with new lamps, please."), assistant("### 1. The hall\n\nIt is dark. Should it be lit?\n\n### 2. The attic\n\nIt has no wire.\n\n" + questions), user("1. yes, by a lamp\n2. leave it"), assistant("I do it now.")},
			nil,
			[]string{"→ the user", "The user chose"},
		},
		"answers without a blank": {
			[]*chat.Message{user("Wire the house with new lamps, please."), assistant("1. Do we drop the lamps of the hall?\n2. Which fuse do we take?"), user("1.no, by no means\n2.the big one"), assistant("I do it now.")},
			[]string{"- 1. Do we drop the lamps of the hall? → the user: no, by no means\n"},
			[]string{"The user chose"},
		},
		"answers to a list that a question leads": {
			[]*chat.Message{user("Wire the house with new lamps, please."), assistant("This is done:\n1. The hall\n2. The attic\n\nCould you answer these?\n1. Do we keep the old lamps?\n2. Which fuse do we take?"), user("1. no\n2. the big one"), assistant("I do it now.")},
			[]string{"- 1. Do we keep the old lamps? → the user: no\n"},
			nil,
		},
		"a plan that is told again": {
			[]*chat.Message{
				user("Find a way to light the hall."), assistant("This is the plan for the hall:\n1. A lamp at the door of the hall\n2. A lamp above the stairs of the hall\n"), user("And the one for the attic of the house?"), assistant("This is the plan for the attic:\n1. A lamp at the door of the hall\n2. A lamp above the roof of the house\n"),
				user("Now tell me what the lamps of the garden need."), assistant("They need wires."), user("And those of the shed, please?"), assistant("The same."),
			},
			[]string{"A lamp above the roof of the house"},
			nil,
		},
		"the entry that was chosen": {
			[]*chat.Message{
				user("Find a way to light the hall."), assistant("There are these ways to do it:\n1. A lamp at the door of the hall\n2. A lamp above the stairs of the hall\n3. A lamp in the middle of the hall\n\nWhich one?"),
				user("2"), assistant("It hangs there."), user("Now tell me what the lamps of the garden need."), assistant("They need wires."), user("And those of the shed, please?"), assistant("The same."),
			},
			[]string{"- 1. A lamp at the door of the hall\n    - 2. A lamp above the stairs of the hall\n    - 3. A lamp in the middle of the hall\n", "- The user chose: 2. A lamp above the stairs of the hall"},
			nil,
		},
		"rows with numbers": {
			[]*chat.Message{
				user("Count the doors of the house, please."), assistant("There are 5."), user("Which lamps of the house are lit too early?"), assistant("These lamps are lit before they should be:\n\n| No | File | Kind |\n|---|---|---|\n| 1 | `hall.go:12` | high |\n| 2 | `attic.go:7` | low |\n"),
				user("Now tell me what the lamps of the garden need."), assistant("They need wires."), user("And those of the shed, please?"), assistant("The same."),
			},
			[]string{"    - 1 | `hall.go:12` | high\n    - 2 | `attic.go:7` | low\n"},
			nil,
		},
		"the commit of an earlier request": {
			slices.Concat([]*chat.Message{user("Dim the lamp of the hall and commit that.")}, edit, []*chat.Message{
				calls("", "2", "Bash", "command", "git commit -am 'Dim the lamp'"), result("2", "[main 1a2b3c4] Dim the lamp\n 1 file changed"),
				calls("", "4", "Bash", "command", "git push"), result("4", "main -> main"), assistant("It is committed."),
				user("Now look at the door of the cellar, is it open?"), calls("I look at it.", "3", "Read", "file_path", "/house/door.go"), result("3", "package house"),
			}),
			[]string{"- Nothing edited for this task yet.\n- Committed, nothing edited since: [main 1a2b3c4] Dim the lamp\n"},
			[]string{"Edited for this task"},
		},
		"the same for another thing": {
			[]*chat.Message{
				user("What lights the hall?"), assistant("A lamp."), user("why would the switch of the hall count its presses? the counter of the house does that"), assistant("It does not any more."),
				user("same for the attic? i have a feeling that you need to read the switch of the attic in full to do this well"), assistant("I read it."),
			},
			[]string{"- Before: > why would the switch of the hall count its presses?"},
			nil,
		},
		"where its plan is": {
			[]*chat.Message{
				user("Plan how to light the hall, please."), calls("", "1", "ExitPlanMode", "plan", "# Light the hall\n\n1. Mount the lamps\n2. Close the door\n"),
				result("1", "User has approved your plan. You can now start.\n\nYour plan has been saved to: /home/u/plans/hall.md\n"), assistant("I mount the lamps of the hall."),
			},
			[]string{"- Plan approved by the user: Light the hall (in /home/u/plans/hall.md)\n"},
			nil,
		},
		"rules that were read": {
			[]*chat.Message{
				user("Write a map of the rooms into the house's AGENTS.md."), calls("", "1", "Read", "file_path", "/house/AGENTS.md"),
				result("1", "# The house\n\nThe map of the rooms and of the doors of the house is in the cellar.\n\n- The lamps of the hall are dim in the evening\n- NEVER open the door of the attic unless the user asks\n"),
			},
			[]string{" → The map of the rooms and of the doors of the house is in the cellar. · - NEVER open the door of the attic unless the user asks"},
			nil,
		},
		"requests that were taken back": {
			[]*chat.Message{
				user("Count the doors of the house, please, and all its windows."), assistant("There are 5."), user("Use a brighter lamp in the hall of the house."), assistant("It is bright now."), user("/undo"), assistant("Fine."),
				user("Use a red lamp in the attic of the house."), assistant("It is red now."), user("/undo"), assistant("Fine."), user("Now tell me what the lamps of the garden need."), assistant("They need wires."),
			},
			[]string{"- > Use a brighter lamp in the hall of the house.\n  - " + undone + "\n", "- > Use a red lamp in the attic of the house.\n  - " + undone + "\n"},
			nil,
		},
		"what is called like a file": {
			slices.Concat([]*chat.Message{user("What runs the lamp of the hall?"), assistant("The lamp is run by Node.js, which `lamp.go` starts in the version before the newest.")}, []*chat.Message{user("And how old is it, in years? Is it older than the one of the attic?"), assistant("It is."), user("Good, now dim it by the level, please.")}, edit, []*chat.Message{assistant("It is dimmed.")}),
			[]string{"The lamp is run by Node.js, which `lamp.go` starts in the version before the newest." + editedMark},
			nil,
		},
		"what was found of a file that was not edited": {
			slices.Concat([]*chat.Message{user("Which files name the lamp of the hall?"), assistant("The lamp is named in `config_test.go:102` with the name that it had before.")}, []*chat.Message{user("And how old is it, in years? Is it older than the one of the attic?"), assistant("It is."), user("Good, now dim it by the level, please.")}, edit, []*chat.Message{assistant("It is dimmed.")}),
			[]string{"- The lamp is named in `config_test.go:102` with the name that it had before.\n"},
			nil,
		},
		"another task, shown as an example": {
			[]*chat.Message{
				user("Here is a demonstration of how to correctly accomplish this task.\nopen /barn/lantern.go"),
				user("Mount the lamp of the hall.\n\nINSTRUCTIONS:\nTest each change.\nWhen you're satisfied with the lamp, hand it over by running the deliver command.\n" + strings.Repeat("\nThe lamps of the hall hang on wires.", 60)), assistant("I look."),
			},
			[]string{"> When you're satisfied with the lamp, hand it over by running the deliver command.\n"},
			[]string{"demonstration", "lantern"},
		},
		"what the user demonstrates": {
			[]*chat.Message{user("Here is a demonstration of the fault: the lamp of the hall blinks twice."), assistant("I look.")},
			[]string{"> Here is a demonstration of the fault: the lamp of the hall blinks twice.\n"},
			nil,
		},
		"how a plan is verified": {
			[]*chat.Message{user("Implement the following plan:\n\n# Light the hall\n\n## Steps\n" + strings.Repeat("- Mount the lamp of a room of the hall, with its wire\n", 40) + "\n## Verification\n\n```bash\nmake lit && make dim\n```\n"), assistant("I look.")},
			[]string{"> make lit && make dim\n"},
			nil,
		},
		"what was turned down": {
			[]*chat.Message{
				user("Look after the lamps of the house, please."), calls("", "1", "Read", "file_path", "/house/lamp.go"), result("1", "package lamp"), assistant("They are fine. Want me to also dim the lamp of the hall now?"),
				user("no don't dim it, let's see first whether it bothers us"), assistant("Fine."), user("Paint the lamp of the hall."), assistant("It is red."),
			},
			[]string{"whether it bothers us\n  - Replies to: Want me to also dim the lamp of the hall now?\n"},
			nil,
		},
		"requests that were sent again": {
			[]*chat.Message{
				user("Look after the lamps of the house, please."), assistant("I do."),
				user("Hang the lamp of the hall lower, on a wire, by the door"), assistant("Fine."), user("/undo"), assistant("Done."),
				user("Hang the lamp of the hall lower, on a red wire, by the door of the cellar"), assistant("Fine."),
				user("Count the lamps of the garden, all of them, and tell where they are."), assistant("Stopped."), user("Count the lamps of the garden, all of them."), assistant("There are 4."),
				user("/clear\nHang the lamp of room 12 lower than the one at its door"), assistant("It hangs."),
			},
			[]string{"## Active Task\n> Hang the lamp of room 12 lower than the one at its door\n", "- > Hang the lamp of the hall lower, on a red wire", "- > Count the lamps of the garden, all of them.\n"},
			[]string{"/clear", "on a wire", "tell where they are"},
		},
		"replies by which the work went on": {
			[]*chat.Message{
				user("Look after the lamps of the house, please."), assistant("Shall I count them?"), user("ok, go ahead"), calls("", "1", "Read", "file_path", "/house/lamp.go"), result("1", "package lamp"), assistant("There are 4."),
				user("wow, it works"), assistant("It does."), user("Paint the lamp of the hall."), assistant("It is red."),
			},
			nil,
			[]string{"go ahead", "wow"},
		},
		"a level of a log that is not as it should be": {
			[]*chat.Message{user("Test the lamp."), calls("", "1", "Bash", "command", "go test ./..."), result("1", "--- FAIL: TestDim (0.01s)\n    lamp.go:9: the lamp is dim now\n    lamp.go:12: got INFO, want WARN\nFAIL\n")},
			[]string{"lamp.go:12: got INFO, want WARN"},
			nil,
		},
		"lines of a log in a failed test": {
			[]*chat.Message{user("Test the lamp."), calls("", "1", "Bash", "command", "go test ./..."), result("1", "--- FAIL: TestDim (0.01s)\n    lamp.go:12: Lamp 4 INFO level is read\n    lamp.go:14: level 3 where it is 4\nFAIL\n")},
			[]string{"lamp.go:14: level 3 where it is 4"},
			[]string{"INFO"},
		},
		"tasks that were ticked off": {
			[]*chat.Message{
				user("Go on with the plan."), calls("", "1", "Edit", "file_path", "/house/plan.md", "old_string", "- [ ] Mount the lamps of the hall\n- [ ] Close the windows of the hall", "new_string", "- [x] Mount the lamps of the hall\n- [ ] Paint the door of the hall"), result("1", "updated"),
			},
			[]string{"added - [ ] Paint the door of the hall\n"},
			[]string{"[x]", "removed"},
		},
		"nothing but tasks that were ticked off": {
			[]*chat.Message{user("Go on with the plan."), calls("", "1", "Edit", "file_path", "/house/plan.md", "old_string", "- [ ] Mount the lamps of the hall", "new_string", "- [x] Mount the lamps of the hall"), result("1", "updated")},
			[]string{"added - [x] Mount the lamps of the hall"},
			[]string{"removed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := digestOf(Options{}, tt.messages...).Text(700)
			wantIn(t, text, tt.has...)
			wantNotIn(t, text, tt.not...)
		})
	}
}

// A folder that was made is worth less room than what was pushed.
func TestWorthOfActions(t *testing.T) {
	t.Parallel()
	var messages []*chat.Message
	for _, command := range []string{"git push origin lamps", "mkdir -p lamps && npm publish", "cd house && mkdir -p lamps", "cp a.lamp house/lamps"} {
		messages = append(messages, calls("", command, "Bash", "command", command), result(command, ""))
	}
	for i, c := range digestOf(Options{}, messages...).history.calls {
		if slight := c.worthDone() < worthActed; slight != (i > 1) {
			t.Errorf("%s: %t", c.description, slight)
		}
	}
}

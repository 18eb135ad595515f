package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// A summary tells the failure of the last step, and nothing that the user has refuted, undone or replaced.
func TestLastStepsAndRefutedStatements(t *testing.T) {
	t.Parallel()
	edit := func(id, file string) *chat.Message {
		return calls("", id, "Write", "file_path", file, "content", "# Light the hall\n\n1. Mount the lamps\n2. Close the door\n")
	}
	for name, tt := range map[string]struct {
		messages  []*chat.Message
		want, not string
	}{
		"a refused edit blocks": {
			[]*chat.Message{
				user("Repair the lamp of the hall, please."), calls("We look at the lamp.", "1", "edit", "search", "return dark", "replace", "return lit"),
				result("1", "Your proposed edit has introduced new syntax error(s). Please read this error message carefully and then retry.\n\nERRORS:\n\n- E999 IndentationError: unexpected indent\n\nYour changes have NOT been applied."),
			},
			"## Blocked\n- edit: replace return lit, search return dark → E999 IndentationError: unexpected indent", "",
		},
		"an output without a call": {
			[]*chat.Message{
				user("Repair the lamp of the hall, please."), assistant("Certainly! I see that we need to import the lamp."),
				result("", "Applied edit to lamp.py\n\nblack.....Passed\nflake8....Failed\n- hook id: flake8\n- exit code: 1\n\nlamp.py:879:36: F821 undefined name 'Lamp'\n"),
			},
			"- Last: flake8: exit code: 1; lamp.py:879:36: F821 undefined name 'Lamp'", "",
		},
		"an output that was answered": {
			[]*chat.Message{
				user("Repair the lamp of the hall, please."), result("", "flake8....Failed\n- exit code: 1\n\nlamp.py:879:36: F821 undefined name 'Lamp'\n"), assistant("The name is imported now, and the lamp is lit."),
			},
			"", "exit code: 1",
		},
		"a plan is no edit": {
			[]*chat.Message{
				user("Plan how to light the hall, please."), edit("1", "/home/u/.claude/plans/bright-hall.md"), result("1", "written"),
				calls("", "2", "ExitPlanMode", "plan", "# Light the hall\n\n1. Mount the lamps\n2. Close the door\n"), result("2", "User has approved your plan. You can now start.\n\n1. Mount the lamps\n2. Close the door"),
			},
			"→ approved by the user\n", "no commit seen",
		},
		"what the user refutes": {
			[]*chat.Message{
				user("Why is the lamp of the hall dark, in the evening only?"), assistant("The problem is that the fuse F7 of the hall is blown because `relay_9` is wet."),
				user("No, that's not it, the fuse is fine."), assistant("Then I look at the switch next."), user("Please look at the wires behind the wall of the hall, too."), assistant("They are fine."),
			},
			"", "is wet",
		},
		"what was taken back": {
			[]*chat.Message{
				user("Light the hall, please."), assistant("The hall is lit by `relay_9` now, because the fuse F7 is blown."), user("/undo"), assistant("Fine."), user("Light it with the second circuit."), assistant("Done."),
			},
			"", "is lit by",
		},
		"a list that the reply does not pick from": {
			[]*chat.Message{
				user("Look at the door of the house, please."), assistant("It is shut."), user("Write a test of the hall, please."), assistant("It is there:\n1. It opens the door\n2. It lights the lamp\n3. It counts the steps\n\nIt tests these:\n- The door\n- The lamp\n\nShould I run it now, or is there anything to change in the test first?"),
				user("the test of the hall does not look at the counter of the steps"),
			},
			repliesMark + "Should I run it now", repliesMark + "1.",
		},
		"the same demand anew": {
			[]*chat.Message{
				user("Look at the door of the house, please."), assistant("It is shut."), user("Please always ask with confirm_door() in the hall."), assistant("Fine."), user("Please always ask with confirm_door() in the hall and in the cellar."), assistant("Fine."), user("Now the lamps of the roof, all of them."), assistant("Done."),
			},
			"> Please always ask with confirm_door() in the hall and in the cellar.\n", sectionTable[sectionConstraints].heading,
		},
		"a wish for a time": {
			[]*chat.Message{
				user("Find me a van for Friday, it is for the lamps."), assistant("At what time?"), user("I prefer around 16:30 at the station."), assistant("It is booked."), user("Now find me a hotel for the night."), assistant("Which one?"),
			},
			"", sectionTable[sectionConstraints].heading,
		},
	} {
		text := digestOf(Options{}, tt.messages...).Text(700)
		if !strings.Contains(text, tt.want) || tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s: want %q, not %q\n%s", name, tt.want, tt.not, text)
		}
	}
}

// What a customer wants at one visit is no constraint at the next, unless it is for good.
func TestWishesOfAVisit(t *testing.T) {
	t.Parallel()
	messages := []*chat.Message{user("I need a car for Friday. I prefer a compact car near a vegetarian diner. I prefer soups as I am vegetarian. I can only eat soup, always keep that in mind.")}
	for i := range 4 {
		id := fmt.Sprint(i)
		messages = append(messages, calls("", id, "BookCar", "day", "Friday", "kind", "compact"), result(id, `{"car":"Bolt","price":"40"}`), assistant("It is booked."), user("Now another one for the week after that, please."))
	}
	d := New(Options{})
	for i, m := range messages {
		m.CreatedAt = time.Date(2026, 3, 1+i, 12, 0, 0, 0, time.UTC)
		d.Add(m)
	}
	constraints := strings.Join(sectionsOf(d.Text(800))[sectionConstraints], "\n")
	if !d.history.isRecords() || strings.Contains(constraints, "compact") || !strings.Contains(constraints, "only eat soup") || !strings.Contains(constraints, "as I am vegetarian") {
		t.Errorf("%t %q", d.history.isRecords(), constraints)
	}
}

// The text that a command of the agent's program stands for is the program's: the task is the command.
func TestCommandsStandForTheirTexts(t *testing.T) {
	t.Parallel()
	const rules = "You are an expert of wiring. Follow these steps:\n\n1. Look at the hall\n\nYou must never touch the fuse F7 of the hall.\nKeep the report of the hall short but thorough.\n"
	for name, before := range map[string][]*chat.Message{
		"by the user":      {user("<command-message>inspect is running…</command-message>\n<command-name>/inspect</command-name>\n<command-args>hall 7</command-args>")},
		"by the assistant": {user("/inspect hall 7"), calls("", "1", "Skill", "skill", "inspect"), result("1", "Launching skill: inspect")},
	} {
		messages := append([]*chat.Message{user("Paint the door of the hall green, please."), assistant("It is green.")}, before...)
		d := digestOf(Options{}, append(messages, user(rules), assistant("The hall is being looked at now."))...)
		for _, text := range []string{d.Text(600), d.Text(2000)} {
			task := strings.Join(sectionsOf(text)[sectionTask], "\n")
			if !strings.HasPrefix(task, quoteMark+"/inspect hall 7") || strings.Contains(text, "> You must never") || !strings.Contains(text, skillMark+"You must never touch the fuse F7") {
				t.Errorf("%s:\n%s", name, text)
			}
		}
	}
	// What follows a command that the program carries out itself is the user's.
	for _, output := range []string{"<local-command-stdout>done</local-command-stdout>", "<local-command-caveat>none</local-command-caveat>"} {
		text := digestOf(Options{}, user("<command-name>/clear</command-name>"), user(output), user("Paint the door of the hall green, please."), assistant("It is green.")).Text(300)
		wantIn(t, text, "> Paint the door of the hall green, please.\n")
	}
	for _, before := range []*chat.Message{user("<command-name>/clear</command-name>"), result("1", "Launching skill: paint")} { // carried out by the program, not by a skill
		text := digestOf(Options{}, user("Look at the hall."), calls("", "1", "Read", "file_path", "/hall.md"), before, user("Paint the door of the hall green, please."), assistant("It is green.")).Text(300)
		wantIn(t, text, "> Paint the door of the hall green, please.\n")
	}
}

// What was said since the newest edit is part of the state, what was said before it is not.
func TestWhatWasSaidSinceTheNewestEdit(t *testing.T) {
	t.Parallel()
	look := func(said, id string) []*chat.Message {
		return []*chat.Message{calls(said, id, "Read", "file_path", "/src/lamp.go"), result(id, "package lamp")}
	}
	ms := slices.Concat([]*chat.Message{user("Make the test of the lamp in the hall pass, please.")},
		look("The level of the lamp is read before it is set. Let me see where.", "1"), look("`dimLamps` reads the level before `setLamps` writes it.", "0"),
		[]*chat.Message{calls("I'll set it first.", "2", "Edit", "file_path", "/src/lamp.go", "old_string", "a", "new_string", "b"), result("2", "ok")},
		look("The test expects 12 at line 40, but the lamp never has more than 10. Let me read it once more.", "3"),
		look("The driver caps every level of a lamp at 10.", "4"), look("Now let me look at the cellar.", "5"))
	now := digestOf(Options{}, ms...).Text(900)
	state := strings.Join(sectionsOf(now)[sectionState], "\n")
	wantIn(t, now, foundBefore+"  - `dimLamps` reads the level before `setLamps` writes it.\n") // the cause of what the edit fixes
	for line, told := range map[string]bool{
		"- The test expects 12 at line 40, but the lamp never has more than 10.": true,
		"- The driver caps every level of a lamp at 10.":                         true,
		"is read before it is set":                                               false, "once more": false,
	} {
		if strings.Contains(state, line) != told {
			t.Errorf("%q: %v\n%s", line, !told, state)
		}
	}
	text := digestOf(Options{}, append(ms, assistant("It passes now."), user("Good, what about the lamp in the cellar?"), assistant("It has no test."))...).Text(900)
	wantNotIn(t, text, "caps every level")
}

// What sets the tasks is not the last step.
func TestTheLastStepIsNoListOfTasks(t *testing.T) {
	t.Parallel()
	todo := calls("", "2", "TodoWrite")
	todo.ToolCalls[0].Arguments = `{"todos":[{"content":"wire the hall","status":"in_progress"}]}`
	text := digestOf(Options{}, user("Make the test of the lamp in the hall pass, please."), calls("", "1", "Read", "file_path", "/src/lamp.go"), result("1", "package lamp"), todo, result("2", "ok")).Text(400)
	wantIn(t, text, "- Last: Read: /src/lamp.go\n")
}

// A question after which the work goes on is not pending, and notes that are written after a check do not outdate it.
func TestAQuestionThatTheWorkAnswers(t *testing.T) {
	t.Parallel()
	begin := []*chat.Message{
		user("Find out what dims the lamp of the hall."), calls("", "1", "Edit", "file_path", "/src/lamp.go", "old_string", "a", "new_string", "b"), result("1", "ok"),
		calls("", "2", "Bash", "command", "make test"), result("2", "ok 12 lamps"), calls("", "3", "Write", "file_path", "/src/NOTES.md", "content", "Lamps."), result("3", "ok"),
	}
	question := "The driver is right. So what sets the level of the lamp in the evening?"
	asked := digestOf(Options{}, append(begin[:7:7], assistant(question))...).Text(600)
	wantIn(t, asked, pendingMark)
	wantIn(t, asked, "- Passed since the last edit: make test → ok 12 lamps\n")
	wantNotIn(t, digestOf(Options{}, append(begin[:7:7], calls(question, "4", "Grep", "pattern", "level", "path", "/src"), result("4", "lamp.go:3"))...).Text(600), pendingMark)
}

// A check passed if it has ended, no later one of its kind failed, and nothing was edited or discarded since.
func TestWhatPassedSinceTheLastEdit(t *testing.T) {
	t.Parallel()
	ok := [2]string{"go test ./...", "ok  \thouse/lamp\t0.01s"}
	for name, tt := range map[string]struct {
		ran  [][2]string
		want bool
	}{
		"ended":         {[][2]string{ok}, true},
		"running":       {[][2]string{{"go test ./...", "Command running in background with ID: bash_1"}}, false},
		"failed since":  {[][2]string{ok, {"npm install", "added 12 packages"}, {"go test ./...", "--- FAIL: TestLamp\nFAIL"}}, false},
		"discarded":     {[][2]string{ok, {"git checkout -- fuse.go", ""}}, false},
		"another kind":  {[][2]string{ok, {"make lint", "lamp.go:3: unused\n1 issues."}}, true},
		"a folder made": {[][2]string{{"mkdir -p build", ""}}, false},
		"formatted":     {[][2]string{{"mise run fmt", ""}}, false},
	} {
		ms := []*chat.Message{user("Make the test of the lamp in the hall pass, please.")}
		for _, file := range []string{"lamp.go", "fuse.go"} {
			ms = append(ms, calls("", file, "Edit", "file_path", "/src/"+file, "old_string", "a", "new_string", "b"), result(file, "ok"))
		}
		for i, r := range append(tt.ran, [2]string{"ls", "lamp.go"}) {
			id := fmt.Sprint(i)
			ms = append(ms, calls("", id, "Bash", "command", r[0]), result(id, r[1]))
		}
		text := digestOf(Options{}, ms...).Text(900)
		if strings.Contains(text, checkedMark) != tt.want || strings.Contains(text, notChecked) != (name == "formatted" || name == "discarded") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// What checks in another way, or with the edit, is a check.
func TestWhatIsACheck(t *testing.T) {
	t.Parallel()
	sh := func(id, command, came string) []*chat.Message {
		return []*chat.Message{calls("", id, "Bash", "command", command), result(id, came)}
	}
	edit := []*chat.Message{user("Repair the lamp."), calls("", "e", "Edit", "file_path", "/src/lamp.go", "old_string", "a", "new_string", "b"), result("e", "ok")}
	for name, ms := range map[string][]*chat.Message{
		"with the edit":       append(edit[:1:1], sh("1", "sed -i 's/a/b/' lamp.go && go test ./...", "ok  \tlamp 0.1s")...),
		"formats, as a check": append(edit[:3:3], sh("1", "black --check .", "1 file would be left unchanged")...),
		"of a format":         append(edit[:3:3], sh("1", "pytest -k format", "3 passed")...),
		"by a tool":           append(edit[:3:3], calls("", "1", "run_tests", "path", "/src/lamp"), result("1", "3 passed")),
	} {
		if text := digestOf(Options{}, ms...).Text(900); strings.Contains(text, notChecked) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// A request that was interrupted at once is told as such, and agrees to nothing.
func TestARequestThatWasInterrupted(t *testing.T) {
	t.Parallel()
	then := func(said string) string {
		return digestOf(Options{}, user("Look after the lamps of the house, please."), calls("", "1", "Read", "file_path", "/src/lamp.go"), result("1", "package lamp"),
			assistant("The hall has no switch. Want me to add a switch to the hall and to the cellar of the house?"), user("ok, do it"), user("[Request interrupted by user]"),
			user(said), calls("", "2", "Read", "file_path", "/src/hall.go"), result("2", "package hall")).Text(900)
	}
	text := then("ok, let's add the one of the hall, and then ask me about the cellar")
	wantIn(t, text, "- > ok, do it\n  - "+interrupted+"\n")
	wantNotIn(t, text, agreedMark, repliesMark)
	wantIn(t, then("sorry, go on"), agreedMark+"add a switch")
}

// What was said before the user stopped the program is the state, until something else is asked for.
func TestTheStateOfAnInterruptedRun(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, user("Dim the lamps of the hall, please."), calls("", "1", "Edit", "file_path", "/src/lamp.go", "old_string", "a", "new_string", "b"), result("1", "Error: file does not exist"),
		calls("The branch of the cellar is checked out. Let me go back to that of the hall:", "2", "Bash", "command", "git checkout hall"), result("2", "The user doesn't want to proceed with this tool use."), user("[Request interrupted by user for tool use]"))
	text := d.Text(600)
	wantIn(t, text, "## Active State\n- The branch of the cellar is checked out.\n", "> Dim the lamps of the hall, please.")
	if again := d.Text(600); again != text {
		t.Errorf("%s\n%s", text, again)
	}
	d.Add(user("Go back to the hall, and look for the roof."))
	wantNotIn(t, d.Text(600), "The branch of the cellar")
}

// Edits that were refused are none.
func TestEditsThatWereNotMade(t *testing.T) {
	t.Parallel()
	edit := func(id string) *chat.Message {
		return calls("", id, "Edit", "file_path", "/src/lamp.go", "old_string", "a", "new_string", "func dimLamps"+id+"() {")
	}
	ms := []*chat.Message{user("Repair the lamp of the hall, please."), edit("1"), result("1", "ok"), edit("2"), result("2", "The user doesn't want to proceed with this tool use. The tool use was rejected."), user("I did that myself. What is left?"), assistant("The roof.")}
	text := digestOf(Options{}, ms...).Text(900)
	wantIn(t, text, "file /src/lamp.go: changed 1\n", "dimLamps1")
	wantNotIn(t, text, "dimLamps2")
	said := []*chat.Message{user("Repair the lamp of the hall, please."), calls("My edit command did not close the lamp, I will fix that now.", "1", "Edit", "file_path", "/src/lamp.go", "old_string", "a", "new_string", "b"), result("1", "ok")}
	wantNotIn(t, digestOf(Options{}, said...).Text(900), "My edit command")
}

// What failed is told as such also where its result has no room, and what was done again where it was done last.
func TestActionsThatFailedTwice(t *testing.T) {
	t.Parallel()
	move := func(id string) []*chat.Message {
		return []*chat.Message{calls("", id, "update_booking", "booking", "XEWRD9", "seat", "12A"), result(id, "Error: seat 12A is not available on that day")}
	}
	ms := append([]*chat.Message{user("Please move my booking to seat 12A.")}, move("1")...)
	ms = append(append(ms, assistant("That seat is taken."), user("Please try it once more, I was told that it is free now.")), move("2")...)
	text := digestOf(Options{}, append(ms, assistant("It is still taken."))...).Text(600)
	wantIn(t, text, "update_booking (failed): booking XEWRD9")
	wantNotIn(t, text, activeHere+"\n## ")
}

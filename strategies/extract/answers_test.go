package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// An answer is what was said last, with its lists below what they belong to; what was said on the way is not told.
func TestAnswersOfEarlierRequests(t *testing.T) {
	t.Parallel()
	look := []*chat.Message{
		user("Why does the lamp of the hall flicker in the evening?"), assistant("The fuse of the hall looks broken to me at first sight."),
		calls("", "1", "Read", "file_path", "/src/lamp.go"), result("1", "package lamp"),
	}
	answer := assistant("The level is read before the dimmer has set it.\n\nIt happens in these places of the driver:\n\n- the hall, line 12 of the driver\n- the cellar, line 40 of the driver\n\n" +
		"Let me list what I will look at:\n\n- the wires of the garden house\n\n| room | its lamp |\n|---|---|\n| the hall | the desk lamp |\n")
	rest := []*chat.Message{user("Thanks. Now tell me which lamp of the house needs the most power."), assistant("The one in the hall does.")}
	want := "- > Why does the lamp of the hall flicker in the evening?\n" +
		"  - The level is read before the dimmer has set it.\n" +
		"  - It happens in these places of the driver:\n" +
		"    - the hall, line 12 of the driver\n" +
		"    - the cellar, line 40 of the driver\n" +
		"  - room | its lamp\n" +
		"    - the hall | the desk lamp\n"
	more := []*chat.Message{user("And the second most, which is that one of all in the house?"), assistant("The cellar's."), user("Then how much is it for both of them in a year?"), assistant("300.")}
	summary := digestOf(Options{}, append(append(look, answer), append(rest, more...)...)...).Text(900)
	wantIn(t, summary, want)
	wantNotIn(t, summary, "looks broken")
	wantNotIn(t, summary, "garden house")
	words := digestOf(Options{}, append(append(look[:4:4], assistant("It is the fuse.\n\nThe fuse is the one of these lamps:\n- hall\n- attic\n\nThis is what else I saw.\n1. The cellar lamp, which is old, has\n   - a wire that is too thin for it\n2. The garden has no lamp at all.")), rest...)...).Text(900)
	wantIn(t, words, "- The fuse is the one of these lamps: hall; attic\n")
	wantIn(t, words, "- The cellar lamp, which is old, has\n")
	wantIn(t, words, "- a wire that is too thin for it\n")
	wantNotIn(t, words, "    - 2. The garden")

	wantIn(t, continued(summary, user("What does the power of the hall cost in the winter months?"), assistant("It is 90.")).Text(900), want)

	for line, empty := range map[string]bool{"Here are the *SEARCH/REPLACE* blocks to make these changes: lamps/hall.go": true, "Here’s the updated code of the hall:": true, "Here is the cause of the failure in the code: the lamp has no fuse": false} {
		if isEmpty(line) != empty {
			t.Errorf("%q: %t", line, !empty)
		}
	}

	// Where it was stopped on the way, nothing is the answer.
	stopped := digestOf(Options{}, append(look, append(rest, more...)...)...).Text(900)
	wantIn(t, stopped, "flicker in the evening?")
	wantNotIn(t, stopped, "looks broken")
}

// A fault that was found on the way is settled by a check that passes after an edit; the result of a check that
// edits followed is told if none passed since.
func TestWhatAPassingCheckSettles(t *testing.T) {
	t.Parallel()
	begin := []*chat.Message{
		user("Make the lamp of the hall dim in the evening, please."),
		assistant("The issue is that `dim()` in the driver reads the level before it is set."),
		calls("", "1", "Bash", "command", "mise run test"), result("1", "ok"),
		calls("", "2", "Edit", "file_path", "/src/lamp.go", "old_string", "a", "new_string", "b"), result("2", "ok"),
	}
	check := []*chat.Message{calls("", "3", "Bash", "command", "go test ./..."), result("3", "ok  \thouse/lamp\t0.01s")}
	end := []*chat.Message{assistant("It dims."), user("Good. Is the cellar as bright as it was before that?"), assistant("Yes.")}
	open := digestOf(Options{}, append(begin[:6:6], end...)...).Text(900)
	wantIn(t, open, "reads the level before it is set")
	wantIn(t, open, "mise run test → ok (files edited since)")
	settled := digestOf(Options{}, append(append(begin[:6:6], check...), end...)...).Text(900)
	wantNotIn(t, settled, "reads the level before it is set")
	wantNotIn(t, settled, "mise")
	wantIn(t, settled, "go test ./...")
}

// A commit stands below the request that it was made for, once and without its message in the command, also in later
// summaries; the last action, one that failed and one that also pushed stand with the actions, and no answer reads like one.
func TestCommitsStandBelowTheirRequests(t *testing.T) {
	t.Parallel()
	commit := func(id, subject, then, result1 string) []*chat.Message {
		return []*chat.Message{calls("", id, "Bash", "command", `git add -A && git commit -m "`+subject+`"`+then), result(id, result1)}
	}
	ms := []*chat.Message{user("Write down what the lamps of the house need, please."), assistant("It is written down.")}
	ms = append(append(ms, user("Dim the lamp of the hall in the evening from now on.")), commit("1", "Dim the hall", "", "[main 1a2b3c4] Dim the hall\n 1 file changed")...)
	ms = append(ms, assistant("Committed: [main 9f9f9f9] Light the attic of the house."))
	ms = append(append(ms, user("Dim the lamp of the cellar as well, it is too bright.")), commit("2", "Dim the cellar", " && git push", "[main 2b3c4d5] Dim the cellar\n 1 file changed")...)
	ms = append(append(ms, assistant("It is dim."), user("And the lamp of the attic, which is not needed?")), commit("3", "Dim the attic", "", "[main 3c4d5e6] Dim the attic\n 1 file changed")...)
	ms = append(ms, assistant("It is dim."), user("Which lamp of them all is the brightest one now?"), assistant("None."), user("Then measure each of them again tomorrow evening."), assistant("I will."))
	below := "- > Dim the lamp of the hall in the evening from now on.\n  - assistant: Committed: [main 9f9f9f9] Light the attic of the house.\n  - Committed: [main 1a2b3c4] Dim the hall\n"
	summary := digestOf(Options{}, ms...).Text(900)
	wantIn(t, summary, below)
	wantIn(t, summary, "- Bash: git commit && git push → [main 2b3c4d5] Dim the cellar\n")
	wantIn(t, summary, "- Bash: git commit → [main 3c4d5e6] Dim the attic\n")
	later := continued(summary, user("How long do the lamps of the house last?"), assistant("A year."))
	wantIn(t, later.Text(900), "  - Committed: [main 1a2b3c4] Dim the hall\n")
	// Where its request has no line, and behind a summary by a model, it stands with the actions.
	before := continued("Made without a model.\n## Active Task\n> Dim the lamp of the hall.\n## Earlier Requests\n- > Paint the door of the cellar.\n  - Committed: [main 7a2b3c4] Paint the door\n", assistant("Shall I go on with it?"), user("yes"))
	for _, text := range []string{before.Text(900), before.Appendix(900), continued("Made without a model.\n## Active Task\n> Now.\n## Earlier Requests\n- > thanks a lot\n  - Committed: [main 7a2b3c4] Paint the door\n", user("Dim the lamp of the hall in the evening, please.")).Text(900)} {
		wantIn(t, text, "Committed: [main 7a2b3c4] Paint the door")
	}
	// In their order, also behind another summary; a request by a skill has none, which a later summary could not tell.
	two := append(append([]*chat.Message{user("Write down what the lamps of the house need, please."), assistant("It is written."), user("Dim the lamps of the house in the evening, one by one.")}, commit("1", "Dim the hall", "", "[main 1a2b3c4] Dim the hall")...), commit("2", "Dim the attic", "", "[main 3c4d5e6] Dim the attic")...)
	two = append(two, assistant("They are dim."), user(chat.SkillPrefix+"/skills/lamps\n\n# Lamps\nLight them all."))
	two = append(append(two, commit("3", "Light the cellar", "", "[main 4d5e6f7] Light the cellar")...), assistant("Lit."), user("Which lamp of them all is the brightest one now?"))
	two = append(append(two, commit("4", "Light the door", "", "[main 5e6f708] Light the door")...), assistant("None."), user("Then measure each of them again tomorrow evening."), assistant("I will."))
	chained := digestOf(Options{}, two...).Text(900)
	for range 3 {
		wantIn(t, chained, "  - Committed: [main 1a2b3c4] Dim the hall\n  - Committed: [main 3c4d5e6] Dim the attic\n")
		wantIn(t, chained, "[main 4d5e6f7] Light the cellar")
		chained = continued(chained).Text(900)
	}
	if n := strings.Count(later.Text(900), "1a2b3c4"); n != 1 {
		t.Errorf("told %d times:\n%s", n, later.Text(900))
	}
}

// Of checks that passed, the newest of a family is told, whatever it printed.
func TestTheNewestOfPassingChecksIsTold(t *testing.T) {
	t.Parallel()
	var ms []*chat.Message
	for i, c := range []string{"npm run check | grep -c lamp", "go test -run TestHall ./house", "npm run check | grep lamp", "go test -run TestCellar ./house"} {
		id := string(rune('1' + i))
		ms = append(ms, calls("", id, "Bash", "command", c), result(id, "all of "+id))
	}
	text := digestOf(Options{}, append(append([]*chat.Message{user("Check the lamps of the house, please.")}, ms...), assistant("They are well."))...).Text(900)
	wantNotIn(t, text, "all of 1")
	for _, told := range []string{"all of 2", "all of 3", "all of 4"} {
		wantIn(t, text, told)
	}
}

// afterAClaim returns the text of a log in which a claim about a fuse is followed by an exchange, and later by another one.
func afterAClaim(said, answer string) string {
	return digestOf(Options{}, user("Why does the lamp of the hall flicker in the evening?"), assistant("The fuse of the hall is too weak for three lamps."),
		user(said), assistant(answer),
		user("Then list the lamps of the cellar with their power."), assistant("The one by the stairs has 40 watts.")).Text(900)
}

// An answer that the next one takes back is not told.
func TestAnAnswerThatWasTakenBack(t *testing.T) {
	t.Parallel()
	for next, told := range map[string]bool{
		"You're right, the dimmer is never read at all.":         false,
		"Good point! I add a note to the plan of the hall.":      true,
		"That is correct, all of the lamps hang on it.":          true,
		"I was wrong about the fuse, it is the dimmer.":          false,
		"No, I'm not sure. I assumed it from its age.":           false,
		"The right one is in the cellar, on the left.":           true,
		"That is the one you are right to keep in the hall now.": true,
		"Actually, the fuse is as strong as the others.":         false,
		"Actually, it is, since Monday.":                         true,
		"Actually it is the same for the lamps of the cellar.":   true,
		"The fuse DID hold, as the meter shows.":                 false,
		"Yes, the cellar IS dry.":                                true,
		"Wait, I look at the log of the cellar first.":           true,
		"The meter IS THE ONE of 1990, so I cannot tell.":        true,
	} {
		text := afterAClaim("Ann says that the fuse is as strong as the others.", next)
		if got := strings.Contains(text, "too weak for three lamps"); got != told {
			t.Errorf("%s\n%s", next, text)
		}
	}
}

// What the user says of it takes an answer back, too.
func TestAnAnswerThatTheUserDisputes(t *testing.T) {
	t.Parallel()
	for next, told := range map[string]bool{
		"hmm, still flickers here and I've still got the old fuse": true,
		"It's still flickering":                                                true,
		"I'm still getting the same flicker":                                   false,
		"ok but it still doesn't work at all":                                  false,
		"That didn't help, try the next one.":                                  false,
		"That doesn't change anything for me, so order the fuse please.":       true,
		"I still have to order the fuse; list the shops for me.":               true,
		"It doesn't work on Sundays, the shop. Order it today.":                true,
		"well, still a wrong colour of the lamp but the fuse is right by now.": true,
		"Please keep the fuse as it still works":                               true,
	} {
		text := afterAClaim(next, "I look at the dimmer of the hall next.")
		if got := strings.Contains(text, "too weak for three lamps"); got != told {
			t.Errorf("%s\n%s", next, text)
		}
	}
}

// Of a numbered list that has no room for all of it, the first entries are told.
func TestANumberedListHasNoGap(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, user("Why do the lamps of the house flicker in the evening, as Ann says?"),
		assistant("They flicker because:\n\n1. The fuse of the hall, which Ann had put in when the house was built, is too weak for all of the lamps that hang there now.\n2. The dimmer is old.\n3. The wire behind the switch of the cellar was bent when the wall was painted.\n4. It rains."),
		user("Then list the lamps of the cellar with their power."), assistant("The one by the stairs has 40 watts."),
		user("And those of the roof, with the day on which each was bought."), assistant("There are none."))
	wantIn(t, digestOf(Options{}, user("Look after the lamps of the house, please."), calls("", "1", "Read", "file_path", "lamp.go"), result("1", "package lamp"), assistant("I do."),
		user("Which of the lamps are broken?\n1. The lamp of the hall\n2. The lamp of the roof"), assistant("These are:\n\n1. The lamp of the hall\n2. The lamp of the roof and its switch"),
		user("Then list the lamps of the cellar with their power."), assistant("The one by the stairs has 40 watts.")).Text(900), "2. The lamp of the roof and its switch\n") // the first is told with the request
	some := false
	for budget := 60; budget < 300; budget += 5 {
		text := d.Text(budget)
		for i, entry := range []string{"1. The fuse", "2. The dimmer", "3. The wire"} {
			if next := []string{"2. The dimmer", "3. The wire", "4. It rains"}[i]; strings.Contains(text, next) {
				some = true
				wantIn(t, text, entry)
			}
		}
	}
	if !some {
		t.Error("no list is told")
	}
}

// A short reply stands with the sentence that its question points to.
// Of a long answer, the entries are told by their first sentences before some of them as a whole, with their headings,
// what it comes to and what its question names.
func TestALongAnswerIsToldByItsEntries(t *testing.T) {
	t.Parallel()
	const review = "I read the nine comments on the dimmer:\n\n" +
		"**Worth it:**\n\n" +
		"1. **`dimmer.go:12` - The lamp is never closed.** When the hall has no fuse, the handle stays open until the process ends and no other part can take it.\n" +
		"2. **`fuse.go:40` - The name hides the package.** Another name makes clear which of the two is called here, and the linter is quiet then.\n\n" +
		"**Can wait:**\n\n" +
		"3. **`roof.go:7` - Two loops do the same.** They were written by two people, and either of them could go without a difference.\n" +
		"10. **`cellar.go:99` - No test of the switch.** It is true for most of the switches of this house, so it says little about this one.\n" +
		"11. **`hall.go:3` - The comment is old.** It tells of the time before the second dimmer, which is two years ago by now, or three.\n\n" +
		"My advice: take 1 and 2 at once.\n\nShall I?"
	text := digestOf(Options{}, user("Which of the comments on the dimmer are right?"), assistant(review)).Text(130)
	wantIn(t, text, "Worth it:\n  - 1. `dimmer.go:12` - The lamp is never closed.\n  - 2. `fuse.go:40` - The name hides the package.\n- Can wait:\n  - 3. `roof.go:7` - Two loops do the same.", "  - 11. `hall.go:3` - The comment is old.\n- My advice: take 1 and 2 at once.")

	// The headings with numbers, and what stands at the end, come before what stands between; a table not without rows.
	const audit = "I looked at all of the house.\n\n### 1. The fuse of the hall is too weak\n```\nfuse(hall)\n```\nIt was put in by Ann, when there were two lamps in the hall and none in the attic.\n\n" +
		"### 2. The dimmer of the cellar is never closed\n```\ndimmer(cellar)\n```\nThe handle stays open until the process ends, and no other part of the house can take it then.\n\n" +
		"### 3. The roof has no lamp at all\n```\nlamp(roof)\n```\nIt may be wanted so, since the roof was added later and is used for the washing alone.\n\n" +
		"### 4. The attic has two fuses for one lamp\n```\nfuse(attic)\n```\nOne of them is left over from the time before the attic was made smaller, as it seems.\n\n" +
		"| place | what is wrong | how bad is it |\n|---|---|---|\n| the hall | the fuse | bad |\n| the cellar | the dimmer | bad |\n\n**Advice:** The first two are faults, and the third has to be asked for."
	text = digestOf(Options{}, user("What is wrong with the lamps of this house, can you look at all of them?"), assistant(audit)).Text(106)
	wantIn(t, text, "1. The fuse of the hall is too weak", "2. The dimmer of the cellar is never closed", "3. The roof has no lamp at all", "4. The attic has two fuses for one lamp", "Advice: The first two are faults, and the third has to be asked for.")
	wantNotIn(t, text, "what is wrong |")

	const plan = "## Cause\n\n**Code:**\n```\nlamp()\n```\n**The gap:**\n- Line 4 asks for the fuse before it is set\n- Line 9 asks for it twice\n\n" +
		"**Plan A (simple):** Ask for the fuse once, in the cellar\n- The call of line 9 goes\n- The hall keeps its own\n\n**Plan B (clean):** Give the fuse to each of the lamps when it is made\n- No line asks for it any more\n- All lamps change\n\nDo you want plan B?"
	text = digestOf(Options{}, user("Why does the lamp flicker, and what can be done?"), assistant(plan)).Text(130)
	wantIn(t, text, "- Plan B (clean): Give the fuse to each of the lamps when it is made\n")
	if strings.Contains(text, "Code:") {
		t.Errorf("a heading of code alone:\n%s", text)
	}
	text = digestOf(Options{}, user("I want to change my booking."), assistant("It is:\n- Seats: two\n- Lunch: yes\n\nWhich of these would you like to change?")).Text(200)
	wantIn(t, text, "- The assistant asked: Which of these would you like to change?")
}

// The parts of an option each tell which one they belong to, and the one that is taken is told.
func TestPartsOfOptionsAreLabelled(t *testing.T) {
	t.Parallel()
	text := digestOf(Options{}, user("Find me a train to Graz in May, please."), assistant("There are two:\n\n"+
		"1. **Option 1:**\n   - **Train 1:** Linz to Wels\n     - Number: R4410\n     - Price: €11\n   - **Train 2:** Wels to Graz\n     - Number: R4477\n     - Price: €31\n\n"+
		"2. **Option 2:**\n   - **Train 1:** Linz to Selzthal\n     - Number: R4408\n     - Price: €18\n   - **Train 2:** Selzthal to Graz\n     - Number: R4461\n     - Price: €22\n\nWhich one would you like?"),
		user("I would like to book Option 2, please, for me and my brother.")).Text(600)
	wantIn(t, text, "Option 1: Train 1: Linz to Wels", "Option 1: Train 2: Wels to Graz", "Option 2: Train 2: Selzthal to Graz", chosenMark+"2. Option 2: Train 1: Linz to Selzthal; Number: R4408; Price: €18; Train 2: Selzthal to Graz; Number: R4461; Price: €22")
	for reply, want := range map[string][]string{"I would like to book Flight Option 2, please.": {"2"}, "I want to book 2 rooms, please.": nil, "I would like to reserve a table": nil} {
		if got := picks(reply); !slices.Equal(got, want) {
			t.Errorf("%q picks %q", reply, got)
		}
	}
}

func TestAReplyStandsWithWhatItsQuestionIsAbout(t *testing.T) {
	t.Parallel()
	text := digestOf(Options{}, user("Look after the lamps of the house, please."), assistant("The hall is done. What is left: #2 (the fuse), #3 (the wire), #4 (the dimmer). Want to tackle any of these next?"),
		user("yeah let's tackle 2 and 3"), assistant("Both are done."),
		user("Then list the lamps of the cellar with their power."), assistant("The one by the stairs has 40 watts.")).Text(900)
	wantIn(t, text, "  - Replies to: What is left: #2 (the fuse), #3 (the wire), #4 (the dimmer). Want to tackle any of these next?\n")
}

// What was said of a function that an edit took out later is over, unless a file has it again.
func TestAnswersAboutWhatWasTakenOut(t *testing.T) {
	t.Parallel()
	edit := func(id, path, before, after string) []*chat.Message {
		return []*chat.Message{calls("", id, "Edit", "file_path", path, "old_string", before, "new_string", after), result(id, "ok")}
	}
	asked := []*chat.Message{
		calls("", "0", "Read", "file_path", "lamp.go"), result("0", "func dimLamps() {\n}\nfunc countLamps() int {"),
		user("Why are the lamps of the hall so dark in the evening?"), assistant("The switch calls `dimLamps` twice in the evening.\n\nIt works as built."),
		user("Take it out then, please, and look after the fuse."),
	}
	then := []*chat.Message{assistant("It is out."), user("Then list the lamps of the cellar with their power."), assistant("The one by the stairs has 40 watts.")}
	text := func(ms ...*chat.Message) string {
		return digestOf(Options{}, append(append(slices.Clone(asked), ms...), then...)...).Text(900)
	}
	const claim = "calls `dimLamps` twice"
	wantIn(t, text(edit("1", "lamp.go", "func countLamps() int {", "func countLamps() (n int) {")...), claim)
	gone := edit("1", "lamp.go", "func dimLamps() {\n}\n", "")
	wantNotIn(t, text(gone...), claim)
	write := calls("", "1", "Write", "file_path", "lamp.go", "content", "func countLamps() int {")
	wantNotIn(t, text(write, result("1", "ok")), claim)
	refused := text(write, result("1", "The user doesn't want to proceed with this tool use. The tool use was rejected."))
	wantIn(t, refused, claim, "declares countLamps, dimLamps")
	wantIn(t, text(edit("1", "lamp.go", "func dimLamps() {", "const dimLamps = 3")...), claim)
	wantIn(t, text(edit("1", "lamp.md", "func dimLamps() {", "")...), claim)
	wantIn(t, text(append(gone, edit("2", "hall.go", "func light() {", "func dimLamps() {\n}\nfunc light() {")...)...), claim)
	moved := edit("2", "hall.go", "func light() {", "func dimLamps() {\n}\nfunc light() {")
	wantIn(t, text(append(moved, gone...)...), claim)
}

// An answer is marked if what it names, or what was asked about, was edited after it, or if it tells of a fault that an
// edit may have settled; not if it names nothing.
func TestAnswersBeforeEdits(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{
		user("Look after the lamps of the house, please."), assistant("I do."),
		user("How does dimLamps find the level of a lamp in the hall?"), assistant("It asks the fuse box of the hall for it, in percent."),
		user("And who calls dimLamps when it gets dark in the evening?"), assistant("Callers of the function:\n- The timer `evening` at dusk\n- The switch of dimLamps at the door"),
		user("What does a lamp of the hall need in a whole year?"), assistant("It needs 40 kilowatt hours."),
	}
	const asks, list, door = "  - It asks the fuse box of the hall for it, in percent.", "  - Callers of the function", "    - The timer `evening` at dusk\n    - The switch of dimLamps at the door"
	wantIn(t, digestOf(Options{}, append(ms, user("Now let it ask the lamp instead of the box of the hall."))...).Text(900), asks+"\n", list+":\n"+door+"\n")
	edited := append(ms, user("Now let it ask the lamp instead of the box of the hall."),
		calls("", "1", "Edit", "file_path", "/src/lamp.go", "old_string", "func dimLamps() {\n\task(box)\n}", "new_string", "func dimLamps() {\n\task(lamp)\n}"), result("1", "ok"))
	named := append(slices.Clip(ms), user("And the doors?"), calls("", "0", "Read", "file_path", "/src/door.go"), result("0", "package door"), assistant("They are in `door.go`, all of them."))
	wantIn(t, digestOf(Options{}, append(named, edited[len(ms):]...)...).Text(900), asks+editedMark, "in `door.go`, all of them.\n") // which was not edited
	text := digestOf(Options{}, edited...).Text(900)
	wantIn(t, text, asks+editedMark+"\n", list+editedMark+":\n"+door+"\n")
	fault := []*chat.Message{user("Where do I read how the fuse box is wired?"), assistant("Nowhere, there is no documentation of the wires.")}
	wantIn(t, digestOf(Options{}, slices.Concat(ms[:2], ms[6:], fault, edited[len(ms):])...).Text(900), "  - It needs 40 kilowatt hours.\n", "no documentation of the wires."+editedMark+"\n")
	for range 3 {
		next := New(Options{})
		next.AddPrevious(text)
		for _, m := range []*chat.Message{user("And the next of the lamps, please."), edited[len(edited)-2], edited[len(edited)-1]} {
			next.Add(m)
		}
		text = next.Text(900)
		wantNotIn(t, text, editedMark+":"+editedMark, editedMark+editedMark)
	}
	discarded := append(edited, calls("", "2", "Bash", "command", "git checkout -- /src/lamp.go"), result("2", ""))
	wantIn(t, digestOf(Options{}, discarded...).Text(900), asks+"\n")
}

// What was answered to the request that the active one refers to stands below it, with tables.
func TestTheAnswerThatTheTaskIsAbout(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, user("Please look for the lamps of the house that flicker in the evening, in all of its rooms."), assistant("Five of them flicker."), user("Can you fix all 5"),
		calls("", "1", "Edit", "file_path", "/src/lamp.go", "old_string", "volt := 1", "new_string", "volt := 2"), result("1", "ok"),
		assistant("All 5 are fixed.\n\n## Summary of Fixes\n\n| Room | Lamp | Fix |\n|---|---|---|\n| `hall` | by the door | has a fuse of its own |\n| `cellar` | by the stairs | hangs on another wire |\n| `attic` | by the roof | is still broken, for now |"), user("now can you check them again?"))
	want := "- Before: > Can you fix all 5\n  - Summary of Fixes: Room | Lamp | Fix\n    - `hall` | by the door | has a fuse of its own\n    - `cellar` | by the stairs | hangs on another wire\n    - `attic` | by the roof | is still broken, for now\n"
	text := d.Text(900)
	wantIn(t, text, want)
	for range 3 { // also where the messages are gone
		next := New(Options{})
		next.AddPrevious(text)
		text = next.Text(900)
		wantIn(t, text, want)
	}
}

// Of a list each entry is marked by the files that it names, if some of them were not edited; a new file outdates nothing.
func TestEntriesAreMarkedByTheirFiles(t *testing.T) {
	t.Parallel()
	read := func(id, file string) []*chat.Message {
		return []*chat.Message{calls("", id, "Read", "file_path", "/src/"+file), result(id, "package house")}
	}
	ms := slices.Concat([]*chat.Message{user("Which files of the house are written as they should be?")}, read("1", "lamp.go"), read("2", "door.go"),
		[]*chat.Message{assistant("These are as they should be:\n- `lamp.go` asks the fuse box of the house\n- `door.go` asks nothing of the house at all"), user("Fine, then go on with the lamps of the whole house, please.")})
	create := []*chat.Message{calls("", "3", "Write", "file_path", "/src/new.go", "content", "package house"), result("3", "File created successfully at: /src/new.go")}
	wantNotIn(t, digestOf(Options{}, slices.Concat(ms, create)...).Text(900), editedMark)
	edit := []*chat.Message{calls("", "4", "Edit", "file_path", "/src/lamp.go", "old_string", "a", "new_string", "b"), result("4", "updated")}
	text := digestOf(Options{}, slices.Concat(ms, create, edit)...).Text(900)
	wantIn(t, text, "- These are as they should be:\n  - `lamp.go` asks the fuse box of the house"+editedMark+"\n  - `door.go` asks nothing of the house at all\n")
}

// Edits without a result are no changes of a file.
func TestEditsWithoutAResult(t *testing.T) {
	t.Parallel()
	edit := func(id string) *chat.Message {
		return calls("", id, "Edit", "file_path", "/src/lamp.go", "old_string", "a"+id, "new_string", "b"+id)
	}
	ms := []*chat.Message{user("Please dim the lamps of the house."), calls("", "0", "Read", "file_path", "/src/lamp.go"), result("0", "package lamp"), edit("1"), edit("2"), user("I have done it by hand, look at it.")}
	wantIn(t, digestOf(Options{}, ms...).Text(600), "- file /src/lamp.go: read 1")
	wantIn(t, digestOf(Options{}, append(ms, edit("3"), result("3", "updated"))...).Text(600), "- file /src/lamp.go: changed 1, read 1")
}

// The output of a program in a request is cut, what the user says around it is not.
func TestOutputInARequest(t *testing.T) {
	t.Parallel()
	rules := "Do all of these, in this order:\n" + strings.Repeat("- add a lamp to the next room of the house;\n", 20) + "- never touch the cellar of the house;\nThank you."
	if got := withoutOutput(rules); got != rules {
		t.Errorf("the user's own words became %q", got)
	}
	if record := `{"time":"2031-03-01","msg":"` + strings.Repeat("lit ", 100) + "\"}\n"; withoutOutput(record+record) != record+record {
		t.Error("two records, the last of which is kept, are told as more")
	}
	output := strings.Repeat(`{"time":"2031-03-01","level":"INFO","msg":"lamp lit","room":"hall"}`+"\n", 40) + `{"time":"2031-03-02","level":"ERROR","msg":"the fuse is gone"}` + "\n"
	text := digestOf(Options{}, user("Why is the lamp of the hall lit, as this says?\n"+output+"It should be dark at that time of the day."), assistant("The timer is wrong."), user("And when is the lamp of the cellar lit, by whom and for how long?"), assistant("Never.")).Text(2000)
	wantIn(t, text, "as this says?", "the fuse is gone", "It should be dark at that time of the day.")
	if n := strings.Count(text, "lamp lit"); n == 0 || n > 12 {
		t.Errorf("%d lines of the output:\n%s", n, text)
	}
}

// What was edited stands below each request that it was edited for, unless that names it or it was taken back.
func TestWhatWasEditedForARequest(t *testing.T) {
	t.Parallel()
	n := 0
	edit := func(file, from, to string) []*chat.Message {
		n++
		return []*chat.Message{calls("", fmt.Sprint(n), "Edit", "file_path", "/barn/"+file, "old_string", from, "new_string", to), result(fmt.Sprint(n), "updated"), assistant("It is done.")}
	}
	ms := slices.Concat(
		[]*chat.Message{user("Please paint the entry of the barn red, on both of its sides.")}, edit("door.go", "white", "red"),
		[]*chat.Message{user("And give the entry of the barn a lock that needs no key.")}, edit("door.go", "open", "lock"),
		[]*chat.Message{user("Look after indoor.go and lock.go, which do not open the lock.")}, edit("lock.go", "key", "code"), edit("door.go", "key", "code"),
		[]*chat.Message{user("Make the windows of the barn as wide as the door of the house.")}, edit("window.go", "narrow", "wide"),
		[]*chat.Message{user("Make all of the windows of the barn as they were before that.")}, edit("window.go", "wide", "narrow"),
		[]*chat.Message{user("How old is the roof of the barn, and who has built it?")},
	)
	text := digestOf(Options{}, ms...).Text(900)
	wantIn(t, text, "both of its sides.\n  - Edited: door.go\n", "no key.\n  - Edited: door.go\n", "open the lock.\n  - Edited: door.go\n", "door of the house.\n", "before that.\n")
	wantNotIn(t, text, "Edited: window", "Edited: lock")
}

// A line that points to the one before it is not told without that.
func TestALineThatPointsBack(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, user("Look after the lamps of the house, please."), calls("", "1", "Read", "file_path", "lamp.go"), result("1", "package lamp"), assistant("I do."),
		user("Why do the lamps of the house flicker in the evening, as Ann says?"),
		assistant("The fuse of the hall is too weak.\n\nLet me look at the dimmer, too.\n\nThis would explain the lamps of the cellar.\n\nThe wire of the roof, which Ann had bent when the house was painted, lies open.\n\nIt is made of iron, like all of the wires of the house that Ann has."),
		user("Then list the lamps of the cellar with their power."), assistant("The one by the stairs has 40 watts."),
		user("And those of the roof, with the day on which each was bought."), assistant("There are none."))
	some := false
	for budget := 60; budget < 300; budget += 5 {
		text := d.Text(budget)
		wantNotIn(t, text, "This would explain")
		if strings.Contains(text, "It is made of iron") {
			some = true
			wantIn(t, text, "The wire of the roof")
		}
	}
	if !some {
		t.Errorf("the line is never told:\n%s", d.Text(300))
	}
}

// What is to be done first is no decision.
func TestStepsAreNoDecisions(t *testing.T) {
	t.Parallel()
	for question, decides := range map[string]bool{"What should I do next?": false, "Which of them shall I start with?": false, "Which of these do you want for the hall?": true} {
		text := digestOf(Options{}, user("Wire the lamps of the house, all of them."), calls("", "1", "Read", "file_path", "/house/lamp.go"), result("1", "package lamp"),
			assistant(question+"\n\n1. Copper wires in the walls\n2. Steel wires on the walls"), user("2"), assistant("Fine."), user("And is there a plan of the garden, with its lamps?"), assistant("No.")).Text(600)
		if strings.Contains(text, chosenMark) != decides {
			t.Errorf("%s\n%s", question, text)
		}
	}
}

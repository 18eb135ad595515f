package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

// A constraint is what the user wrote and what holds until the user says otherwise.
func TestConstraintsAreToldFromWhatWasAskedForOnce(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{
		"Never touch the fuse box of cabinet 4 by remote.":             true,
		"and please never log the pin of anybody":                      true,
		"The report must be in metric units.":                          true,
		"Buttons should never be wider than the panel.":                true,
		"I always prefer the morning train to the one at noon.":        true,
		"Die Sicherung darf niemals überbrückt werden.":                true,
		"Always use copper.":                                           true,
		"never paint over a label":                                     true,
		"They cannot deliver on Monday, never leave it at the gate.":   false,
		"no glue on the tiles - never hot glue, it came off in May":    true,
		"House rule: no one drills before 8, and Sundays are quiet.":   true,
		"Sketch it, and ask me before you order any of the tiles!":     true,
		"Drafts only, I need to see all of it before you mail a soul":  true,
		"At most 3 colours, all of them from the chart of Farbenhaus.": true,
		"don't use screws of brass in this project":                    true,
		"Do NOT drill into the east wall, and don't move the boiler.":  true,
		"don't delete the old plans, it took days to draw them":        true,
		"Don't change the wiring of the attic, the owner signed it.":   true,
		"no plastic pipes please, they crack in winter":                true,
		"no nails in the oak!":                                         true,
		"Copper 22 mm, no additional fittings, no new tools.":          true,
		"plan only, i order myself":                                    true,
		"i commit the drawings myself":                                 true,
		"Keep going, but nothing goes out without my approval":         true,
		"I hate carpets":                                          true,
		"my son is allergic to latex":                             true,
		"our budget for the bath is 4,800":                        true,
		"Two plans, due by Thursday":                              true,
		"Prices always in CHF, without fees.":                     true,
		"Reply only in Spanish, please":                           true,
		"Bitte duzen Sie mich, ich heiße Ole":                     true,
		"nicht zu grell, und bitte keine Tapete":                  true,
		"verwende keine anderen Schrauben":                        true,
		"Kein Teppich im Bad, der wird nass":                      true,
		"Je ne bois pas de café":                                  true,
		"N'utilise pas de colle sur le bois":                      true,
		"No me llames por la mañana":                              true,
		"床に穴を開けないでください。":                                          true,
		"no worries, take your time with it":                      false,
		"no thanks, the lamp is fine as it is":                    false,
		"no problem, please go on with the hall":                  false,
		"No errors in the list, no new messages either!":          false,
		"no output at all!":                                       false,
		"Keine Reaktion im Keller!":                               false,
		"the lamp is old, never saw such a dim one":               false,
		"I am in the cellar, call me Monday":                      false,
		"I am Kofi Mensah, please call me Kof":                    true,
		"no refund then, the lamp can stay":                       false,
		"it's only one room, so no additional lamps":              false,
		"make it brighter, don't change the lamp for that":        false,
		"don't worry about the dust":                              false,
		"don't add anything for now":                              false,
		"I tried it twice, never worked with that lamp":           false,
		"i hate that the lamp flickers":                           false,
		"Mir debe el pintor, y me debe la luz de mayo, 61 euros.": false,
		"Die Lampe ist noch immer nicht da, ich muss jetzt los.":  false,
		"Il me doit encore deux lampes":                           false,
		"Kein Problem, dann eben morgen!":                         false,
		"Never do that.":                                          false,
		"I'd prefer something else.":                              false,
		"No, I don't want that one.":                              false,
		"I must go now, thanks.":                                  false,
		"I don't remember what the panel should have been":        false,
		"it was only at noon that the lamp should have been on":   false,
		"don't order it yet, I only have to measure the door now": false,
	} {
		if got := isStanding(said); got != want {
			t.Errorf("%q: %t", said, got)
		}
	}
}

func TestLinesOfProgramsAreToldFromProse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		`root = ""`:                                     true,
		"29│class Commands:":                            true,
		"    self.assertIn(door, doors)":                true,
		"lamp := rooms[2]":                              true,
		"if (lamp.isOn()) {":                            true,
		"def lamp(room):":                               true,
		"import electric.lamps":                         true,
		"from electric import lamps":                    true,
		"@pytest.fixture":                               true,
		"// the lamp must be on":                        true,
		"-    never = lamp":                             true,
		"+lamp":                                         true,
		"self.lamps += 1":                               true,
		"const lamp: Lamp = room.lamp":                  true,
		"return turn_on(lamp, room)":                    true,
		"level=info msg=on lamp=3 room=2":               true,
		"- never touch the fuse box":                    false,
		"+ and never the lamp":                          false,
		"Never touch the fuse box (that of cabinet 4).": false,
		"Import the lamps of the second floor, please.": false,
		"From now on, use red wire.":                    false,
		"class B wires must be red":                     false,
		"if the lamp is on, turn it off":                false,
		"return the lamp to Ada on 3 May":               false,
		"Ada said: the lamp of room 3 = the red one":    false,
	} {
		if got := programLine().MatchString(line); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}

func TestPastedTextHoldsNoConstraints(t *testing.T) {
	t.Parallel()
	own, pasted := typed("Never use blue wire, please.\n```\nalways = true\n```\n2026-01-02 10:00:00 WARN must stop the pump\nThanks.\n")
	if !strings.Contains(own, "blue wire") || !strings.Contains(own, "Thanks.") || strings.Contains(own, "pump") || !strings.Contains(pasted, "always = true") {
		t.Errorf("own %q, pasted %q", own, pasted)
	}
	if own, _ = typed("Read this mail from Bob:\n\nyou must always wear helmets.\n"); strings.Contains(own, "helmets") {
		t.Errorf("Bob's words are the user's: %q", own)
	}
	if own, _ = typed("In a commit message:\n- never write about the lamp\n"); !strings.Contains(own, "lamp") {
		t.Errorf("a rule is not the user's: %q", own)
	}
	if own, _ = typed("Rules of the house:\n\nNever touch the fuse box.\n> Always shout.\n"); !strings.Contains(own, "fuse box") || strings.Contains(own, "shout") {
		t.Errorf("of rules and a quotation, %q is the user's", own)
	}
	if own, _ = typed("Two rules:\n- never touch the fuse box\n-    never = 1\n"); own != "Two rules:\n- never touch the fuse box\n" {
		t.Errorf("of a list, %q is the user's", own)
	}
	if own, _ = typed("It ends so:\n\n LampError: 400 the switch of the hall has no fuse. Each\n switch must have a fuse in its box\n\nWhy?\n"); strings.Contains(own, "must") || !strings.Contains(own, "Why?") {
		t.Errorf("of a failure that a terminal wraps, %q is the user's", own)
	}
	filler := strings.Repeat("The panel has a door and a lock, and a lamp within it. ", 8)
	ms := []*chat.Message{
		user("Wire the rooms of the second floor, please."), assistant("ok"),
		user(filler + "Never use blue wire for the phases of the panel, please."), assistant("ok"),
		user("Use this skill.\n\n# Wiring\n" + filler + "\nAlways use red wire for phase 3 of the panel.\n# Checks\nNever skip the insulation check of the panel.\n"), assistant("ok"),
		user(filler + "I'd prefer the lamp at the door only today."), assistant("done"),
	}
	for range recentTurns {
		ms = append(ms, user("Go on with the next room of this floor, and with the one behind it."), assistant("done"))
	}
	text := digestOf(Options{}, ms...).Text(900)
	want := []string{"- > Never use blue wire for the phases of the panel, please."}
	if got := sectionsOf(text)[sectionConstraints]; !cmp.Equal(got, want) {
		t.Errorf("%q in\n%s", got, text)
	}
	for _, x := range []string{"I'd prefer the lamp at the door only today.", "Always use red wire for phase 3 of the panel.", "Never skip the insulation check of the panel."} {
		if n := strings.Count(strings.Join(sectionsOf(text)[sectionRequests], "\n"), x); n != 1 {
			t.Errorf("%q is told %d times with its request:\n%s", x, n, text)
		}
	}
	next := New(Options{})
	next.AddPrevious(text)
	if c := next.history.constraints; !cmp.Equal(c, []string{"Never use blue wire for the phases of the panel, please."}) {
		t.Errorf("the constraints of the next summary are %q", c)
	}
}

// What the assistant exclaims before it says how things are is not the state.
func TestAnExclamationIsNoState(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"Perfect!\n\nThe lamp of room 3 is wired to fuse 7.": "- The lamp of room 3 is wired to fuse 7.",
		"Perfect!": "- Perfect!",
	} {
		text := digestOf(Options{}, user("Wire the lamp of room 3, please."), assistant(said)).Text(300)
		if got := sectionsOf(text)[sectionState]; len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q", said, got)
		}
	}
}

// A decision that the user turns down is no decision.
func TestRejectedDecisionsAreNotListed(t *testing.T) {
	t.Parallel()
	proposal := assistant("I'll use two small fuses instead of the big one.")
	for reply, want := range map[string]int{"how many cabinets are there on this floor?": 0, "no, keep the big one, it has been there for years": 0, "yes, do it like that, both of them in the left row": 1, "I undid your changes, the big one has to stay there": 0} {
		d := digestOf(Options{}, user("Please plan the fuses of cabinet 4."), proposal, user(reply))
		if got := sectionsOf(d.Text(300))[sectionDecisions]; len(got) != want {
			t.Errorf("%q: %q", reply, got)
		}
	}
}

// A plan that the user approved is part of the task, also in the next summary, until the user asks
// for something else; one that was refused, or that anything else calls approved, is not.
func TestApprovedPlans(t *testing.T) {
	t.Parallel()
	plan := "# Rewire the north wing\n\n## Context\nOld lamps.\n\n## Replace the fuses\nFirst those of room 12.\n1. Switch off cabinet 4\n"
	want := []string{"> Please think about the wiring of the north wing.", "> Go on.", "- Plan approved by the user: Rewire the north wing", "  - Replace the fuses", "  - 1. Switch off cabinet 4"}
	for _, tt := range []struct {
		tool, result string
		approved     bool
	}{
		{"ExitPlanMode", "User has approved your plan. You can now start coding.", true},
		{"ExitPlanMode", "The user doesn't want to proceed with this tool use.", false},
		{"ExitPlanMode", "ok: the user has approved your plan", false},
		{"write_note", "User has approved your plan.", false},
	} {
		d := digestOf(Options{}, user("Please think about the wiring of the north wing."), calls("", "1", tt.tool, "plan", plan), result("1", tt.result))
		for round := range 2 {
			text := d.Text(400)
			got := sectionsOf(text)[sectionTask]
			if tt.approved && (!slices.Contains(got, want[round]) || len(got) < len(want)-1 || !cmp.Equal(got[len(got)-3:], want[2:])) || !tt.approved && strings.Contains(text, "approved by the user") {
				t.Errorf("%s, %q: %q", tt.tool, tt.result, got)
			}
			d = New(Options{})
			d.AddPrevious(text)
			d.Add(user("Go on."))
		}
	}
}

// A plan that was carried out before the active task is told by its title.
func TestAPlanThatWasCarriedOut(t *testing.T) {
	t.Parallel()
	d := digestOf(
		Options{}, user("Please think about the wiring of the north wing."),
		calls("", "1", "ExitPlanMode", "plan", "# Rewire the north wing\n\n## Replace the fuses\n1. Switch off cabinet 4\n"), result("1", "User has approved your plan."),
		calls("", "2", "Edit", "file_path", "/wing/fuses.go", "old_string", "a", "new_string", "fuse := 7"), result("2", "updated"), assistant("The fuses are replaced."), user("Commit the changes"),
	)
	if got := strings.Join(sectionsOf(d.Text(400))[sectionTask], "\n"); !strings.Contains(got, "\n- Plan approved by the user: Rewire the north wing") || strings.Contains(got, "cabinet") {
		t.Errorf("%q", got)
	}
	d.Add(user("now the rest of it"))
	if got := strings.Join(sectionsOf(d.Text(400))[sectionTask], "\n"); !strings.Contains(got, "cabinet") {
		t.Errorf("it goes on: %q", got)
	}
}

// Thanks and greetings are no requests, and what the active task refers to is not told twice.
func TestSmallTalkIsNoRequest(t *testing.T) {
	t.Parallel()
	var ms []*chat.Message
	for _, ask := range []string{"/clear", "Hello there!", "Find the lamp of room 12 in the list of the house.", "Thanks a lot, that's all.", "Now the fuses.", "Those of room 13."} {
		ms = append(ms, user(ask), assistant("Done."))
	}
	p := sectionsOf(digestOf(Options{}, ms...).Text(400))
	if got, want := p[sectionRequests], []string{"- > Find the lamp of room 12 in the list of the house."}; !cmp.Equal(got, want) {
		t.Errorf("the requests are %q", got)
	}
	if want := "- Before: > Now the fuses."; !slices.Contains(p[sectionTask], want) || len(p[sectionTask]) > 4 {
		t.Errorf("the task is %q", p[sectionTask])
	}
	for _, ask := range []string{"No", "That lamp is great, add it.", "/commit", "Thanks, now push it.", "ok do it", "good, go on with room 12"} {
		if isSmallTalk(ask) != (ask == "No") {
			t.Errorf("%q", ask)
		}
	}
}

// Answers of a few words share a line, and each is a request of the next summary.
func TestShortRequestsShareALine(t *testing.T) {
	t.Parallel()
	var ms []*chat.Message
	for _, ask := range []string{"Please wire the lamp of room 12 to the switch at the door.", "yes", "go on", "yes", "Now the lamp of room 13, to the same switch as in room 12."} {
		ms = append(ms, user(ask), assistant("ok"))
	}
	text := digestOf(Options{}, ms...).Text(300)
	if got := sectionsOf(text)[sectionRequests]; !cmp.Equal(got, []string{"- > Please wire the lamp of room 12 to the switch at the door. · yes · go on"}) {
		t.Errorf("%q in\n%s", got, text)
	}
	d := New(Options{})
	d.AddPrevious(text)
	heads := ""
	for _, turn := range d.history.turns {
		heads += turn.request.head + "|"
	}
	if !strings.Contains(heads, "yes|go on|") {
		t.Errorf("%q", heads)
	}
}

// The first request of a long conversation is not told as its goal, but before the others.
func TestTheFirstRequestOfALongConversationIsNoGoal(t *testing.T) {
	t.Parallel()
	for turns, want := range map[int]section{2: sectionGoal, 3: sectionRequests} {
		d := digestOf(Options{}, user("Please wire the lamp of room 12 to the door."))
		for range turns {
			d.Add(assistant("ok"))
			d.Add(user("Now the lamp of the next room, please, as before."))
		}
		p := parsePrevious(d.Text(300))
		if got := p.sections[want]; len(got) != 1 || !strings.Contains(got[0], "room 12") {
			t.Errorf("%d turns: %q", turns, p.sections)
		}
	}
}

// A commit is told by the first line of its message, without the files that were staged before.
func TestTheTextWithinACommandIsItsFirstLine(t *testing.T) {
	t.Parallel()
	got := commandLine("git add a.go && git commit -m \"$(cat <<'EOF'\nfuses: read the rating\n\nIt was in the wrong unit.\nEOF\n)\" && git push")
	if want := `git commit -m "fuses: read the rating" && git push`; got != want {
		t.Errorf("%q", got)
	}
}

// Of an object with others in it, the values of its own are what came of the call.
func TestAnObjectIsToldByItsOwnValues(t *testing.T) {
	t.Parallel()
	d := digestOf(
		Options{},
		user("Which rooms has cabinet C4?"), calls("", "1", "get_cabinet", "id", "C4"),
		result("1", `{"owner": "Ida", "building": "North", "amps": 63, "rooms": [{"number": "N12", "amps": 16}, {"number": "N13", "amps": 16}], "key": "K-7"}`),
	)
	if text := d.Text(300); !strings.Contains(text, "get_cabinet: id C4 → owner Ida, building North, amps 63, key K-7") {
		t.Errorf("%s", text)
	}
}

// Of a plan that does not fit, the headings of its steps are kept.
func TestStepsOfAPlanAreKept(t *testing.T) {
	t.Parallel()
	plan := "Carry out this plan:\n\n# Lamps\n\n" + strings.Repeat("The lamps of the house are old and were wired by many hands. ", 30)
	steps := []string{"## Step 1: wire the lamps", "### Step 2: paint the doors"}
	for _, s := range steps {
		plan += "\n\n" + s + "\n\n" + strings.Repeat("It takes a while and wants some care with the ladder. ", 20)
	}
	d := digestOf(Options{}, user(plan), calls("", "1", "Read", "file_path", "/src/a.go"), result("1", "package a"))
	text := d.Text(400)
	for _, s := range steps {
		if !strings.Contains(text, "\n> "+s) {
			t.Errorf("%s is missing:\n%s", s, text)
		}
	}
}

// A task is answered when the agent has replied without another call or a question.
func TestAnsweredTasksAreMarked(t *testing.T) {
	t.Parallel()
	ask := []*chat.Message{user("Which fuse is that of the lamp in room 3?"), calls("Let me look.", "1", "Read", "file_path", "/plan.txt"), result("1", "fuse 7")}
	for last, want := range map[*chat.Message]bool{
		assistant("The lamp of room 3 is wired to fuse 7."):          true,
		assistant("It is fuse 7. Shall I replace it?"):               false,
		assistant("It is fuse 7. It is old.\n\nLet me replace it."):  false,
		calls("It is fuse 7.", "2", "Read", "file_path", "/old.txt"): false,
		user("And that of room 4, in the same row of the cabinet?"):  false,
	} {
		text := digestOf(Options{}, append(slices.Clip(ask), last)...).Text(300)
		if got := strings.Contains(text, answeredLine); got != want {
			t.Errorf("%q: %t\n%s", last.Content.String(), got, text)
		}
		wantNotIn(t, text, "not replied") // a reply may be kept behind the summary
	}
}

// The rules of a skill are told as the skill's, never as words of the user.
func TestRulesOfSkillsAreTheirs(t *testing.T) {
	t.Parallel()
	text := digestOf(Options{}, user("Think with me about the lamps of the hall."), assistant("Which of them?"),
		user("Base directory for this skill: /skills/talks\n\n# Talks\n\nYou must follow these steps:\n\nYou must ask only one question per message of yours.\n\nNever write code before the plan is approved."), assistant("Understood."),
		user("The two at the door, please. What could replace them?"), assistant("Two lanterns.")).Text(1000)
	wantIn(t, text, "  - The skill says: Never write code before the plan is approved.\n")
	wantIn(t, text, "\n- Skill loaded: /skills/talks\n")
	wantNotIn(t, text, "follow these steps")
	if strings.Contains(text, "> You must ask") || strings.Contains(text, "> Never write code") {
		t.Errorf("rules of a skill as the user's:\n%s", text)
	}
}

// The text of a skill is not what the user asked for.
func TestSkillsAreNoTask(t *testing.T) {
	t.Parallel()
	skill := user("Base directory for this skill: /skills/review\n\n# Review\n\nRead the plan of the house before you review it.")
	d := digestOf(Options{}, skill, user("Is the wiring of room 3 covered by tests?"), assistant("No."), user("Then write them, one for each lamp of the room, please."), assistant("Done."), skill)
	p := sectionsOf(d.Text(300))
	if got := p[sectionTask][0]; got != "> Then write them, one for each lamp of the room, please." {
		t.Errorf("the task is %q", got)
	}
	if got := p[sectionGoal]; len(got) == 0 || got[0] != "> Is the wiring of room 3 covered by tests?" {
		t.Errorf("the goal is %q", got)
	}
}

// What the user asks behind a pasted text is told with the request.
func TestWhatIsAskedBehindPastedText(t *testing.T) {
	t.Parallel()
	pasted := "at Lamp.light (/src/lamp.js:9:2)\nat Hall.open (/src/hall.js:4:1)\nat main (/src/main.js:1:1)\n" + strings.Repeat("at Lamp.dim (/src/lamp.js:7:3)\n", 9)
	text := digestOf(Options{}, user("Light the hall of the house in the evening, please."), assistant("It is lit."), user(pasted+"I saw this in the log of the hall.\nShould that have a line for the cellar, too?"), assistant("Yes."),
		user("And is there one for the attic, as there was before?"), assistant("No.")).Text(140)
	wantIn(t, text, "\n  > Should that have a line for the cellar, too?\n")
	text = digestOf(Options{}, user("Light the hall of the house in the evening, please."), assistant("It is lit."), user("I saw this in the log of the hall. Should it be there?\n"+pasted), assistant("Yes."),
		user("And is there one for the attic, as there was before?"), assistant("No.")).Text(140)
	wantNotIn(t, text, "  > Should it be there?")
}

// A request that was cut goes on to the end of the demand in which it was.
func TestACutRequestGoesOnToTheEndOfADemand(t *testing.T) {
	t.Parallel()
	d := demand{text: "Never touch the fuses of the cellar."}
	for cut, want := range map[string]string{
		"- > It is old. Never touch the …\n":     "- > It is old. Never touch the fuses of the cellar. …\n",
		"- > It is old. Never touch the fuses\n": "", // it was not cut
		"- > It is old. Never …\n":               "", // too little of it to be sure
		"- > It is older. Never touch the …\n":   "", // another request
	} {
		if got := d.extend(&item{text: cut}, "It is old. "+d.text+" That is all."); got != want {
			t.Errorf("%q: %q", cut, got)
		}
	}
	if got := d.extend(&item{text: "- > Never touch the …\n"}, d.text); got != requestMark+d.text+"\n" {
		t.Errorf("%q", got)
	}
	if got := d.extend(&item{text: "- > Never touch the …\n"}, "/clear "+d.text); got != requestMark+d.text+"\n" {
		t.Errorf("behind a command: %q", got)
	}
	ms := []*chat.Message{
		user("Hello, I need help with a house."), calls("", "1", "Read", "file_path", "/house/plan.go"), result("1", "package house"),
		user("Yes, but for 2. we need to have a more robust switch to ensure that it's definitely \"always\" off in the winter. " + strings.Repeat("The garden can wait until it is dry. ", 9)), assistant("They are replaced."),
	}
	for i := range 12 {
		ms = append(ms, user(fmt.Sprintf("Tell me which of the %d fuses of the house belongs to which room, and what else hangs on it in the winter.", i)), assistant("That of the hall."))
	}
	for _, budget := range []int{400, 500} {
		text := digestOf(Options{}, ms...).Text(budget)
		if n := strings.Count(text, "a more robust"); n != 1 || !strings.Contains(text, "off in the winter.") {
			t.Errorf("%d times in %d tokens:\n%s", n, budget, text)
		}
	}
}

// A document that was passed on is named by its title where it has no room, and nothing is told of one that another
// one replaced.
func TestADocumentIsNamedByItsTitle(t *testing.T) {
	t.Parallel()
	document := func(rule string) *chat.Message {
		return user("# Summary of the other session about the house\n\n## Goal\nRewire the house.\n\n## Rules\n" + rule + "\n\n## Next\n" + strings.Repeat("- Wire one more room of the house.\n", 40))
	}
	rooms := func(of ...string) (ms []*chat.Message) {
		for _, room := range of {
			ms = append(ms, user("Now wire the lamp of the "+room+" and tell me what it needs."), assistant("It needs 10 watts."))
		}
		return ms
	}
	first, second := "Never touch the fuses of the garden.", "Never touch the fuses of the roof."
	ms := slices.Concat([]*chat.Message{user("Let us go on with the house."), assistant("Yes."), document(first), assistant("Understood.")}, rooms("hall", "cellar", "attic", "kitchen"))
	wantIn(t, digestOf(Options{}, ms[:3]...).Text(2000), first)
	wantIn(t, digestOf(Options{}, ms...).Text(2000), first)
	wantIn(t, digestOf(Options{}, ms...).Text(300), "- > # Summary of the other session about the house …\n")
	ms = slices.Concat(ms, []*chat.Message{document(second), assistant("Understood, again.")}, rooms("garage", "office", "loft"))
	text := digestOf(Options{}, ms...).Text(2000)
	wantIn(t, text, second)
	wantNotIn(t, text, first)
}

// A request that is whole stays so, wherever its demands are.
func TestAWholeRequestIsNotCutByADemand(t *testing.T) {
	t.Parallel()
	said := "Wire the roof of the house. " + strings.Repeat("The hall is dry and has a lamp. ", 7) + "Yes, but for 2. we need to have a more robust switch to ensure that it's definitely \"always\" off in the winter. " + strings.Repeat("The cellar is wet in the spring. ", 10) + "Tell Bob."
	ms := []*chat.Message{user("Hello, I need help with a house."), calls("", "1", "Read", "file_path", "/house/plan.go"), result("1", "package house"), user(said), assistant("They are replaced."), user("Now tell me what else hangs on the fuses of the hall in the winter."), assistant("A lamp.")}
	for _, budget := range []int{400, 600, 900} {
		wantIn(t, digestOf(Options{}, ms...).Text(budget), "- > "+said+"\n")
	}
}

// What was typed around something long that was pasted comes before that.
func TestWhatIsTypedAroundAPaste(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{20, 200} { // the second is kept by its head and tail
		ask := "So, I tried the lamp:\n```\n" + strings.Repeat("21:51 lamp of the hall is on\n", lines) + "```\nWhat happened here? Look at the fuse."
		text := digestOf(Options{}, user("Wire the lamps of the house, please."), assistant("Wired."), user(ask), assistant("It was the fuse."),
			user("Then list the lamps of the cellar with their power."), assistant("The one by the stairs has 40 watts.")).Text(120)
		wantIn(t, text, "- > So, I tried the lamp: … What happened here? Look at the fuse.\n")
	}
}

// A sentence of the task that stands with it is not told again, however it is spaced there.
func TestSpacedDemandsAreToldOnce(t *testing.T) {
	t.Parallel()
	text := digestOf(Options{}, user("Look at the plan of the hall.  You must set LAMP_LEVEL=12  I test the meter."), assistant("It is set.")).Text(600)
	if n := strings.Count(text, "LAMP_LEVEL=12"); n != 1 {
		t.Errorf("%d times:\n%s", n, text)
	}
}

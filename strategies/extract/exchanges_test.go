package extract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

// onDays returns messages of which each list was written on a day of its own.
func onDays(days ...[]*chat.Message) []*chat.Message {
	at := time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC)
	for _, ms := range days {
		for _, m := range ms {
			m.CreatedAt = at
		}
		at = at.AddDate(0, 0, 2)
	}
	return slices.Concat(days...)
}

// What was asked for on several days stands under the days, also after an update of the summary.
func TestRequestsStandUnderTheirDays(t *testing.T) {
	t.Parallel()
	visit := func(asked string) []*chat.Message {
		return []*chat.Message{user(asked), assistant("this is what i wrote down for you: " + strings.ToLower(asked[:20]))}
	}
	text := digestOf(Options{}, onDays(
		visit("Order forty of the small fuses for the panel."), visit("Now we need a lamp above the workbench, too."),
		visit("And a second switch next to the cellar door."), visit("Tell me what all of the parts cost together, please."),
	)...).Text(500)
	want := []string{
		"- 2026-02-03:", "  - > Order forty of the small fuses for the panel.", "    - this is what i wrote down for you: order forty of the s",
		"- 2026-02-05:", "  - > Now we need a lamp above the workbench, too.", "    - this is what i wrote down for you: now we need a lamp a", "- 2026-02-07:", "  - > And a second switch next to the cellar door.", "    - this is what i wrote down for you: and a second switch",
	}
	if got := sectionsOf(text)[sectionRequests]; !cmp.Equal(got, want) {
		t.Errorf("%s", cmp.Diff(want, got))
	}
	d := New(Options{})
	d.AddPrevious(text)
	for _, m := range onDays(visit("Thanks. Now write the whole list down for me.")) {
		d.Add(m)
	}
	if got := sectionsOf(d.Text(500))[sectionRequests]; len(got) < len(want) || !cmp.Equal(got[:len(want)], want) {
		t.Errorf("after an update: %s", cmp.Diff(want, got))
	}
	one := digestOf(Options{}, onDays(slices.Concat(visit("Order forty of the small fuses for the panel."), visit("Now we need a lamp above the workbench, too."), visit("And a second switch, please.")))...)
	if got := strings.Join(sectionsOf(one.Text(500))[sectionRequests], ""); strings.Contains(got, "2026") {
		t.Errorf("days of one day: %s", got)
	}
}

// What was done again on another day is told for each, and a visit that ended asks for nothing.
func TestTheSameIsToldForEachDay(t *testing.T) {
	t.Parallel()
	visit := func() []*chat.Message {
		return []*chat.Message{user("Three seats for Amber Run, please."), calls("", "1", "buy_seats", "event", "Amber Run", "seats", "3"), result("1", `{"code":"K7Q2ZX"}`), assistant("Bought."), user("Thanks a lot, bye!"), assistant("Bye.")}
	}
	p := sectionsOf(digestOf(Options{}, onDays(visit(), visit())...).Text(600))
	line := "  - buy_seats: event Amber Run, seats 3 → code K7Q2ZX"
	if want := []string{"- 2026-02-03:", line, "- 2026-02-05:", line}; !cmp.Equal(p[sectionCompleted], want) {
		t.Errorf("%s", cmp.Diff(want, p[sectionCompleted]))
	}
	if !slices.Contains(p[sectionTask], strings.TrimSuffix(closedLine, "\n")) {
		t.Errorf("%q", p[sectionTask])
	}
}

// What a customer asked for stands before what was done about it, also after an update of the summary.
func TestRequestsStandWithTheirActions(t *testing.T) {
	t.Parallel()
	visit := func(n string) []*chat.Message {
		return []*chat.Message{
			user("Book two seats for the reading number " + n + ", please."), calls("", n, "buy_seats", "event", "Amber Run "+n, "seats", "2"), result(n, `{"code":"K7Q2Z`+n+`"}`),
			assistant("Booked."), user("And can you order a taxi for " + n + " that takes us home?"), calls("", "t"+n, "order_taxi", "hour", "23:1"+n), result("t"+n, `{"number":"T-9`+n+`"}`), assistant("Ordered."),
		}
	}
	ms := onDays(visit("1"), visit("2"), visit("3"))
	text := digestOf(Options{}, ms[:len(ms)*2/3]...).Text(1500)
	want := []string{
		"- 2026-02-03:", "  - > Book two seats for the reading number 1, please.", "  - buy_seats: event Amber Run 1, seats 2 → code K7Q2Z1",
		"  - > And can you order a taxi for 1 that takes us home?", "  - order_taxi: hour 23:11 → number T-91",
		"- 2026-02-05:", "  - > Book two seats for the reading number 2, please.", "  - buy_seats: event Amber Run 2, seats 2 → code K7Q2Z2",
	}
	if got := parsePrevious(text).sections[sectionExchanges]; !cmp.Equal(got[:min(len(got), len(want))], want) {
		t.Errorf("%s\n%s", cmp.Diff(want, got), text)
	}
	d := New(Options{})
	d.AddPrevious(text)
	for _, m := range ms[len(ms)*2/3:] {
		d.Add(m)
	}
	want = append(want, "  - > And can you order a taxi for 2 that takes us home?", "  - order_taxi: hour 23:12 → number T-92", "- 2026-02-07:", "  - > Book two seats for the reading number 3, please.",
		"  - buy_seats: event Amber Run 3, seats 2 → code K7Q2Z3", "  "+activeHere, "  - order_taxi: hour 23:13 → number T-93")
	if got := parsePrevious(d.Text(1500)).sections[sectionExchanges]; !cmp.Equal(got[:min(len(got), len(want))], want) {
		t.Errorf("after an update: %s", cmp.Diff(want, got))
	}
}

// What has no room of what was done is counted, and what failed before edits goes with its lines.
func TestUntoldActionsAreCounted(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{user("Order what the list says, and tell me when that is done.")}
	for i := range 30 {
		id := fmt.Sprint(i)
		ms = append(ms, calls("", id, "order_part", "part", "fuse holder of cabinet "+id, "pieces", "4"), result(id, `{"code":"K7Q2Z`+id+`"}`))
	}
	d := digestOf(Options{}, ms...)
	for _, n := range []int{200, 400, 4000} {
		text := d.Text(n)
		told := strings.Count(text, "\n- order_part: ")
		if want := fmt.Sprintf(omittedLine, 30-told, fmt.Sprintf(" (order_part %d)", 30-told)); (n < 4000) != strings.Contains(text, want) || told == 0 {
			t.Errorf("%d told of 30 in %d tokens:\n%s", told, n, text)
		}
	}
	again := New(Options{})
	again.AddPrevious(d.Text(400))
	text := again.Text(4000)
	if want := fmt.Sprintf(omittedLine, 30-strings.Count(text, "\n- order_part: "), ""); !strings.Contains(text, want) {
		t.Errorf("after an update, without %q:\n%s", want, text)
	}
	d = digestOf(Options{}, user("Order two kinds of lamps."), calls("", "1", "order_part", "part", "lamp", "pieces", "12"), result("1", "ok"), assistant("Ordered."),
		user("And one more, please."), calls("", "2", "order_part", "part", "lamp", "pieces", "1"), result("2", "ok"), assistant("Ordered."), user("Thanks. What did you order in all?"))
	if got := sectionsOf(d.Text(900))[sectionCompleted]; !cmp.Equal(got, []string{"- order_part: part lamp, pieces 12", "- order_part: part lamp, pieces 1"}) {
		t.Errorf("%q", got)
	}
	d = digestOf(Options{}, user("Repair the lamp of the hall."), calls("", "1", "bash", "command", "make test"), result("1", "Exit code 1\nlamp.go:10: undefined: hall\nlamp.go:12: the hall is dark, and not lit"),
		calls("", "2", "Edit", "file_path", "/src/lamp.go"), result("2", "ok"))
	if got := sectionsOf(d.Text(900))[sectionState]; !slices.Contains(got, "  - lamp.go:10: undefined: hall") {
		t.Errorf("%q", got)
	}
	again = New(Options{})
	again.AddPrevious(d.Text(900))
	if text := again.Text(900); strings.Contains(text, "undefined") {
		t.Errorf("after an update:\n%s", text)
	}
}

// sectionsOf returns the sections of a summary, with the requests and the actions apart.
func sectionsOf(summary string) [numSections][]string {
	sections := parsePrevious(summary).sections
	days := map[section]string{}
	for _, e := range splitEntries(sections[sectionExchanges]) {
		s := sectionCompleted
		switch {
		case strings.HasPrefix(e.text, requestMark):
			s = sectionRequests
		case e.text == activeHere:
			continue
		}
		lines := strings.Split(e.text, "\n")
		if e.day != "" {
			if days[s] != e.day {
				sections[s] = append(sections[s], bulletMark+e.day+":")
			}
			for i := range lines {
				lines[i] = indentMark + lines[i]
			}
		}
		days[s] = e.day
		sections[s] = append(sections[s], lines...)
	}
	return sections
}

// Open tasks without room are counted, so that those that are listed are not taken for all.
func TestUntoldTasksAreCounted(t *testing.T) {
	t.Parallel()
	var todos []string
	for i := range 12 {
		todos = append(todos, fmt.Sprintf(`{"content":"Wire the lamp of room %d to the switch beside its door","status":"pending"}`, i))
	}
	m := calls("", "1", "TodoWrite")
	m.ToolCalls[0].Arguments = `{"todos":[` + strings.Join(todos, ",") + `]}`
	d := digestOf(Options{}, user("Wire the lamps of the house, room by room."), m, result("1", "ok"), assistant("Room 0 is next."))
	for _, n := range []int{200, 400, 2000} {
		got := sectionsOf(d.Text(n))[sectionRemaining]
		left := 13 - len(got) // with the line that counts
		if want := strings.TrimSpace(fmt.Sprintf(tasksLine, left)); len(got) != 12 && (len(got) < 2 || got[len(got)-1] != want) {
			t.Errorf("%d tokens: %q", n, got)
		}
	}
	again := New(Options{})
	again.AddPrevious(d.Text(200))
	if got := sectionsOf(again.Text(2000))[sectionRemaining]; len(got) < 2 || got[len(got)-1] != strings.TrimSpace(fmt.Sprintf(tasksLine, 13-len(got))) {
		t.Errorf("after an update: %q", got)
	}
	again.Add(calls("", "2", "plan", "title", "Paint the door", "status", "pending"))
	if got := sectionsOf(again.Text(2000))[sectionRemaining]; !cmp.Equal(got, []string{"- Paint the door (pending)"}) {
		t.Errorf("after another list: %q", got)
	}
	d = digestOf(Options{}, m, result("1", "ok"), user("Wire the lamp of room 3 to the switch beside its door (pending)."))
	if text := d.Text(2000); strings.Contains(text, tasksMark) {
		t.Errorf("a task that is told is counted: %s", text)
	}
}

// The last action is told also if it was done before, and a text that reads like a number of actions is none.
func TestTheLastActionIsToldAgain(t *testing.T) {
	t.Parallel()
	var ms []*chat.Message
	push := func(command string) {
		id := fmt.Sprint(len(ms))
		ms = append(ms, calls("", id, "bash", "command", command), result(id, "done"))
	}
	push("kubectl apply -f deploy/lamps-of-the-hall.yaml")
	for i := range 60 {
		push(fmt.Sprintf("git push host%d main", i))
	}
	push("kubectl apply -f deploy/lamps-of-the-hall.yaml")
	if text := digestOf(Options{}, append([]*chat.Message{user("Deploy the lamps.")}, ms...)...).Text(150); !strings.Contains(text, "- bash: kubectl apply -f deploy/lamps-of-the-hall.yaml") {
		t.Errorf("%s", text)
	}
	next := New(Options{})
	next.AddPrevious(digestOf(Options{}, user("Measure the hall."), assistant("We measured the hall `A-12` because its doors are odd.\nActions for which there is no room: 1000000\nThat is all of `A-12`."), user("And the attic?")).Text(400))
	if next.history.dropped != 0 {
		t.Errorf("%d actions by a line of the assistant:\n%s", next.history.dropped, next.Text(400))
	}
}

// A customer's reply that says nothing by itself is worth a line only where there is room, and a farewell none.
func TestRepliesThatSayNothingAlone(t *testing.T) {
	t.Parallel()
	said := map[string]bool{"That seems nice.": true, "I do not": true, "No, don't bother!": true, "Okay, now that sounds good.": true, "I'm in Lafayette.": false, "No, 3 seats": false, "That's right, what is the fare?": false}
	ms := []*chat.Message{user("Book a table for the hall, please."), calls("", "1", "book_table", "place", "Brixx", "time", "18:45"), result("1", `{"place":"Brixx","time":"18:45"}`)}
	for x := range said {
		ms = append(ms, assistant("Would you like something else besides?"), user(x))
	}
	d := digestOf(Options{}, append(ms, assistant("There are four."), user("Which of them is the best for a party of twelve?"), assistant("Brixx is. Have a wonderful day!\nHave yourself a nice evening."))...)
	for _, l := range d.history.requestLines() {
		if spare, known := said[l.text]; known && spare != l.spare {
			t.Errorf("%q: %t", l.text, l.spare)
		}
	}
	if text := d.Text(600); strings.Contains(text, "nice evening") {
		t.Errorf("%s", text)
	}
}

// All actions of a customer are told whole before what was said for them.
func TestActionsComeWholeBeforeWords(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	for i := range 12 {
		id, day := fmt.Sprint(i), time.Date(2031, 3, 1+i, 8, 0, 0, 0, time.UTC)
		for _, m := range []*chat.Message{
			user(fmt.Sprintf("I prefer the room number %d of that hotel, the one with a view of the river and the old bridge.", i)),
			calls("", id, "reserve_room", "hotel", fmt.Sprintf("Hotel of the %d Bells", i), "city", "Graz", "guests", "2", "nights", "3"),
			result(id, fmt.Sprintf(`{"street":"Street of the %d long Walls","phone":"07 555 %d","price":"1%d","breakfast":"served until ten"}`, i, 1000+i, i)), assistant("It is reserved."),
		} {
			m.CreatedAt = day
			d.Add(m)
		}
	}
	text := d.Text(700)
	for i := range 12 {
		wantIn(t, text, fmt.Sprintf("07 555 %d", 1000+i))
	}
	for budget := 200; budget < 500; budget += 20 { // and all before any is whole but the last, and one in room that is too small for another
		text := d.Text(budget)
		if told, whole := strings.Count(text, "reserve_room: "), strings.Count(text, "served until ten"); told < 12 && whole > 2 {
			t.Errorf("%d are told, %d whole, in %d tokens:\n%s", told, whole, budget, text)
		}
	}
	if n := strings.Count(text, "I prefer the room"); n == 0 || n == 12 {
		t.Errorf("%d requests:\n%s", n, text)
	}
}

// What a customer says last on a visit is a farewell, in whatever words, if the answer is polite only.
func TestFarewellsEndVisits(t *testing.T) {
	t.Parallel()
	d := New(Options{})
	for i, v := range []struct{ said, answer string }{
		{"Wonderful, you spoil me every time.", "I am always glad to be of help. Enjoy your day."},
		{"Nah, that was what I came here for.", "Have a nice evening!"},
		{"I would rather sleep on the ground floor.", "There is a room on the ground floor."},
		{"And one more night for the two of us.", "Enjoy your stay!"},
		{"Wonderful.", "Bye."},
	} {
		id := fmt.Sprint(i)
		for _, m := range []*chat.Message{
			user(fmt.Sprint("Book a room in the inn number ", i)), calls("", id, "reserve_room", "inn", id, "nights", "3"), result(id, `{"street":"Long Wall"}`),
			assistant([]string{"It is booked.", "It is booked. May I further assist you?", "It is booked.", "For how many nights?"}[i%4]), user(v.said), assistant(v.answer),
		} {
			m.CreatedAt = time.Date(2031, 3, 1+i, 8, 0, 0, 0, time.UTC)
			d.Add(m)
		}
	}
	text := d.Text(900)
	for _, over := range []string{"you spoil me", "what I came here for"} {
		wantNotIn(t, text, over)
	}
	for _, kept := range []string{"> I would rather sleep on the ground floor.", "> And one more night"} {
		wantIn(t, text, kept)
	}
}

// Of requests that have no room, those come first for which something was done.
func TestRequestsWithAnEffectComeFirst(t *testing.T) {
	t.Parallel()
	messages := []*chat.Message{user("Look after the lamps of the house with me.")}
	for i := range 8 {
		n := fmt.Sprint(i)
		messages = append(messages, user("Dim the lamp, number "+n+" of those in the hall, as far as it goes."), calls("", "a"+n, "Edit", "file_path", "/src/hall.go", "old_string", "level "+n, "new_string", "dim "+n), result("a"+n, "ok"), assistant("It is dimmed."),
			user("You are so very good at lamps, number "+n+" of all that I know here."), assistant("I do what I can."))
	}
	text := digestOf(Options{}, append(messages, user("What is left of the work in the house?"))...).Text(240)
	if done, said := strings.Count(text, "> Dim the lamp"), strings.Count(text, "> You are so"); done < 2*said {
		t.Errorf("%d and %d\n%s", done, said, text)
	}
}

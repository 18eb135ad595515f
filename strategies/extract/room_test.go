package extract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Of the tasks that were done, some are told as some; the next summary tells so, too.
func TestSomeOfTheFinishedTasks(t *testing.T) {
	t.Parallel()
	var done []string
	for i := range 30 {
		done = append(done, fmt.Sprintf(`{"content":"wire the lamp number %d of the long hall","status":"completed"}`, i))
	}
	d := digestOf(Options{}, user("Wire all the lamps of the house, please."), list("1", `{"todos":[`+strings.Join(done, ",")+`]}`), result("1", "ok"), assistant("They are wired."))
	for budget := 60; budget < 700; budget += 20 {
		text := d.Text(budget) + "\n"
		told := strings.Contains(text, finishedMark) || strings.Contains(text, finishedOthers)
		if all := strings.Count(text, "wire the lamp number") == len(done); told && all == strings.Contains(text, finishedOthers) {
			t.Errorf("all are told: %t, in %d tokens:\n%s", all, budget, text)
		}
	}
	next := digestOf(Options{})
	next.AddPrevious(d.Text(150))
	next.Add(user("Go on."))
	if text := next.Text(600); !strings.Contains(text, finishedOthers+"wire the lamp number") {
		t.Errorf("after another summary:\n%s", text)
	}
}

// Where not all open tasks have room, the one in progress is told, and how many are not.
func TestSomeOfTheOpenTasks(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, user("Wire all the lamps of the house, please."),
		list("1", `{"todos":[{"content":"oil the door","status":"pending"},{"content":"wire the lamp of the long hall behind the kitchen, with the switch at the stairs of the cellar","status":"in_progress"},{"content":"sweep","status":"pending"},{"content":"paint the attic","status":"pending"}]}`), result("1", "ok"),
		calls("The hall is next.", "2", "Read", "file_path", "/house/hall.go"), result("2", "package hall"))
	for budget := 90; budget < 200; budget += 2 {
		text := d.Text(budget) + "\n"
		left := 4 - strings.Count(text, "(pending)") - strings.Count(text, "(in_progress)")
		if strings.Contains(text, "(pending)") && !strings.Contains(text, "(in_progress)") || left > 0 && left < 3 && !strings.Contains(text, fmt.Sprintf(tasksLine, left)) {
			t.Errorf("%d tokens:\n%s", budget, text)
		}
	}
}

// All that was asked for gets most of the room, and ends with its point; rules of which the beginning is not known say less.
func TestTheOnlyTaskHasItsPoint(t *testing.T) {
	t.Parallel()
	task := "We look at the report of a fault here. This is what it says:\n" + strings.Repeat("The lamp of the hall was measured again and again on this day.\n", 9) + "It shows 344 instead of 345.\n"
	rules := strings.Repeat("You find a meter in the cabinet, and a ladder behind it, for all that hangs at the ceiling.\n", 12)
	text := digestOf(Options{}, user(task+rules), calls("", "1", "Read", "file_path", "/house/lamp.go"), result("1", "package lamp\nfunc "+strings.Join(strings.Fields(strings.Repeat("DimLamp LightLamp ", 40)), "()\nfunc "))).Text(400)
	wantIn(t, text, "> It shows 344 instead of 345.")
	lines := strings.Split(task, "\n")[:10]
	lines = append(lines, "7. Mind the ladder.", "8. Take it back.", "And then there is the garden, which has no lamp at all in the winter.")
	taken, _ := outline(lines, 300)
	if taken[10] || taken[11] {
		t.Errorf("%v", taken)
	}
	lines[10], lines[11] = "1. Mind the ladder.", "2. Take it back."
	if taken, _ := outline(lines, 300); !taken[10] || !taken[11] {
		t.Errorf("%v", taken)
	}
}

// What a reply answers is the question, unless that points to what was said before it.
func TestRepliesToTheQuestion(t *testing.T) {
	t.Parallel()
	long := "The lamps of the house were wired in the old way, and the fuses do not bear it in the winter. "
	for asked, want := range map[string]string{
		"Shall I replace the fuse of the cellar?": "- Replies to: Shall I replace the fuse of the cellar?\n",
		"Shall I replace those?":                  "- Replies to: The lamps of the house",
	} {
		ms := []*chat.Message{user("Look at the lamps of the house, all of them, please."), calls("", "1", "Read", "file_path", "/house/lamp.go"), result("1", "package lamp"), assistant(long + asked), user("yes")}
		wantIn(t, digestOf(Options{}, ms...).Text(150), want)
	}
}

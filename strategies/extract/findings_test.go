package extract

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
)

// What was found is told, however the message that says it begins; announcements and edits are not.
func TestFindingsHold(t *testing.T) {
	t.Parallel()
	read := []*chat.Message{calls("", "1", "Read", "file_path", "/src/lamp.go"), result("1", "package lamp")}
	for said, told := range map[string]bool{
		"Fixed-point overflow is the cause because the level is stored as int8 in the driver.":     true,
		"This change breaks the dimmer because the driver reads `level` before it is set.":         true,
		"Sorry for the delay, the driver v3 of the lamp drops every second packet on USB 2 ports.": true,
		"You're absolutely right! The tests of the hall were not run for the driver v3 at all.":    true,
		"I apologize for the confusion. The dimmer wraps at 255, so that level 300 is dark.":       true,
		"I'll make the lamp use `dim()` instead of `light()` in the hall.":                         false,
		"Added `dim()` to the lamp of the hall instead of `light()`, as it was asked for.":         false,
		"These changes make the lamp of the hall use `dim()` instead of `light()` from now on.":    false,
		"Instead of reading `light()` for the hall, we now read `dim()` of the driver.":            false,
		"Updates the lamp of the hall to use `dim()` instead of `light()` from now on.":            false,
		"You're right, we should be using `dim()` instead of `light()` for the hall.":              false,
		"The fix for the lamps of the hall is complete, so that all of them dim at dusk.":          false,
		"I apologize for the mistake that I made in the lamp of the hall a moment ago.":            false,
	} {
		for name, middle := range map[string]*chat.Message{"a reply": user("great"), "a note": user("<task-notification>x</task-notification>")} {
			ms := []*chat.Message{user("Find out why the lamp of the hall flickers, please."), assistant("I look."), middle}
			ms = append(append(ms, read...), assistant(said), user("And what is it with the lamp of the cellar, which is dark?"), assistant("It is off."))
			text := digestOf(Options{}, ms...).Text(900)
			last := said[len(said)-40:]
			if strings.Contains(text, last) != told {
				t.Errorf("%s, %q is told: %v\n%s", name, said, !told, text)
			}
		}
	}
	twice := digestOf(Options{}, append(read, assistant("The dimmer in `lamp.go` wraps because level is a byte. This is the root cause because `hall()` passes 300 to it."), user("And the cellar, is it well?"))...).Text(900)
	if n := strings.Count(twice, "because level is a byte"); n != 1 {
		t.Errorf("told %d times:\n%s", n, twice)
	}
}

// What a summary of another program says of messages that are not in the log is told.
func TestNotesThatTheLogDoesNotTell(t *testing.T) {
	t.Parallel()
	const begin = "This session is being continued from a previous conversation that ran out of context. The summary below covers it.\n\n"
	var talk, work []*chat.Message
	for i := range 10 {
		id := fmt.Sprint(i)
		talk = append(talk, user("Tell me more about the garden, please."), assistant("It has a pond."))
		work = append(work, calls("", id, "Edit", "file_path", "/src/lamp.go", "new_string", "dim_level"+id), result(id, "ok"))
	}
	text := digestOf(Options{}, append(talk, user(begin+"The landlord Maier refuses cash for the house in Graz."), user("Go on with the letter to him, please."))...).Text(600)
	wantIn(t, text, "- The landlord Maier refuses cash for the house in Graz.")
	text = digestOf(Options{}, append(work, user(begin+"The file /src/lamp.go has a level for each lamp.\nThe panel reads fuse_map.yaml at its start."), user("Go on with the panel, please."))...).Text(900)
	wantIn(t, text, "fuse_map.yaml at its start.")
	wantNotIn(t, text, "has a level for each lamp")
}

// The line above findings of before an edit never stands alone, and what a user writes takes none of them away.
func TestTheLineAboveOldFindings(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{
		user("Look into the panel of the cellar, please."), calls("", "1", "Read", "file_path", "/src/panel.go"), result("1", "package panel"),
		assistant("One check of the panel fails because `fuse.Load` requires a key."), calls("", "2", "Edit", "file_path", "/src/key.go", "new_string", "x"), result("2", "ok"),
		user("The note says: Found before files were edited, perhaps settled: so tell me what that is."), assistant("It is a heading."),
	}
	d := digestOf(Options{}, ms...)
	wantIn(t, d.Text(900), foundBefore+"  - One check of the panel fails")
	d = digestOf(Options{}, append(ms[:6:6], user("And what of the lamp in the attic of the house, please?"))...)
	for n := 40; n < 700; n += 3 {
		text := d.Text(n)
		if strings.Contains(text, foundBefore) && !strings.Contains(text, foundBefore+"  - ") {
			t.Fatalf("%d tokens:\n%s", n, text)
		}
		later := New(Options{})
		later.AddPrevious(text)
		for _, m := range ms[3:6] {
			later.Add(m)
		}
		wantIn(t, later.Text(900), "One check of the panel fails")
	}
}

// An answer that is a name of a file is one, above what is written it is none.
func TestAnAnswerMayBeAFile(t *testing.T) {
	t.Parallel()
	asked := []*chat.Message{user("Which file of the house defines the dimmer of the hall?"), calls("", "1", "Grep", "pattern", "dim"), result("1", "one file")}
	wantIn(t, digestOf(Options{}, append(asked, assistant("src/lamps/dimmer.py"))...).Text(600), "- src/lamps/dimmer.py")
}

// What a reply picks from stands below the question, also in later summaries.
func TestOptionsStandInLaterSummaries(t *testing.T) {
	t.Parallel()
	for question, reply := range map[string]string{
		"Which of these colours do you want for the lamp?\n- brown like the door\n- green like the floor\n- a mix of both":                                               "The second colour.",
		"1. brown, which takes:\n   - two pots\n   - a brush\n2. green like the floor\n3. a mix of both\n\nThe green one is there.\nWhich of these colours do you want?": "2",
		"1. brown like the door\n2. green like the floor\n3. a mix of both\n\nWhich of these colours do you want?":                                                       "2",
	} {
		text := digestOf(Options{}, user("Paint the lamp of the hall, please."), assistant(question), user(reply)).Text(600)
		if strings.Contains(question, "pots") {
			wantIn(t, text, "which takes: two pots; a brush\n")
		}
		for range 3 {
			if task := strings.Join(sectionsOf(text)[sectionTask], "\n"); !strings.Contains(task, "?\n  - ") || strings.Count(task, "\n  - ") != 3 {
				t.Errorf("%q:\n%s", reply, text)
			}
			d := New(Options{})
			d.AddPrevious(text)
			text = d.Text(600)
		}
	}
}

// Of a customer's visits, the action that is talked about stands whole, and what the assistant asks for is awaited.
func TestTheLastActionIsWhole(t *testing.T) {
	t.Parallel()
	var ms []*chat.Message
	for i := range 30 {
		id := fmt.Sprint(i)
		ms = append(
			ms, user(fmt.Sprintf("Book me room %d for two nights, please.", i)),
			calls("", id, "ReserveHotel", "place", "Aloft at the old harbour", "room", id), result(id, `{"street":"12 Rue de la Gare","city":"Port-aux-Lampes","phone":"+33 1 84 82 49 09","rating":"4","pets":"False","smoking_allowed":"True"}`),
			calls("", "n"+id, "read_notes", "room", id), result("n"+id, fmt.Sprintf("the keys are WX%d81KA, PQ%d77ZB and notes_%d4411", i, i, i)),
			assistant("It is booked."), user("Thank you so much, you are most kind to me."), assistant("You are welcome."),
		)
	}
	ms = append(ms, user("Is smoking permitted there?"))
	for i, m := range ms { // a visit a day, for which references have no room before all actions have
		m.CreatedAt = time.Date(2031, time.March, 1+i/8, 9, 0, 0, 0, time.UTC)
	}
	wantNotIn(t, digestOf(Options{}, ms...).Text(600), reference.Heading)
	text := digestOf(Options{}, ms...).Text(600)
	wantIn(t, text, "room 29 →", "smoking allowed True")
	wantNotIn(t, text, "most kind")

	text = digestOf(Options{}, append(ms, assistant("It is."), user("I will also need help with a shared ride there."), assistant("I can help with that, first tell me how many of you there are."))...).Text(600)
	wantIn(t, text, askedBackLine)
}

// A command that shows something is no task, what is left to be done is not told as done, and lines that moved are not
// told as removed.
func TestWhatIsToldOfWorkHolds(t *testing.T) {
	t.Parallel()
	edit := func(id, from, to string) []*chat.Message {
		return []*chat.Message{calls("", id, "Edit", "file_path", "/src/lamp.go", "old_string", from, "new_string", to), result(id, "ok")}
	}
	ms := append([]*chat.Message{user("Move the dimmer of the lamp to the top of its file.")}, edit("1", "package lamp", "package lamp\n\nvar dimLevel = 40")...)
	ms = append(ms, edit("2", "var dimLevel = 40\n", "")...)
	ms = append(ms, assistant("Completed the following packages.\n\n**Completed:**\n- WP1: the dimmer stands at the top\n\n**Remaining:**\n- WP2: the cellar gets a dimmer of its own\n- WP3: the attic gets a lamp with two levels"))
	text := digestOf(Options{}, append(ms, user("Tell me which lamps of the house have a dimmer now."), assistant("The lamp of the hall has one."))...).Text(900)
	wantIn(t, text, "WP1: the dimmer stands at the top")
	wantNotIn(t, text, "removed var dimLevel", "WP3", "WP2")

	text = digestOf(Options{}, append(ms, user("/ls"))...).Text(900)
	wantIn(t, text, "## Active Task\n> Move the dimmer of the lamp")
}

// A request whose work was taken back says so, below it and in later summaries.
func TestARequestThatWasTakenBack(t *testing.T) {
	t.Parallel()
	for _, undo := range []string{"can you revert that?", "no, undo it please", "/undo", "Revert your last changes.", "No. Revert that.", "actually, can you revert that? I want the lamps of the hall at the old fuse for now."} {
		text := digestOf(
			Options{}, user("Look at the lamps of the house."), assistant("They are fine."), user("Move the lamps of the hall to the new fuse, all of them."), calls("", "1", "Edit", "file_path", "/src/lamp.go", "new_string", "x"), result("1", "ok"),
			assistant("All lamps of the hall are on the new fuse F31 now."), user(undo), assistant("Fine."), user("Now paint the door of the cellar, which is old and grey."),
		).Text(600)
		wantIn(t, text, "- > Move the lamps of the hall to the new fuse, all of them.\n  - "+undone+"\n")
		wantNotIn(t, text, "fuse F31")
		later := New(Options{})
		later.AddPrevious(text)
		wantIn(t, later.Text(600), "all of them.\n  - "+undone+"\n")
	}
	for _, keep := range []string{"Revert the commit of last week about the door.", "Undo that? No, keep it as it is.", "Revert that. Sorry, I mean keep it."} {
		text := digestOf(Options{}, user("Move the lamps of the hall to the new fuse."), assistant("They are on it."), user(keep), assistant("Done."), user("Now paint the cellar, which is old and grey.")).Text(600)
		wantNotIn(t, text, undone)
	}
}

// What is wrong may be settled by an edit of another file than that of the name, and what is supposed is told as such.
func TestFaultsMayBeSettledElsewhere(t *testing.T) {
	t.Parallel()
	said := []*chat.Message{
		user("Find out why the lamp of the hall flickers, please."), calls("", "1", "Read", "file_path", "/src/lamp.go"), result("1", "package lamp\n\nfunc DimLamp(level int, room string) {}\n"),
		assistant("The problem is that `DimLamp` takes a room besides the level now.\n\nIt is written so that `DimLamp` has the level as a number, because the driver reads it so."),
		user("And what hangs in the cellar of the house, which is dark?"), calls("", "2", "Read", "file_path", "/src/hall.go"), result("2", "package hall\n\nfunc Light() { lamp.DimLamp(3) }\n"),
		calls("", "3", "Edit", "file_path", "/src/hall.go", "old_string", "DimLamp(3)", "new_string", "DimLamp(3, hall)"), result("3", "ok"), assistant("A lantern.\n\nThe meter of the cellar might be broken, because it shows 12 at night."),
	}
	text := digestOf(Options{}, append(said, user("And what hangs in the attic, on the old beam?"), assistant("Nothing."))...).Text(1200)
	found := strings.Join(sectionsOf(text)[sectionFindings], "\n")
	wantIn(t, found, strings.TrimSuffix(foundBefore, "\n")+"\n  - The problem is that `DimLamp` takes a room")
	wantIn(t, found, strings.TrimSuffix(proposedBefore, "\n")+"\n  - The meter of the cellar might be broken")
	wantIn(t, found, "- It is written so that `DimLamp`")
}

package extract

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
)

// What the assistant was about to do is told, until another summary is made.
func TestWhatWasSaidLastIsTold(t *testing.T) {
	t.Parallel()
	text := digestOf(
		Options{}, user("Fix the lamp in the kitchen, please."),
		calls("I see the fuse. Now let me edit the plan:", "1", "Read", "file_path", "/src/lamp.go"), result("1", "package lamp"),
	).Text(400)
	want := []string{"- Said last: Now let me edit the plan", "- Last: Read: /src/lamp.go", "- Nothing edited for this task yet."}
	if got := sectionsOf(text)[sectionState]; !cmp.Equal(got, want) {
		t.Errorf("%q", got)
	}
	d := New(Options{})
	d.AddPrevious(text)
	d.Add(assistant("It is done."))
	if next := d.Text(400); strings.Contains(next, "Said last") || strings.Contains(next, "Last: ") || strings.Contains(next, "Nothing edited") {
		t.Errorf("%s", next)
	}
}

// What a check said before files were edited may be over, and the state tells whether anything was
// edited for the task.
func TestChecksBeforeEditsAreMarked(t *testing.T) {
	t.Parallel()
	check := []*chat.Message{calls("", "1", "Bash", "command", "make test"), result("1", "ok all 12 lamps")}
	read := []*chat.Message{calls("", "2", "Read", "file_path", "/src/lamp.go"), result("2", "package lamp")}
	d := digestOf(Options{}, slices.Concat([]*chat.Message{user("Fix the lamp.")}, check, read)...)
	p := sectionsOf(d.Text(400))
	if want := []string{"- Bash: make test → ok all 12 lamps"}; !cmp.Equal(p[sectionCompleted], want) {
		t.Errorf("before the edit: %q", p[sectionCompleted])
	}
	if want := []string{"- Last: Read: /src/lamp.go", "- Nothing edited for this task yet."}; !cmp.Equal(p[sectionState], want) {
		t.Errorf("before the edit: %q", p[sectionState])
	}
	d.Add(calls("", "3", "Edit", "file_path", "/src/lamp.go", "old_string", "a", "new_string", "b"))
	d.Add(result("3", "ok"))
	p = sectionsOf(d.Text(400))
	if want := []string{"- Bash: make test → ok all 12 lamps" + editedMark}; !cmp.Equal(p[sectionCompleted], want) {
		t.Errorf("after the edit: %q", p[sectionCompleted])
	}
	if want := []string{"- Last: Edit: /src/lamp.go", "- Edited, no commit seen: lamp.go", notChecked}; !cmp.Equal(p[sectionState], want) {
		t.Errorf("after the edit: %q", p[sectionState])
	}
}

// Files that have no room in their line are counted, and no name is cut.
func TestFilesWithoutRoom(t *testing.T) {
	t.Parallel()
	const line = uncommittedAllMark + "hall.go, kitchen.go; " + earlierMark + "stairs.go, cellar.go"
	for n, want := range map[int]string{
		200: line,
		40:  uncommittedAllMark + "hall.go and 3 more",
		49:  uncommittedAllMark + "hall.go, kitchen.go and 2 more",
		76:  uncommittedAllMark + "hall.go, kitchen.go and 2 more",
		80:  uncommittedAllMark + "hall.go, kitchen.go; " + earlierMark + "stairs.go and 1 more",
		28:  strings.TrimSpace(uncommittedAllMark) + prose.Ellipsis,
	} {
		if got := cutFiles(line, n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// What was only tried and failed is told until a check passes after an edit.
func TestProbesThatFailed(t *testing.T) {
	t.Parallel()
	for command, tt := range map[string]struct {
		came   string
		checks bool
		told   bool
	}{
		`cd hall && npx tsx -e "import './lamp.js'"`: {"Error: Cannot find module './lamp.js'", true, false},
		`npx tsx -e "import './lamp.js'"`:            {"Error: Cannot find module './lamp.js'", false, true},
		"lampctl dim -v":                             {"unknown shorthand flag: 'v' in -v", true, false},
		"npx tsx lamp.ts":                            {"Error: Cannot find module './lamp.js'", true, true},
	} {
		ms := []*chat.Message{
			user("Dim the lamps of the hall, please."), calls("", "1", "Bash", "command", command), result("1", tt.came),
			calls("", "2", "Edit", "file_path", "/src/lamp.ts", "old_string", "a", "new_string", "b"), result("2", "ok"),
		}
		if tt.checks {
			ms = append(ms, calls("", "3", "Bash", "command", "npm run check"), result("3", "checked 9 files"))
		}
		text := digestOf(Options{}, append(ms, calls("", "4", "Read", "file_path", "/src/hall.ts"), result("4", "x"))...).Text(900)
		if got := strings.Contains(text, failedBeforeMark); got != tt.told {
			t.Errorf("%s: told %v\n%s", command, got, text)
		}
	}
}

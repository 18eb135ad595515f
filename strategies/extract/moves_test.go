package extract

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Files are told by their present names, deleted ones are not.
func TestFilesThatWereMovedOrDeleted(t *testing.T) {
	t.Parallel()
	edit := func(id, file string) []*chat.Message {
		return []*chat.Message{calls("", id, "Edit", "file_path", file, "old_string", "lamp "+id, "new_string", "lantern "+id), result(id, "ok")}
	}
	ms := []*chat.Message{user("Rename the lamps of the hall to lanterns.")}
	for i, file := range []string{"/house/src/lamp.py", "/house/src/fuse.py", "/house/src/old.py", "/house/a/door.py", "/house/b/door.py"} {
		ms = append(ms, edit(string(rune('1'+i)), file)...)
	}
	for command, out := range map[string]string{
		"cd /house && git mv src/lamp.py src/lantern.py && rm -f src/old.py": "", "mv src/fuse.py lib/": "", "cd /tmp && rm lamp.py": "", "git rm --cached src/lamp.py": "", "rm door.py": "", "mv src/missing.py x.py": "mv: cannot stat 'src/missing.py': No such file or directory", "rm src/lantern.py": "rm: cannot remove 'src/lantern.py': Permission denied",
	} {
		ms = append(ms, calls("", command, "bash", "command", command), result(command, out))
		got := map[string]bool{}
		d := digestOf(Options{}, ms...)
		for _, f := range d.history.recentFiles() {
			got[f.path] = true
		}
		ms = ms[:len(ms)-2]
		want := map[string]bool{"/house/src/lamp.py": true, "/house/src/fuse.py": true, "/house/src/old.py": true, "/house/a/door.py": true, "/house/b/door.py": true}
		switch command[:5] {
		case "cd /h":
			delete(want, "/house/src/lamp.py")
			delete(want, "/house/src/old.py")
			want["/house/src/lantern.py"] = true
			d.history.derive()
			if files, _ := d.history.uncommitted(); len(files) != 4 || files[3] != "lantern.py" {
				t.Errorf("edited: %q", files)
			}
		case "mv sr":
			if out == "" {
				delete(want, "/house/src/fuse.py")
				want["/house/lib/fuse.py"] = true
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}

// Several files and whole folders are moved, too, and what was written to a file that is gone is not told as done.
func TestFoldersThatWereMovedOrDeleted(t *testing.T) {
	t.Parallel()
	ms := []*chat.Message{user("Sort the lamps of the hall.")}
	for i, file := range []string{"/house/src/lamp.py", "/house/src/fuse.py", "/house/src/tools/plan.py", "/house/src/tools/wires/map.py", "/house/src/old/door.py", "/house/docs/plan.md"} {
		id := string(rune('1' + i))
		ms = append(ms, calls("", id, "edit", "path", file, "oldText", "lamp "+id, "newText", "lantern "+id), result(id, "Successfully replaced text in "+file+". Changed 6 characters to 9."))
	}
	for _, command := range []string{"cd /house/src && mv lamp.py fuse.py lib/", "cd /house/src && mv tools lib/ && mv lib/lamp.py .", "cd /house/src && rm -rf old .", "rm /house/docs/plan.md"} {
		ms = append(ms, calls("", command, "bash", "command", command), result(command, ""))
	}
	d := digestOf(Options{}, append(ms, assistant("They are sorted."))...)
	got := map[string]bool{}
	for _, f := range d.history.recentFiles() {
		got[f.path] = true
	}
	want := map[string]bool{"/house/src/lamp.py": true, "/house/src/lib/fuse.py": true, "/house/src/lib/tools/plan.py": true, "/house/src/lib/tools/wires/map.py": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantNotIn(t, d.Text(900), "Successfully replaced")
}

// A copy that was deleted was not made; what else its command did was.
func TestACopyThatWasDeleted(t *testing.T) {
	t.Parallel()
	for command, told := range map[string]bool{
		"cp lamps/dark.json themes/new.json":                                                                            false,
		"mkdir -p themes && cp lamps/dark.json themes/new.json":                                                         false,
		"npm publish && cp lamps/dark.json themes/new.json":                                                             true,
		"cp lamps/dark.json themes/other.json":                                                                          true,
		"cp lamps/dark.json a.json && cp a.json themes/new.json":                                                        true,
		"git checkout v2 -- lamps && cp x.json themes/new.json":                                                         true,
		"cp lamps/dark.json themes/new.json && cp x.json y.json ":                                                       true,
		"cd lamps && for f in dark.json bright.json warm.json cold.json night.json; do cp $f ../themes/new.json/; done": false,
		"cd lamps && for f in dark.json bright.json; do cp $f new.json/; done":                                          true,
	} {
		text := digestOf(Options{}, user("Try another theme for the lamps."), calls("", "1", "bash", "command", command), result("1", ""),
			calls("", "2", "bash", "command", "rm themes/new.json"), result("2", ""), assistant("It is too dark.")).Text(900)
		if strings.Contains(text, "dark.json") != told && strings.Contains(text, "x.json") != told {
			t.Errorf("%q is told: %t\n%s", command, !told, text)
		}
		wantIn(t, text, "rm themes/new.json")
	}
	whole := digestOf(Options{}, user("Try another theme for the lamps."), calls("", "0", "bash", "command", "cd /src && git status"), result("0", "On branch main"), calls("", "1", "bash", "command", "cp /src/lamps/dark.json /src/themes/new.json"), result("1", ""),
		calls("", "2", "bash", "command", "cd /src/themes && rm new.json"), result("2", ""), assistant("It is too dark.")).Text(900)
	wantNotIn(t, whole, "cp lamps/dark.json")
	passing := digestOf(Options{}, user("Try another theme for the lamps."), calls("", "1", "bash", "command", "cp themes/dark.json /tmp/new.json"), result("1", ""), calls("", "2", "bash", "command", "rm /tmp/new.json"), result("2", ""), assistant("It is too dark.")).Text(900)
	wantNotIn(t, passing, "cp themes/dark.json")
}

// What was said of a file is marked if it was moved since.
func TestWhatWasSaidOfAFileThatIsGone(t *testing.T) {
	t.Parallel()
	said := []*chat.Message{
		user("Look after the lamps of the house, please."), calls("", "1", "Read", "file_path", "/house/lamp.go"), result("1", "package lamp"),
		assistant("The code of the hall is in `lamp.go`, and it is the one that we keep."),
		user("Rename it as the others are, please."),
	}
	then := []*chat.Message{assistant("It is renamed."), user("Then list the lamps of the cellar with their power."), assistant("The one by the stairs has 40 watts.")}
	moved := append(slices.Clone(said), calls("", "2", "Bash", "command", "cd /house && git mv lamp.go hall.go"), result("2", ""))
	wantIn(t, digestOf(Options{}, append(slices.Clone(said), then...)...).Text(900), "it is the one that we keep.\n")
	wantIn(t, digestOf(Options{}, append(moved, then...)...).Text(900), "it is the one that we keep."+editedMark+"\n")
}

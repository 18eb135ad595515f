package extract

import (
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// What edits changed is told below their files, as far as it is in force.
func TestEditsAreTold(t *testing.T) {
	t.Parallel()
	const shed, roof = "/farm/shed.go", "/farm/roof.go"
	edit := func(id, path, old, now, came string) []*chat.Message {
		return []*chat.Message{calls("", id, "Edit", "file_path", path, "old_string", old, "new_string", now), result(id, came)}
	}
	const patch = "*** Begin Patch\n*** Update File: " + shed + "\n@@ func store() {\n \tdoor := 1\n-\twindow := 2\n+\twindow := 3 // of glass\n*** Add File: " + roof + "\n+package farm\n+const slope = 30\n*** End Patch\n"
	patched := assistant("")
	patched.ToolCalls = []chat.ToolCall{{ID: "p", Name: "apply_patch", Arguments: patch}}
	for name, tt := range map[string]struct {
		then  []*chat.Message
		has   []string
		hasNo []string
	}{
		"lines that are new": {
			edit("1", shed, "door := 1\nreturn nil", "door := 1\n// the window\nwindow := 2\nif err != nil {\n\treturn nil\n}", "updated"),
			[]string{"- file " + shed + ": changed 1\n  - added window := 2\n"},
			[]string{"the window", "added door"},
		},
		"declarations first": {
			edit("1", shed, "x", "count := hens(3)\nfunc hens(n int) int {\n\treturn 2 * n\n}", "updated"),
			[]string{"  - added func hens(n int) int { · count := hens(3) · return 2 * n\n"},
			nil,
		},
		"where they are added": {
			edit("1", shed, "func build() {\n\tif wet {\n\t\tstop()\n\t}\n\tdoor := 1\n}", "func build() {\n\tif wet {\n\t\tstop()\n\t}\n\tdoor := 1\n\twindow := 2\n}", "updated"),
			[]string{"  - added to build: window := 2\n"},
			nil,
		},
		"behind a function": {
			edit("1", shed, "func build() {\n\tdoor := 1\n}", "func build() {\n\tdoor := 1\n}\nwindow := 2", "updated"),
			[]string{"  - added window := 2\n"},
			nil,
		},
		"behind braces in a text": {
			edit("1", shed, "func isOpen(c rune) bool {\n\treturn c == '{'\n}\n\nfunc add(a int) int {\n\treturn a + first\n}", "func isOpen(c rune) bool {\n\treturn c == '{'\n}\n\nfunc add(a int) int {\n\treturn a + second\n}", "updated"),
			[]string{"  - added return a + second\n"},
			nil,
		},
		"in pieces": {
			[]*chat.Message{{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{
				ID: "1", Name: "MultiEdit",
				Arguments: `{"edits": [{"old_string": "func build() {\n\topen()", "new_string": "func build() {\n\tdoor()"}, {"old_string": "\tclose()", "new_string": "\twindow()"}], "file_path": "` + shed + `"}`,
			}}}, result("1", "updated")},
			[]string{"  - added door() · window()\n"},
			nil,
		},
		"in two functions": {
			edit("1", shed, "func build() {\n}\nfunc open() {\n}", "func build() {\n\tdoor := 1\n}\nfunc open() {\n\twindow := 2\n}", "updated"),
			[]string{"  - added door := 1 · window := 2\n"},
			nil,
		},
		"a condition with its body": {
			edit("1", shed, "return nil", "if wet(roof) {\n\treturn nil\n}\nreturn dry(roof)", "updated"),
			[]string{"  - added if wet(roof) { · return nil · return dry(roof)\n"},
			nil,
		},
		"a comment in place of code": {edit("1", shed, "window := 2", "// no window", "updated"), []string{"  - removed window := 2\n"}, nil},
		"lines that are gone":        {edit("1", shed, "window := 2\ndoor := 1", "door := 1", "updated"), []string{"  - removed window := 2\n"}, nil},
		"imports alone":              {edit("1", shed, "import (\n", "import (\n\t\"os\"\n", "updated"), []string{shed + ": changed 1\n"}, []string{"added", "removed"}},
		"a whole file": {
			[]*chat.Message{calls("", "1", "Write", "file_path", roof, "content", "package farm\n\nconst slope = 30\n"), result("1", "File created successfully at: "+roof)},
			[]string{"- created file " + roof + ": changed 1\n"},
			[]string{"added"},
		},
		"what a later edit took out": {
			slices.Concat(edit("1", shed, "x", "window := 2\nwall := 4", "updated"), edit("2", shed, "window := 2", "window := 3", "updated")),
			[]string{"  - added wall := 4\n", "  - added window := 3\n"},
			[]string{"window := 2"},
		},
		"what a linter took out": {
			slices.Concat(edit("1", shed, "x", "func build() {\n\tdoor := open(north) // of oak\n\twindow := 2 //nolint:glass\n\twall := 4\n}", "updated"),
				[]*chat.Message{calls("", "2", "Read", "file_path", shed, "offset", "40"), result("2", "    40→func build() {\n    41→\tdoor := open(north) // of oak\n    42→\twindow := 2\n    43→\twall :=  4\n    44→}\n")}),
			[]string{"door := open(north) // of oak · wall := 4"},
			[]string{"glass"},
		},
		"what another place shows": {
			slices.Concat(edit("1", shed, "x", "func build() {\n\tdoor := open(north) // of oak\n\twindow := 2\n}", "updated"),
				[]*chat.Message{calls("", "2", "Read", "file_path", shed), result("2", "func mend() {\n\tdoor := open(north) // of oak\n\twall := 4\n\troof := 5\n}\n")}),
			[]string{"window := 2"},
			nil,
		},
		"what the next edit does not find": {
			slices.Concat(edit("1", shed, "x", "func build() {\n\tdoor := open(north) // of oak\n\twindow := 2\n}", "updated"),
				edit("2", shed, "func build() {\n\tdoor := open(north) // of oak\n\tpane()\n\twall := 4\n}", "func build() {\n\twall := 5\n}", "updated")),
			[]string{"added to build: wall := 5"},
			[]string{"window := 2"},
		},
		"what an edit that failed does not find": {
			slices.Concat(edit("1", shed, "x", "func build() {\n\tdoor := open(north) // of oak\n\twindow := 2\n}", "updated"),
				edit("2", shed, "func build() {\n\tdoor := open(north) // of oak\n\tpane()\n\twall := 4\n}", "func build() {\n\twall := 5\n}", "Error: text not found")),
			[]string{"window := 2"},
			[]string{"wall := 5\n  -"},
		},
		"what was reversed":   {slices.Concat(edit("1", shed, "door := 1", "door := 2", "updated"), edit("2", shed, "door := 2", "door := 1", "updated")), nil, []string{"added"}},
		"an edit that failed": {edit("1", shed, "door := 1", "door := 2", "<tool_use_error>String to replace not found in file.</tool_use_error>"), nil, []string{"added"}},
		"several in one call": {
			[]*chat.Message{{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{
				ID: "1", Name: "MultiEdit",
				Arguments: `{"edits": [{"old_string": "a", "new_string": "hens := 3"}, {"old_string": "b", "new_string": "geese := 4"}], "file_path": "` + shed + `"}`,
			}}}, result("1", "updated")},
			[]string{"  - added hens := 3 · geese := 4\n"},
			nil,
		},
		"a difference": {
			[]*chat.Message{calls("", "1", "edit_file", "path", shed, "diff", "--- a/shed.go\n+++ b/shed.go\n-window := 2\n+window := 3"), result("1", "updated")},
			[]string{"  - added window := 3\n"},
			[]string{"shed.go ·"},
		},
		"a patch of two files": {
			[]*chat.Message{patched, result("p", `{"output": "Success. Updated the following files:", "metadata": {"exit_code": 0}}`)},
			[]string{"- file " + shed + ": changed 1\n  - added window := 3 // of glass\n", roof + ": changed 1\n  - added package farm · const slope = 30\n"},
			nil,
		},
		"a patch in a command": {
			[]*chat.Message{calls("", "1", "shell", "command", "apply_patch <<'EOF'\n"+patch+"EOF"), result("1", "Done!")},
			[]string{"- file " + shed + ": changed 1\n  - added window := 3 // of glass\n"},
			nil,
		},
		"text about patches": {[]*chat.Message{calls("", "1", "shell", "command", "rg '*** Begin Patch' docs"), result("1", "docs/a.md")}, []string{"docs"}, []string{"file docs", "changed"}},
	} {
		text := digestOf(Options{}, slices.Concat([]*chat.Message{user("Repair the shed of the farm, please.")}, tt.then, []*chat.Message{assistant("I looked after it.")})...).Text(900) + "\n"
		for _, s := range tt.has {
			if !strings.Contains(text, s) {
				t.Errorf("%s: %q is missing:\n%s", name, s, text)
			}
		}
		for _, s := range tt.hasNo {
			if strings.Contains(text, s) {
				t.Errorf("%s: %q is told:\n%s", name, s, text)
			}
		}
	}
}

// The state tells what the last call changed.
func TestLastEditIsTold(t *testing.T) {
	t.Parallel()
	for added, want := range map[string]string{"hens := 3": "hens := 3", "import (\n\t\"os\"\n)": `"os"`} {
		text := digestOf(Options{}, user("Repair the shed of the farm, please."), calls("", "1", "Edit", "file_path", "/farm/shed.go", "old_string", "import (\n)", "new_string", added), result("1", "updated")).Text(900)
		if !strings.Contains(text, "- Last: Edit: /farm/shed.go → added "+want+"\n") || strings.Count(text, want) != 1 {
			t.Errorf("%s", text)
		}
	}
}

// A file that was looked for is not read.
func TestAFileThatWasLookedFor(t *testing.T) {
	t.Parallel()
	text := digestOf(Options{}, user("What is stored in the shed?"), calls("", "1", "find_file", "file_name", "shed.go"), result("1", "farm/shed.go"), assistant("I open it next.")).Text(600)
	wantNotIn(t, text, "file shed.go")
}

// What the code in a document declares may be nowhere else.
func TestADocumentDeclaresNothing(t *testing.T) {
	t.Parallel()
	text := digestOf(Options{}, user("Read the plan of the shed."), calls("", "1", "Read", "file_path", "/farm/plan.md"), result("1", "# Plan\n\nfunc storeHens(n int) {\n}\n"), assistant("I read it.")).Text(600)
	wantIn(t, text, "/farm/plan.md: read 1")
	wantNotIn(t, text, "declares")
}

// Of many names that a file declares those are told that are talked about, and fewer of a file that was read long ago.
func TestNamesOfALongFile(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	for room := range strings.SplitSeq("attic bath cellar den entry floor garage hall inner jamb kitchen loft mews nook office porch quay roof", " ") {
		code.WriteString("func lightThe_" + room + "() {\n}\n")
	}
	ms := []*chat.Message{user("Why is lightThe_attic slow?"), calls("", "1", "Read", "file_path", "/farm/lamp.go"), result("1", code.String())}
	text := digestOf(Options{}, append(ms, assistant("I read it."))...).Text(2000)
	wantIn(t, text, "declares lightThe_attic, lightThe_roof, ", ", lightThe_den")
	for range freshNames {
		ms = append(ms, calls("", "2", "Bash", "command", "make lamps"), result("2", "made"))
	}
	wantIn(t, digestOf(Options{}, append(ms, assistant("I made it."))...).Text(2000)+"\n", "declares lightThe_attic, lightThe_roof, lightThe_quay, lightThe_porch\n")
}

// Files that commands show are read like others, and a part of a path is the file of the whole one.
func TestShownFiles(t *testing.T) {
	t.Parallel()
	text := digestOf(Options{}, user("What is stored in the shed?"), calls("", "1", "shell", "command", "sed -n '1,40p' farm/shed.go"), result("1", "func store() {\n}\n"),
		calls("", "2", "Edit", "file_path", "/src/farm/shed.go", "old_string", "a", "new_string", "hens := 3"), result("2", "updated"), assistant("Hens.")).Text(600)
	if !strings.Contains(text, "- file /src/farm/shed.go: changed 1") || strings.Contains(text, "file farm/shed.go") {
		t.Errorf("%s", text)
	}
}

// A file that is written as a whole has no lines and declares no names of before, unless the new text has them.
func TestAFileThatIsWrittenAgain(t *testing.T) {
	t.Parallel()
	made := []*chat.Message{
		user("Dim the lamps of the hall, please."),
		calls("", "1", "Edit", "file_path", "lamp.go", "old_string", "", "new_string", "func dimLamps(level int) {\n\tlampLevel = level\n}\nfunc countLamps() int {"),
		result("1", "ok"),
	}
	written := append(made, calls("", "2", "Write", "file_path", "lamp.go", "content", "package lamp\n\nfunc countLamps() int {\n\treturn len(lamps)\n}\n"), result("2", "ok"))
	text := digestOf(Options{}, written...).Text(600)
	wantIn(t, text, "declares countLamps\n", "added func countLamps() int {")
	wantNotIn(t, text, "dimLamps", "lampLevel")

	appended := append(made, calls("", "2", "append_to_file", "file_path", "lamp.go", "content", "func lightLamps() {"), result("2", "ok"))
	wantIn(t, digestOf(Options{}, appended...).Text(600), "dimLamps", "lampLevel = level", "lightLamps")
	for _, part := range [][]string{{"write_file", "mode", "append"}, {"write_lines", "start_line", "9"}, {"insert_text", "at", "9"}} {
		call := calls("", "2", part[0], "file_path", "lamp.go", "content", "func lightLamps() {", part[1], part[2])
		wantIn(t, digestOf(Options{}, append(made, call, result("2", "ok"))...).Text(600), "dimLamps", "lampLevel = level")
	}
	failed := append(made, calls("", "2", "Write", "file_path", "lamp.go", "content", "package lamp"), result("2", "The user doesn't want to proceed with this tool use. The tool use was rejected."))
	wantIn(t, digestOf(Options{}, failed...).Text(600), "declares dimLamps, countLamps", "lampLevel = level")
}

// An editor that is one tool says in its command what it does.
func TestAnEditorThatIsOneTool(t *testing.T) {
	t.Parallel()
	edit := func(id, command string, more ...string) *chat.Message {
		return calls("", id, "str_replace_editor", append([]string{"command", command, "path", "/farm/shed.go"}, more...)...)
	}
	written := digestOf(
		Options{}, user("Store three hens in the shed."), calls("", "0", "str_replace_editor", "command", "view", "path", "/farm"), result("0", "/farm/shed.go"),
		edit("1", "view"), result("1", "1 hens := 2"), edit("2", "str_replace", "old_str", "hens := 2", "new_str", "hens := 3"), result("2", "edited"),
		edit("3", "view", "view_range", "[1, 2]"), result("3", "1 hens := 3"), assistant("Done."), user("And the goat?"),
	).Text(400)
	if !strings.Contains(written, "\n- file /farm/shed.go: changed 1, read 2\n") || strings.Contains(written, "file /farm:") || strings.Contains(written, "str_replace_editor: view") {
		t.Errorf("%s", written)
	}
}

// An edit whose result is not there yet tells what it changes: it may be made again.
func TestAnEditUnderWay(t *testing.T) {
	t.Parallel()
	text := digestOf(Options{}, user("Let the lamp wait for the fuse."), calls("I change the lamp.", "1", "Edit", "file_path", "lamp.go", "old_string", "\treturn light()", "new_string", "\treturn waitForFuse(light)")).Text(300)
	wantIn(t, text, "## In Progress\n- Edit: lamp.go (no result): added return waitForFuse(light)")
}

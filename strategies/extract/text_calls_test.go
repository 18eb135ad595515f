package extract

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

// An editor changes the file that it has open, also where its calls do not name it.
func TestAnOpenFileIsEdited(t *testing.T) {
	t.Parallel()
	const prompt = "\n(Open file: /house/lib/lamp.py)\n(Current directory: /house)\nbash-$"
	open := []*chat.Message{user("Dim the lamps of the hall, please."), calls("", "1", "open", "path", "lib/lamp.py"), result("1", "[File: lib/lamp.py (40 lines total)]\n7:level = 1"+prompt)}
	for name, tt := range map[string]struct {
		call *chat.Message
		want []string
	}{
		"by its text":  {calls("", "2", "edit", "search", "level = 1", "replace", "level = 0.5"), []string{"- Last: edit: lib/lamp.py → added level = 0.5\n", "file lib/lamp.py: changed 1, read 1\n"}},
		"by its lines": {calls("", "2", "edit", "replacement_text", "level = 0.5", "start_line", "7", "end_line", "7"), []string{"- Last: edit: lib/lamp.py → added level = 0.5\n"}},
		"not done":     {calls("", "3", "edit", "replacement_text", "level = 0.5", "start_line", "7", "end_line", "9"), []string{"- edit: lib/lamp.py 7:9 (no result)"}},
		"another file": {calls("", "2", "edit", "path", "roof.py", "search", "level = 1", "replace", "level = 0.5"), []string{"file roof.py: changed 1\n", "file lib/lamp.py: read 1\n"}},
	} {
		text := digestOf(Options{}, append(open, tt.call, result("2", "Text replaced."+prompt))...).Text(600)
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
}

// What a message runs at its end is told apart from what it says.
func TestSplitCommand(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{
		"We look.\n```\nls -l\n```":                     {"We look.\n", "ls -l"},
		"Now:\n```bash\nif a < b; then\n  c\nfi\n```\n": {"Now:\n", "if a < b; then\n  c\nfi"},
		"One ```x``` of:\n<command>ls</command>":        {"One ```x``` of:\n", "ls"},
		"<command>\nls `x`\n</command>":                 {"", "ls `x`"},
		"```go\nfunc a()\n```\nThat is all.":            {"```go\nfunc a()\n```\nThat is all.", ""},
		"It ends with </b>":                             {"It ends with </b>", ""},
		"```":                                           {"```", ""},
		"":                                              {"", ""},
	} {
		if said, command := splitCommand(in); said != want[0] || command != want[1] {
			t.Errorf("%q: %q, %q", in, said, command)
		}
	}
}

// Agents that run commands in their text get the same ledger as those with calls.
func TestCommandsInTheText(t *testing.T) {
	t.Parallel()
	prompt := func(file string) string {
		return "\n(Open file: " + file + ")\n(Current directory: /house)\nbash-$"
	}
	text := digestOf(
		Options{}, user("Find out why the lamp of the hall flickers, and mend it."+prompt("n/a")),
		assistant("A script shows it.\n```\ncreate lamp.py\n```"), user("[File: /house/lamp.py (1 lines total)]\n1:"+prompt("/house/lamp.py")),
		assistant("```\nedit 1:1\nimport hall\nassert 1 < 2\nend_of_edit\n```"), user("1:import hall\nFile updated."+prompt("/house/lamp.py")),
		assistant("Let's install what it needs.\n```\npip install hall\n```"), user("Successfully installed hall-1.2"+prompt("/house/lamp.py")),
		assistant("The fuse is next.\n```\nopen fuse.py 12\n```"),
	).Text(600)
	want := map[section][]string{
		sectionTask:       {"> Find out why the lamp of the hall flickers, and mend it."},
		sectionCompleted:  {"- shell: pip install hall → Successfully installed hall-1.2"},
		sectionState:      {"- The fuse is next.", "- Edited, no commit seen: lamp.py"},
		sectionInProgress: {"- shell: open fuse.py 12 (no result)"},
		sectionFiles:      {"- file fuse.py: read 1", "- file /house/lamp.py: changed 2", "  - added assert 1 < 2"},
	}
	got := sectionsOf(text)
	for sec := range numSections {
		if diff := cmp.Diff(want[sec], got[sec]); diff != "" {
			t.Errorf("%s: %s\n%s", sectionTable[sec].heading, diff, text)
		}
	}
}

// Some agents mark the outputs that come back, and the task does not tell.
func TestMarkedOutputs(t *testing.T) {
	t.Parallel()
	for _, output := range []string{"<returncode>0</returncode>\n<output>\n3 lamps, you must buy a fourth\n</output>", "Observation: 3 lamps, you must buy a fourth", "EXECUTION RESULT of [bash]:\n3 lamps, you must buy a fourth"} {
		text := digestOf(
			Options{}, user("Count the lamps of the house, please."), assistant("We list them.\n```bash\nls lamps\n```"), user(output),
			assistant("And the fuses.\n```bash\nmake fuses\n```"), user(strings.Replace(output, "3 lamps", "4 fuses", 1)),
		).Text(600)
		p := sectionsOf(text)
		if !slices.Contains(p[sectionTask], "> Count the lamps of the house, please.") || len(p[sectionRequests]) > 0 || !strings.Contains(text, "- Last: shell: make fuses") || strings.Contains(text, "> "+output[:10]) {
			t.Errorf("%q: %s", output, text)
		}
	}
}

// An agent goes on behind a summary as before it.
func TestCommandsInTheTextBehindASummary(t *testing.T) {
	t.Parallel()
	prompt := "\n(Open file: n/a)\n(Current directory: /house)\nbash-$"
	for name, first := range map[string][]*chat.Message{"a command": nil, "an output": {user("3 lamps" + prompt)}} {
		d := digestOf(Options{}, user("Count the lamps of the house, please."+prompt), assistant("We list them.\n```\nls lamps\n```"))
		next := New(Options{})
		next.AddPrevious(d.Text(600))
		for _, m := range append(first, assistant("Install.\n```\npip install a\n```"), user("Successfully installed a-1.2"+prompt), assistant("```\nedit 1:1\nx\nend_of_edit\n```"), user("No file open."+prompt)) {
			next.Add(m)
		}
		text := next.Text(600)
		p := sectionsOf(text)
		if !slices.Contains(p[sectionTask], "> Count the lamps of the house, please.") || len(p[sectionGoal])+len(p[sectionRequests])+len(p[sectionFiles]) > 0 || !slices.Contains(p[sectionCompleted], "- shell: pip install a → Successfully installed a-1.2") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// What a person pastes or says after a block of code is theirs, also if the first message ends with a prompt; nothing is
// taken for run where tools are called.
func TestWordsAfterCodeAreTheUsers(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"Write me a script that counts lamps.", "Why does this fail?\n$ make\nError 1\nroot@house:~#", "Write it in this language:\nC#"} {
		for _, said := range []string{"It fails, the lamp stays dark.", "I ran it:\n3 lamps\nroot@house:~#", "You must never touch the hall.\n$ make\nroot@house:~#"} {
			text := digestOf(Options{}, user(first), assistant("Here it is.\n```bash\nls lamps | wc -l\n```"), user(said)).Text(600)
			if p := sectionsOf(text); !slices.Contains(p[sectionTask], "> "+strings.Split(said, "\n")[0]) || strings.Contains(text, "shell:") {
				t.Errorf("%q, %q: %s", first, said, text)
			}
		}
	}
	text := digestOf(Options{}, user("Mend the lamp.\nbash-$"), calls("", "1", "bash", "command", "ls"), result("1", "lamp.py"), assistant("Run this:\n```\nmake lamps\n```")).Text(600)
	if strings.Contains(text, "make lamps (no result)") {
		t.Errorf("%s", text)
	}
}

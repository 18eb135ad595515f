package extract

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
)

// The effect of a call decides its section.
func TestSteps(t *testing.T) {
	t.Parallel()
	todo := calls("", "9", "plan")
	todo.ToolCalls[0].Arguments = `{"items":[{"step":"one","status":"completed"},{"step":"two","status":"pending"}]}`
	d := digestOf(
		Options{}, user("fix it"),
		calls("", "1", "Read", "file_path", "/src/a.go"), result("1", "package a"),
		calls("", "2", "Write", "file_path", "/src/b.go", "content", "package b"), result("2", "ok"),
		calls("", "3", "bash", "command", "make test"), result("3", "Exit code 2\nfatal: no rule"),
		calls("", "4", "bash", "command", "make lint"), result("4", "error: unused"),
		calls("", "4", "bash", "command", "make lint"), result("4", "0 issues"), // the id again
		todo, result("9", "ok"),
		calls("", "5", "bash", "command", "make all"),
	)
	p := parsePrevious(d.Text(400))
	want := map[section][]string{
		sectionFiles:      {"- file /src/b.go: changed 1", "- file /src/a.go: read 1"},
		sectionBlocked:    {"- bash: make test → Exit code 2: fatal: no rule"},
		sectionRemaining:  {"- two (pending)"},
		sectionInProgress: {"- bash: make all (no result)"},
		sectionCompleted:  {"- Done: one"},
		sectionState:      {"- Edited, no commit seen: b.go", "- Passed since the last edit: make lint → 0 issues"},
	}
	for s, lines := range want {
		if diff := cmp.Diff(lines, p.sections[s]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sectionTable[s].heading, diff)
		}
	}
}

func TestPartsOfContentAreRead(t *testing.T) {
	t.Parallel()
	m := &chat.Message{Role: chat.RoleUser, Content: chat.Content{Parts: []chat.Part{{Type: "text", Text: "look at a/b.go"}, {Type: "image_url"}, {Type: "text", Text: "now"}}}}
	wantIn(t, digestOf(Options{}, m).Text(100), "> look at a/b.go\n> now")
}

func TestHugeArgumentsAreReadAsText(t *testing.T) {
	t.Parallel()
	m := calls("", "1", "write", "file_path", "a/small.go", "content", strings.Repeat("some words, ", maxArguments/12)+"order W12345X")
	d := digestOf(Options{}, m, user("W12345X"))
	if found := d.ids.Within("W12345X"); len(d.history.files) != 0 || len(found) != 1 || found[0].Texts != 2 {
		t.Errorf("%d files, order in %v", len(d.history.files), found)
	}
	wantIn(t, d.Text(200), "write: ", "a/small.go")
}

// A key that the end of a chunk would cut is not cut.
func TestChunksKeepKeysWhole(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 63) + "\n"
	key := "-----BEGIN RSA " + keyHeader + "\n" + strings.Repeat("aB3dE6gH9jK2mN5p\n", 60) + "-----END RSA " + keyHeader + "\n"
	for before := maxChunk/64 - 30; before < maxChunk/64+2; before++ {
		d := New(Options{})
		_, tail := d.scan(strings.Repeat(line, before)+key+strings.Repeat(line, 10), true)
		if strings.Contains(tail, "aB3dE6gH9jK2mN5p") {
			t.Fatalf("a part of a key is left behind %d lines", before)
		}
	}
}

func TestBudgetsBoundTheText(t *testing.T) {
	t.Parallel()
	d := digestOf(Options{}, conversation()...)
	for budget := 0; budget < 400; budget += 3 {
		if s := d.Text(budget); chars4(s) > budget {
			t.Fatalf("%d tokens of %d", chars4(s), budget)
		}
	}
	// A text gets longer with its budget, though not with every token.
	if a, b := d.Text(75), d.Text(300); len(b) < 2*len(a) {
		t.Errorf("%d and %d bytes", len(a), len(b))
	}
}

// A task of a list is done from the list on that says so until one says otherwise.
func TestFinishedTasksAreDone(t *testing.T) {
	t.Parallel()
	list := func(id, first, second string) *chat.Message {
		m := calls("", id, "TodoWrite")
		m.ToolCalls[0].Arguments = `{"todos":[{"content":"wire the lamp","status":"` + first + `"},{"content":"paint the door","status":"` + second + `"}]}`
		return m
	}
	d := digestOf(
		Options{}, user("fix the house"),
		list("1", "completed", "completed"), result("1", "ok"),
		list("2", "completed", "pending"), result("2", "ok"),
		calls("", "3", "TaskCreate", "subject", "mow the lawn"), result("3", "Task #7 created"),
		calls("", "4", "TaskCreate", "subject", "water the roses"), result("4", "Task #8 created"),
		calls("", "5", "TaskUpdate", "taskId", "7", "status", "completed"), result("5", "ok"),
		calls("", "6", "TaskUpdate", "taskId", "8", "status", "cancelled"), result("6", "ok"),
	)
	want := []string{"- Done: wire the lamp · mow the lawn"}
	text := d.Text(400)
	done := func(text string) []string {
		return slices.DeleteFunc(sectionsOf(text)[sectionCompleted], func(l string) bool { return !strings.HasPrefix(l, finishedMark) })
	}
	if got := done(text); !cmp.Equal(got, want) {
		t.Errorf("%s\n%s", cmp.Diff(want, got), text)
	}
	for _, m := range []*chat.Message{calls("", "7", "TaskUpdate", "taskId", "7", "status", "in_progress", "description", "The blades of the mower were blunt."), result("7", "ok")} {
		d.Add(m)
	}
	again := d.Text(400)
	if got := done(again); !cmp.Equal(got, []string{"- Done: wire the lamp"}) {
		t.Errorf("of a task that was taken up again: %q", got)
	}
	wantIn(t, again, "task 7 (in progress), since message 7: mow the lawn")
	wantNotIn(t, again, "- The blades of the mower")
	next := digestOf(Options{})
	next.AddPrevious(text)
	next.Add(list("1", "completed", "pending"))
	if got := done(next.Text(400)); !cmp.Equal(got, want) {
		t.Errorf("after another summary %s", cmp.Diff(want, got))
	}
}

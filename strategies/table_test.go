package strategies_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest"
)

// example returns the conversation of the table in deploy/docs/strategies.md: a letter for the role (c for an
// assistant's tool call, t for its result) and a number.
func example() []chat.Message {
	text := func(r chat.Role, s string) chat.Message { return chat.Message{Role: r, Content: chat.TextContent(s)} }
	call := func(id, tool string) chat.Message {
		arguments := fmt.Sprintf(`{"path":"main.go","reason":%q}`, strings.Repeat("because ", 100))
		return chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: id, Type: "function", Name: tool, Arguments: arguments}}}
	}
	result := func(id, s string) chat.Message {
		return chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(s)}
	}
	screen := text(chat.RoleUser, "")
	screen.Content = chat.Content{Parts: []chat.Part{
		{Type: "text", Text: "Why does it say this?", Raw: json.RawMessage(`{"type":"text","text":"Why does it say this?"}`)},
		{Type: "image_url", Raw: json.RawMessage(`{"type":"image_url","image_url":{"url":"https://example.com/screen.png"}}`)},
	}}
	listing := strings.Repeat("some code\n", 60)
	return []chat.Message{
		text(chat.RoleSystem, "You help with code."),
		screen, call("a", "read_file"), result("a", listing), text(chat.RoleAssistant, "A name is wrong."),
		text(chat.RoleUser, "Fix it."), call("b", "read_file"), result("b", listing+"."), call("c", "write_file"), result("c", "ok"), text(chat.RoleAssistant, "Done."),
		text(chat.RoleUser, "And the tests?"), call("d", "run_tests"), result("d", "all pass"),
	}
}

// view writes a view in the notation of the table: S for a summary, * behind what is
// not as it was said.
func view(t *testing.T, ms []chat.Message, steps []plan.Strategy) string {
	t.Helper()
	l := strategiestest.Of(ms)
	r, err := pipeline.Pipeline{Steps: steps}.Run(t.Context(), l.Transcript(), l.Load)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range r.View {
		letter := string(m.Role[:1])
		if m.Role == chat.RoleAssistant && m.Calls > 0 {
			letter = "c"
		}
		switch m.Kind {
		case chat.KindSummary:
			out = append(out, "S")
		case chat.KindReplacement:
			out = append(out, fmt.Sprint(letter, m.Position, "*"))
		default:
			out = append(out, fmt.Sprint(letter, m.Position))
		}
	}
	return strings.Join(out, " ")
}

// TestTableOfStrategies checks that deploy/docs/strategies.md shows every strategy, with the view that it leaves. A row
// with an empty view fails with the right one.
func TestTableOfStrategies(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../deploy/docs/strategies.md")
	if err != nil {
		t.Fatal(err)
	}
	if whole := "`" + view(t, example(), nil) + "`"; !strings.Contains(string(page), whole) {
		t.Errorf("deploy/docs/strategies.md does not show the conversation: %s", whole)
	}
	registry := strategiestest.Registry()
	missing := map[string]bool{}
	for _, name := range registry.Names() {
		missing[name] = true
	}
	code := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		var steps []plan.Strategy
		for _, span := range code.FindAllStringSubmatch(cells[0], -1) {
			name, given, _ := strings.Cut(span[1], " ")
			var params plan.Params
			if err := yaml.Unmarshal([]byte(given), &params); err != nil {
				t.Fatalf("%s: %v", span[1], err)
			}
			s, err := registry.New(name, params)
			if err != nil {
				t.Fatalf("%s: %v", span[1], err)
			}
			delete(missing, name)
			steps = append(steps, s)
		}
		got := view(t, example(), steps)
		if want := strings.Trim(cells[2], "`| "); got != want {
			t.Errorf("%s: the page shows\n\t%s\nand it is\n\t%s", cells[0], want, got)
		}
	}
	for name := range missing {
		t.Errorf("deploy/docs/strategies.md does not show strategy %s: add a row with an example and an empty view, and this test reports the view", name)
	}
}

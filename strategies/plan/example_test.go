package plan_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// keepNewest keeps the newest groups. It needs only metadata.
type keepNewest struct{ groups int }

func (keepNewest) Name() string { return "keep_newest" }

func (k keepNewest) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	var excluded plan.SeqSet
	for i := range max(0, len(t.Groups())-k.groups) {
		if t.GroupIncluded(i) && !t.GroupPinned(i) {
			t.GroupSeqs(&excluded, i)
		}
	}
	return excluded.Exclude("keep_newest"), nil
}

// A strategy is any type with these two methods. The guard restores the system prompt and
// the last user message, so the strategy need not consider them.
func Example() {
	says := func(role chat.Role, text string) chat.Message {
		return chat.Message{Role: role, Content: chat.TextContent(text)}
	}
	got, err := strategies.Compact(context.Background(), []chat.Message{
		says(chat.RoleSystem, "You answer in one word."),
		says(chat.RoleUser, "What is the capital of France?"),
		says(chat.RoleAssistant, "Paris."),
		says(chat.RoleUser, "And that of Norway?"),
		says(chat.RoleAssistant, "Oslo."),
	}, keepNewest{groups: 1}, strategies.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range got.Messages {
		fmt.Println(m.Role, m.Content.Text)
	}
	// Output:
	// system You answer in one word.
	// user And that of Norway?
	// assistant Oslo.
}

// dropErrors excludes tool calls whose results begin with a marker, except the newest group.
type dropErrors struct{ marker string }

func (dropErrors) Name() string { return "drop_errors" }

// Reads makes dropErrors a plan.Reader. It names the messages whose content Plan reads.
func (dropErrors) Reads(t *plan.Transcript) []chat.Seq {
	var seqs []chat.Seq
	for _, e := range t.Entries {
		if e.Included && e.Role == chat.RoleTool {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

func (s dropErrors) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	var failed plan.SeqSet
	retained := t.MinimumRetained()
	for i, g := range t.Groups() {
		if g.Kind != chat.GroupToolCall || i == retained || t.GroupPinned(i) {
			continue
		}
		for e := g.Start; e < g.End; e++ {
			if !t.Entries[e].Included || t.Entries[e].Role != chat.RoleTool {
				continue
			}
			m, err := t.Read(e)
			if err != nil {
				return chat.Plan{}, err
			}
			if strings.HasPrefix(m.Content.String(), s.marker) {
				t.GroupSeqs(&failed, i)
				break
			}
		}
	}
	return failed.Exclude("failed_tool_call"), nil
}

// A strategy that reads content and has a parameter. Registered under a name, it works
// wherever a built-in strategy does.
func ExampleRegistry_Register() {
	registry := builtin.Registry()
	err := registry.Register("drop_errors", "drop tool calls that failed",
		func(args *plan.Args) (plan.Strategy, error) {
			return dropErrors{marker: args.Text("marker", "Error:", "beginning of the result of a failed call")}, nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := registry.New("drop_errors", plan.Params{"marker": "error"})
	if err != nil {
		fmt.Println(err)
		return
	}

	call := func(id string) chat.Message {
		return chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: id, Name: "read", Arguments: "{}"}}}
	}
	result := func(id, text string) chat.Message {
		return chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(text)}
	}
	history := []chat.Message{
		{Role: chat.RoleUser, Content: chat.TextContent("What is in the file?")},
		call("1"), result("1", "error: no such file"),
		call("2"), result("2", "42"),
		{Role: chat.RoleAssistant, Content: chat.TextContent("It says 42.")},
	}
	got, err := strategies.Compact(context.Background(), history, s, strategies.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, x := range got.Excluded {
		fmt.Println("excluded:", x.Seq, x.Role, x.Reason)
	}
	for _, m := range got.Messages {
		fmt.Println(strings.TrimSpace(fmt.Sprint(m.Role, " ", m.Content.Text)))
	}
	// Output:
	// excluded: 2 assistant failed_tool_call
	// excluded: 3 tool failed_tool_call
	// user What is in the file?
	// assistant
	// tool 42
	// assistant It says 42.
}

// The error of New lists every invalid parameter.
func ExampleRegistry_New() {
	_, err := builtin.Registry().New("truncation", plan.Params{"max_n": 0, "compactto": 5})
	fmt.Println(err)
	// Output:
	// truncation: max_n: got 0, want an integer at least 1
	// truncation: compact_to: missing, want integer at least 1
	// truncation: compactto: got an unknown parameter, want only max_n, compact_to, metric, preserve_system
}

package strategies_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// dropErrors takes tool calls out of the view whose results say that something
// went wrong, except the newest.
type dropErrors struct{ marker string }

func (dropErrors) Name() string { return "drop_errors" }

// Reads makes dropErrors a strategies.Reader: it sees the content of tool
// messages.
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
	var failed []chat.Seq
	retained := t.MinimumRetained()
	for i, g := range t.Groups() {
		if g.Kind != chat.GroupToolCall || i == retained {
			continue
		}
		bad := false
		for _, e := range t.Entries[g.Start:g.End] {
			bad = bad || e.Message != nil && strings.HasPrefix(e.Message.Content.String(), s.marker)
		}
		for _, e := range t.Entries[g.Start:g.End] {
			if bad {
				failed = append(failed, e.Seq)
			}
		}
	}
	if len(failed) == 0 {
		return chat.Plan{}, nil
	}
	return chat.Plan{Exclude: []chat.Exclusion{{Reason: "failed_tool_call", Seqs: chat.RangesOf(failed...)}}}, nil
}

func ExampleRegistry_Register() {
	registry := builtin.Registry()
	err := registry.Register("drop_errors", "drop tool calls that failed",
		func(args *plan.Args) (plan.Strategy, error) {
			return dropErrors{marker: args.Text("marker", "Error:", "what the result of a failed call begins with")}, nil
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
		fmt.Println("out:", x.Seq, x.Role, x.Reason)
	}
	for _, m := range got.Messages {
		fmt.Println(strings.TrimSpace(fmt.Sprint(m.Role, " ", m.Content.Text)))
	}
	// Output:
	// out: 2 assistant failed_tool_call
	// out: 3 tool failed_tool_call
	// user What is in the file?
	// assistant
	// tool 42
	// assistant It says 42.
}

// newestWithin keeps the system prompt and as many of the newest groups as a budget
// of tokens allows.
type newestWithin struct{ budget chat.Tokens }

func (newestWithin) Name() string { return "newest_within" }

func (s newestWithin) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	groups := t.Groups()
	left := s.budget
	for i, g := range groups {
		if g.Kind == chat.GroupSystem {
			_, tokens := t.GroupTotals(i)
			left -= tokens
		}
	}
	var out []chat.Seq
	full := false
	for i, g := range slices.Backward(groups) {
		if g.Kind == chat.GroupSystem || !t.GroupIncluded(i) {
			continue
		}
		_, tokens := t.GroupTotals(i)
		if t.GroupPinned(i) {
			left -= tokens // it stays, and what is older may still fit
			continue
		}
		if full = full || tokens > left; !full {
			left -= tokens
			continue
		}
		for _, e := range t.Entries[g.Start:g.End] {
			out = append(out, e.Seq)
		}
	}
	if len(out) == 0 {
		return chat.Plan{}, nil
	}
	return chat.Plan{Exclude: []chat.Exclusion{{Seqs: chat.RangesOf(out...)}}}, nil
}

// A strategy is any type with these two methods; under a name it works wherever a
// built-in one does. The guard keeps what it does to whole groups and to the last user
// message, so that it need not.
func ExampleCompact() {
	registry := builtin.Registry()
	err := registry.Register("newest_within", "keep the system prompt and the newest groups within a budget",
		func(args *plan.Args) (plan.Strategy, error) {
			budget := args.Int(plan.Int{Name: "budget", Required: true, Min: 1, Doc: "how many tokens the view may have"})
			return newestWithin{chat.Tokens(budget)}, nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := registry.New("newest_within", plan.Params{"budget": 28})
	if err != nil {
		fmt.Println(err)
		return
	}
	says := func(role chat.Role, text string) chat.Message {
		return chat.Message{Role: role, Content: chat.TextContent(text)}
	}
	got, err := strategies.Compact(context.Background(), []chat.Message{
		says(chat.RoleSystem, "You answer in one word."),
		says(chat.RoleUser, "What is the capital of France?"),
		says(chat.RoleAssistant, "Paris."),
		says(chat.RoleUser, "And that of Norway?"),
		says(chat.RoleAssistant, "Oslo."),
	}, s, strategies.Options{Counter: tokens.Chars4{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range got.Messages {
		fmt.Println(m.Role, m.Content.Text)
	}
	fmt.Println(got.Before.IncludedTokens, "→", got.After.IncludedTokens, "tokens")
	// Output:
	// system You answer in one word.
	// user And that of Norway?
	// assistant Oslo.
	// 40 → 23 tokens
}

// A tool loop keeps its history in a Conversation and compacts it when it has grown.
func ExampleConversation() {
	window, err := builtin.Registry().New("sliding_window", plan.Params{"keep_last_groups": 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := strategies.NewConversation(strategies.Options{})
	c.Append(chat.Message{Role: chat.RoleUser, Content: chat.TextContent("Read all the files.")})
	for i := range 5 {
		id := fmt.Sprint("call-", i)
		c.Append(
			chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: id, Name: "read", Arguments: "{}"}}},
			chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(fmt.Sprint("file ", i))},
		)
		if _, size := c.Size(); size < 60 {
			continue
		}
		if _, err := c.Compact(context.Background(), window); err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, m := range c.View() {
		if m.Role != chat.RoleAssistant {
			fmt.Println(m.Content.Text)
		}
	}
	fmt.Println(len(c.Excluded()), "messages are out")
	// Output:
	// Read all the files.
	// file 3
	// file 4
	// 6 messages are out
}

func ExampleRegistry_New() {
	_, err := builtin.Registry().New("truncation", plan.Params{"max_n": 0, "compactto": 5})
	fmt.Println(err)
	// Output:
	// truncation: max_n: got 0, want an integer at least 1
	// truncation: compact_to: missing, want integer at least 1
	// truncation: compactto: got an unknown parameter, want only max_n, compact_to, metric, preserve_system
}

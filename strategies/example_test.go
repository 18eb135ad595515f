package strategies_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
)

// dropErrors takes tool calls out of the view whose results say that something
// went wrong, except the newest.
type dropErrors struct{ marker string }

func (dropErrors) Name() string { return "drop_errors" }

// Reads makes dropErrors a strategies.Reader: it sees the content of tool
// messages.
func (dropErrors) Reads(t *strategies.Transcript) []chat.Seq {
	var seqs []chat.Seq
	for _, e := range t.Entries {
		if e.Included && e.Role == chat.RoleTool {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

func (s dropErrors) Plan(_ context.Context, t *strategies.Transcript) (chat.Plan, error) {
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
	registry := strategies.Builtin()
	err := registry.Register("drop_errors", "drop tool calls that failed",
		func(args *strategies.Args) (strategies.Strategy, error) {
			return dropErrors{marker: args.Text("marker", "Error:", "what the result of a failed call begins with")}, nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := registry.New("drop_errors", strategies.Params{"marker": "error"})
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
	t := &strategies.Transcript{}
	for i, meta := range chat.Describe(history) {
		t.Entries = append(t.Entries, strategies.Entry{Meta: meta, Included: true, Message: &history[i]})
	}
	r, err := strategies.Pipeline{Steps: []strategies.Strategy{s}}.Run(context.Background(), t, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, x := range r.Plan.Exclude {
		fmt.Println(x.Reason, x.Seqs)
	}
	// Output: failed_tool_call {[2,4)}
}

func ExampleRegistry_New() {
	_, err := strategies.Builtin().New("truncation", strategies.Params{"max_n": 0, "compactto": 5})
	fmt.Println(err)
	// Output:
	// truncation: max_n: got 0, want an integer at least 1
	// truncation: compact_to: missing, want integer at least 1
	// truncation: compactto: got an unknown parameter, want only max_n, compact_to, metric, preserve_system
}

package builtin

import (
	"context"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// If the guard cannot make the outcome valid, as in this history with a moved call, pins and
// unanswered calls, the view stays as it was and the last step reports it.
func TestPlansThatCannotBeMadeValidAreDiscarded(t *testing.T) {
	t.Parallel()
	said := func(seq chat.Seq, role chat.Role, flags chat.Flags, calls int, tokens chat.Tokens) plan.Entry {
		return plan.Entry{Meta: chat.Meta{Seq: seq, Position: seq, Kind: chat.KindSource, Role: role, Flags: flags, Calls: calls, Tokens: tokens}, Included: true}
	}
	moved := said(8, chat.RoleAssistant, chat.HasText|chat.Estimated|chat.Moved, 1, 47)
	moved.Kind, moved.Position = chat.KindSummary, 1
	entries := []plan.Entry{
		moved, said(1, chat.RoleTool, chat.HasText|chat.Estimated, 0, 238), said(2, chat.RoleAssistant, chat.HasReasoning|chat.Estimated, 0, 7),
		said(3, chat.RoleAssistant, chat.HasText, 1, 9), said(4, chat.RoleAssistant, chat.HasText, 0, 104), said(5, chat.RoleAssistant, chat.HasText, 2, 14),
		said(6, chat.RoleTool, chat.Paired, 0, 26), said(7, chat.RoleTool, chat.Paired|chat.HasText, 0, 1), said(9, chat.RoleSystem, 0, 0, 5),
	}
	entries[1].Included, entries[7].Pinned = false, true
	load := func(_ context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
		out := map[chat.Seq]*chat.Message{}
		for _, q := range seqs {
			for _, e := range entries {
				if e.Seq != q {
					continue
				}
				m := &chat.Message{Role: e.Role, Content: chat.TextContent("text")}
				for range e.Calls {
					m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: "a", Type: "function", Name: "look", Arguments: "{}"})
				}
				if e.Role == chat.RoleTool {
					m.ToolCallID = "a"
				}
				if e.Has(chat.HasReasoning) {
					m.Content, m.Reasoning = chat.Content{Null: true}, "thinking"
				}
				out[q] = m
			}
		}
		return out, nil
	}
	registry := Registry().With(plan.Func(func(context.Context, plan.Request) (string, error) { return "what was said", nil }))
	p := pipeline.Pipeline{FromLog: true, Guard: pipeline.Guard{}}
	for _, s := range []struct {
		name   string
		params plan.Params
	}{
		{"truncation", plan.Params{"metric": "messages", "max_n": 6, "compact_to": 6, "preserve_system": false}},
		{"preserve_recent_fraction", plan.Params{"fraction": 1e-72, "summary": "after_preserved"}},
	} {
		built, err := registry.New(s.name, s.params)
		if err != nil {
			t.Fatal(err)
		}
		p.Steps = append(p.Steps, built)
	}
	for _, drop := range []bool{false, true} {
		p.Guard.DropSystem = drop
		r, err := p.Run(t.Context(), &plan.Transcript{Entries: entries}, load)
		if err != nil {
			t.Fatal(err)
		}
		if faults := chat.Check(r.View); len(faults) > 0 || r.Rejected > 0 {
			t.Errorf("%v, %d rejected", faults, r.Rejected)
		}
		n := len(r.Steps)
		if n != 3 || r.Steps[n-1].Strategy != "guard" || r.Steps[n-1].Discarded != "invalid_view" {
			t.Errorf("%+v", r.Steps)
		}
		for _, a := range r.Plan.Additions {
			if strings.Contains(a.Message.Content.String(), "what was said") {
				t.Error("the summary of a plan that was discarded is in the view")
			}
		}
	}
}

package strategies

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// notesModel answers every call with notes and keeps the calls.
type notesModel struct{ calls []llm.Call }

func (*notesModel) Identity() string { return "notes" }
func (*notesModel) Usable(context.Context) llm.Profile {
	return llm.Profile{Name: "notes", Window: 64_000}
}

func (m *notesModel) Complete(_ context.Context, c llm.Call) (llm.Answer, error) {
	m.calls = append(m.calls, c)
	var b strings.Builder
	for _, s := range summary.DefaultSections() {
		b.WriteString("## " + s.Title + "\nThe drawers were looked at one by one: " + s.Title + ".\n")
	}
	return llm.Answer{Text: b.String(), Model: "notes", FinishReason: "stop"}, nil
}

// runWith compacts a conversation with one step, whose summaries a model writes.
func runWith(t *testing.T, c *Conversation, m *notesModel, step policy.Step) {
	t.Helper()
	p := policy.Default()
	p.Fallback = false
	p.Pipeline = []policy.Step{step}
	p.Summary.Size.Min, p.Summary.Size.Max = 500, 500
	run, _, err := Build(builtin.Registry(), p, policy.Limits{Window: 64_000, Start: 1200, Target: 1100}, summary.Options{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compact(t.Context(), run); err != nil {
		t.Fatal(err)
	}
}

// listing returns a turn whose call and result name what its stand-in leaves out.
func listing(n int) []chat.Message {
	ms := chainRound(n)
	ms[1].ToolCalls[0].Arguments = fmt.Sprintf(`{"pattern":"clip_%d_*.go"}`, n)
	return ms
}

var collapse = policy.Step{Strategy: "tool_result", Params: map[string]any{"keep_last_tool_call_groups": 0}}

// The model is shown the calls and results that stand-ins of earlier runs stand for, each once, in
// their order, and what the earlier summary covers only in its notes.
func TestTheModelSeesWhatStoredStandInsStandFor(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]policy.Step{
		"handoff":               chainHandoff,
		"summarize":             {Strategy: "summarize", Params: map[string]any{"threshold": 3, "keep_last_n": 2, "max_summary_tokens": 500, "preserve_user_messages": false}},
		"summarization":         {Strategy: "summarization", Params: map[string]any{"target_count": 2, "threshold": 1}},
		"preserve_recent_turns": {Strategy: "preserve_recent_turns", Params: map[string]any{"turns": 1, "min_turn_tokens": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, c := &notesModel{}, NewConversation(Options{})
			shown := func(from, to int) {
				t.Helper()
				if len(m.calls) != 1 {
					t.Fatalf("%d calls", len(m.calls))
				}
				user := m.calls[0].User
				last := -1
				for n := from; n < to; n++ {
					call := fmt.Sprintf(`{"pattern":"clip_%d_*.go"}`, n)
					at := strings.Index(user, call)
					if at < last || at < 0 || strings.Count(user, call) != 1 || strings.Count(user, fmt.Sprintf("user\nAnd what is in drawer %d?", n)) != 1 {
						t.Errorf("round %d is at %d in\n%s", n, at, user)
					}
					last = at
				}
				if strings.Contains(user, "[Tool results:") || strings.Contains(user, fmt.Sprintf(`clip_%d_`, from-2)) {
					t.Errorf("stand-ins or older messages in\n%s", user)
				}
				m.calls = nil
			}
			for n := 1; n < 8; n++ {
				c.Append(listing(n)...)
			}
			runWith(t, c, m, collapse)
			runWith(t, c, m, step)
			shown(1, 6)
			covered := 1
			for _, r := range c.Records() {
				if !r.Included && r.Kind == chat.KindSource && strings.HasPrefix(r.Message.Content.String(), "And what is in drawer ") {
					covered++
				}
			}
			for n := 8; n < 16; n++ {
				c.Append(listing(n)...)
			}
			runWith(t, c, m, collapse)
			runWith(t, c, m, step)
			shown(covered+1, 14) // the last message of the user stayed, what it led to may not have
		})
	}
}

// What the fallback dropped is told once, in the next summary.
func TestTheModelSeesOnceWhatTheFallbackDropped(t *testing.T) {
	t.Parallel()
	m, c := &notesModel{}, NewConversation(Options{})
	c.Append(chainRound(0)...)
	c.Append(listing(1)...)
	if _, err := c.Compact(t.Context(), pipeline.Pipeline{Target: 300, Fallback: true}); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		for n := range 6 {
			c.Append(listing(10*round + n + 2)...)
		}
		runWith(t, c, m, collapse)
		runWith(t, c, m, chainHandoff)
		if len(m.calls) != round+1 {
			t.Fatalf("%d calls", len(m.calls))
		}
		if user := m.calls[round].User; strings.Contains(user, " user\n"+chainAsk) != (round == 0) || strings.Contains(user, "[Tool results:") {
			t.Errorf("round %d:\n%s", round, user)
		}
	}
}

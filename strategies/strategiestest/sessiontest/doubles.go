package sessiontest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Quarter is a counter: a token is four bytes of text, and a message has four more.
type Quarter struct{}

// Name implements tokens.Counter.
func (Quarter) Name() string { return "quarter" }

// Message implements tokens.Counter.
func (Quarter) Message(m *chat.Message) chat.Tokens {
	n := len(m.Content.String()) + len(m.Reasoning)
	for _, c := range m.ToolCalls {
		n += len(c.Name) + len(c.Arguments)
	}
	return chat.Tokens(n/4 + 4)
}

// Equal is a counter that gives every message the same number of tokens.
type Equal chat.Tokens

// Name implements tokens.Counter.
func (Equal) Name() string { return "equal" }

// Message implements tokens.Counter.
func (n Equal) Message(*chat.Message) chat.Tokens { return chat.Tokens(n) }

// Notes is a summarizer that records its requests. Without Answer it writes "notes 1",
// "notes 2", and so on.
type Notes struct {
	Asked  []plan.Request
	Answer func(n int) (string, error)
}

// Summarize implements plan.Summarizer.
func (s *Notes) Summarize(_ context.Context, r plan.Request) (string, error) {
	s.Asked = append(s.Asked, r)
	if s.Answer != nil {
		return s.Answer(len(s.Asked))
	}
	return fmt.Sprintf("notes %d", len(s.Asked)), nil
}

// Strategy returns a strategy of a registry and fails the test if there is none.
func Strategy(t testing.TB, r *plan.Registry, name string, p plan.Params) plan.Strategy {
	t.Helper()
	s, err := r.New(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// StrategyFunc is a strategy made of a function.
type StrategyFunc func(*plan.Transcript) (chat.Plan, error)

// Name implements plan.Strategy.
func (StrategyFunc) Name() string { return "spy" }

// Plan implements plan.Strategy.
func (f StrategyFunc) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) { return f(t) }

// Plans returns a strategy that always returns p.
func Plans(p chat.Plan) plan.Strategy {
	return StrategyFunc(func(*plan.Transcript) (chat.Plan, error) { return p, nil })
}

// Excludes returns a plan that excludes messages.
func Excludes(qs ...chat.Seq) chat.Plan {
	return chat.Plan{Exclude: []chat.Exclusion{{Reason: "x", Seqs: chat.RangesOf(qs...)}}}
}

// Summarizes returns a plan that replaces messages with a summary at a position.
func Summarizes(at chat.Seq, qs ...chat.Seq) chat.Plan {
	return chat.Plan{Additions: []chat.Addition{{
		Kind: chat.KindSummary, Covers: chat.RangesOf(qs...), Position: at, Message: Says("sum"),
	}}}
}

// History is an agent.History in memory. It fails the test if a plan is applied to
// another log or revision than it was made for.
type History struct {
	*Session
	T      Failer
	Writes []chat.Write
}

// NewHistory returns a history with messages.
func NewHistory(t testing.TB, ms ...chat.Message) *History {
	return &History{Session: Of(ms...), T: t}
}

// Load implements agent.History.
func (h *History) Load(_ context.Context, whole bool) (chat.Log, error) {
	log := chat.Log{Last: chat.Seq(len(h.Metas)), Revision: int64(len(h.Writes))}
	for _, e := range h.Transcript(whole).Entries {
		log.Records = append(log.Records, chat.Record{Meta: e.Meta, Message: *h.Messages[e.Seq], Included: e.Included, Pinned: e.Pinned})
	}
	return log, nil
}

// Append implements agent.History.
func (h *History) Append(_ context.Context, w chat.Write) error {
	if !w.Plan.Empty() && (w.After != chat.Seq(len(h.Metas)) || w.Revision != int64(len(h.Writes))) {
		h.T.Fatalf("plan for seq %d at revision %d, applied to %d at %d", w.After, w.Revision, len(h.Metas), len(h.Writes))
	}
	h.Writes = append(h.Writes, w)
	h.Add(w.Messages...)
	h.apply(h.T, w.Plan)
	return nil
}

// Texts returns the texts of the view, separated by "|".
func (h *History) Texts() string {
	var view []chat.Message
	for _, m := range h.View() {
		view = append(view, *h.Messages[m.Seq])
	}
	return Texts(view)
}

// Texts returns the texts of messages, separated by "|".
func Texts(ms []chat.Message) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Content.Text)
	}
	return strings.Join(out, "|")
}

package builtin

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// digest answers with the first words of the messages, and their calls.
type digest struct{ plan.Summarizer }

// Write implements plan.Writer.
func (digest) Write(_ context.Context, t plan.Task) (string, error) {
	var out []string
	for _, m := range t.Messages {
		if words := strings.Fields(m.Content.String()); len(words) > 0 {
			out = append(out, words[0])
		} else if len(m.ToolCalls) == 0 {
			out = append(out, "-")
		}
		for _, c := range m.ToolCalls {
			out = append(out, c.Name+"("+c.Arguments+")")
		}
	}
	return strings.Join(out, " "), nil
}

// step is a strategy on a session, and the resulting view.
type step struct {
	messages []chat.Message
	pinned   []chat.Seq
	out      []chat.Seq // not in the view before
	strategy string
	params   plan.Params
	want     []string // nil: no change
	// again: a second run changes something, which it mostly does not.
	again bool
}

func (c step) test(t *testing.T) {
	t.Helper()
	s := sessiontest.Of(c.messages...)
	for _, q := range c.pinned {
		s.Pinned[q] = true
	}
	for _, q := range c.out {
		s.Included[q] = false
	}
	before := viewLines(s)
	st, err := Registry().With(digest{}).New(c.strategy, c.params)
	if err != nil {
		t.Fatal(err)
	}
	whole := len(c.out) > 0
	r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, whole)
	if r.Rejected > 0 {
		t.Errorf("%d additions that no view can hold", r.Rejected)
	}
	want := c.want
	if want == nil {
		want = before
	}
	if diff := cmp.Diff(want, viewLines(s)); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	if err := s.Invariants(true); err != nil {
		t.Error(err)
	}
	if again := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, whole); again.Plan.Empty() == c.again {
		t.Errorf("a second run plans %+v; whether it changes something must be %t", again.Plan, c.again)
	}
}

func steps(t *testing.T, tests map[string]step) {
	t.Helper()
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.test(t)
		})
	}
}

package strategies

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// withSummarizer returns the built-in registry with a summarizer of its own.
func withSummarizer(f func(plan.Request) (string, error)) *plan.Registry {
	r := Builtin()
	r.Summarizer = plan.Func(func(_ context.Context, q plan.Request) (string, error) { return f(q) })
	return r
}

// digest answers with the first word of each line it is asked to summarize.
func digest(q plan.Request) (string, error) {
	var out []string
	for line := range strings.Lines(q.User) {
		if _, text, ok := strings.Cut(strings.TrimSpace(line), "] "); ok {
			line = text
		}
		out = append(out, strings.Fields(line + " -")[0])
	}
	return strings.Join(out, " "), nil
}

// lines returns the view for people: position, role and words of each message, a + before
// what was written.
func (s *model) lines() []string {
	var out []string
	for _, m := range s.view() {
		msg := s.messages[m.Seq]
		text := msg.Content.Text
		for _, p := range msg.Content.Parts {
			text += "<" + p.Type + " " + p.Text + ">"
		}
		for _, c := range msg.ToolCalls {
			text += fmt.Sprintf(" %s=%s%s", c.ID, c.Name, c.Arguments)
		}
		mark := ""
		if !plan.IsSource(m.Kind) {
			mark = "+"
		}
		out = append(out, fmt.Sprintf("%s%d %s: %s", mark, m.Position, m.Role, strings.TrimSpace(text)))
	}
	return out
}

// step is a strategy on a session, and what the view is then.
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
	s := session(c.messages...)
	for _, q := range c.pinned {
		s.pinned[q] = true
	}
	for _, q := range c.out {
		s.included[q] = false
	}
	before := s.lines()
	st, err := withSummarizer(digest).New(c.strategy, c.params)
	if err != nil {
		t.Fatal(err)
	}
	whole := len(c.out) > 0
	r := s.run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, whole)
	if r.Rejected > 0 {
		t.Errorf("%d additions that no view can hold", r.Rejected)
	}
	want := c.want
	if want == nil {
		want = before
	}
	if diff := cmp.Diff(want, s.lines()); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	if err := s.invariants(true); err != nil {
		t.Error(err)
	}
	if again := s.run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, whole); again.Plan.Empty() == c.again {
		t.Errorf("a second run plans %+v", again.Plan)
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

// call makes a call message of (id, name, arguments).
func call(parts ...string) chat.Message {
	m := chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}}
	for i := 0; i < len(parts); i += 3 {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: parts[i], Type: "function", Name: parts[i+1], Arguments: parts[i+2]})
	}
	return m
}

// from gives a message a source.
func from(source string, m chat.Message) chat.Message {
	m.SourceID = source
	return m
}

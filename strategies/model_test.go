package strategies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// model is a session as a store keeps it: everything that was said, and what of it
// is in the view.
type model struct {
	messages map[chat.Seq]*chat.Message
	metas    []chat.Meta // by seq
	included map[chat.Seq]bool
	pinned   map[chat.Seq]bool
	pairer   chat.Pairer
}

func newModel() *model {
	return &model{
		messages: map[chat.Seq]*chat.Message{}, included: map[chat.Seq]bool{}, pinned: map[chat.Seq]bool{},
	}
}

func (s *model) append(ms ...chat.Message) {
	for _, m := range ms {
		q := chat.Seq(len(s.metas) + 1)
		meta := s.pairer.Describe(&m, q)
		meta.Tokens = quarter{}.Message(&m)
		s.put(meta, m)
	}
}

func (s *model) put(meta chat.Meta, m chat.Message) {
	s.metas = append(s.metas, meta)
	s.messages[meta.Seq] = &m
	s.included[meta.Seq] = true
}

func (s *model) transcript(whole bool) *plan.Transcript {
	t := &plan.Transcript{Counter: quarter{}}
	for _, m := range s.metas {
		if whole || s.included[m.Seq] {
			t.Entries = append(t.Entries, plan.Entry{Meta: m, Included: s.included[m.Seq], Pinned: s.pinned[m.Seq]})
		}
	}
	slices.SortFunc(t.Entries, func(a, b plan.Entry) int { return chat.Compare(a.Meta, b.Meta) })
	return t
}

func (s *model) load(_ context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
	out := map[chat.Seq]*chat.Message{}
	for _, q := range seqs {
		out[q] = s.messages[q]
	}
	return out, nil
}

// apply does what a store does with a plan, and is strict about it.
func (s *model) apply(t interface{ Fatalf(string, ...any) }, p chat.Plan) {
	seen := map[chat.Seq]string{}
	take := func(what string, r chat.Ranges) {
		for _, q := range r.Seqs() {
			if s.messages[q] == nil {
				t.Fatalf("%s names %d, which does not exist", what, q)
			}
			if seen[q] != "" {
				t.Fatalf("%s names %d, which %s names too", what, q, seen[q])
			}
			seen[q] = what
		}
	}
	for _, x := range p.Exclude {
		take(x.Reason, x.Seqs)
		if x.Reason == "" || len(x.Seqs) == 0 {
			t.Fatalf("exclusion without reason or messages: %+v", x)
		}
		for _, q := range x.Seqs.Seqs() {
			if !s.included[q] {
				t.Fatalf("%s excludes %d, which is not in the view", x.Reason, q)
			}
			s.included[q] = false
		}
	}
	take("include", p.Include)
	for _, q := range p.Include.Seqs() {
		if s.included[q] {
			t.Fatalf("plan includes %d, which is in the view", q)
		}
		s.included[q] = true
	}
	for _, a := range p.Additions {
		take("addition", a.Covers)
		if len(a.Covers) == 0 || a.Reason == "" {
			t.Fatalf("addition that covers nothing or has no reason: %+v", a)
		}
		for _, q := range a.Covers.Seqs() {
			s.included[q] = false
		}
	}
	for _, a := range p.Additions {
		s.put(chat.Meta{
			Seq: chat.Seq(len(s.metas) + 1), Position: a.Position, Kind: a.Kind, Role: a.Message.Role,
			Flags: a.Flags, Calls: len(a.Message.ToolCalls), Tokens: a.Tokens,
		}, a.Message)
	}
}

func (s *model) view() []chat.Meta {
	t := s.transcript(false)
	out := make([]chat.Meta, len(t.Entries))
	for i := range t.Entries {
		out[i] = t.Entries[i].Meta
	}
	return out
}

// strict says what a strict provider would refuse in the view, going by contents.
func (s *model) strict() error {
	view := s.view()
	user := -1
	for i, m := range view {
		if m.Role == chat.RoleUser {
			user = i
		}
	}
	for i := 0; i < len(view); i++ {
		m := s.messages[view[i].Seq]
		if m.Role == chat.RoleTool {
			return fmt.Errorf("result at %d without a call", view[i].Seq)
		}
		if m.Role != chat.RoleAssistant || len(m.ToolCalls) == 0 {
			continue
		}
		call, left := i, m.CallIDs()
		for i+1 < len(view) && view[i+1].ReasoningOnly() {
			i++
		}
		for i+1 < len(view) && view[i+1].Role == chat.RoleTool {
			i++
			k := slices.Index(left, s.messages[view[i].Seq].ToolCallID)
			if k < 0 {
				return fmt.Errorf("result at %d answers no call of %d", view[i].Seq, view[call].Seq)
			}
			left = slices.Delete(left, k, k+1)
		}
		if len(left) > 0 && call < user {
			return fmt.Errorf("calls %v at %d have no result", left, view[call].Seq)
		}
	}
	return nil
}

// kept says what the view has lost that it must not lose.
func (s *model) kept(system bool) error {
	var sources []chat.Meta
	last := chat.Seq(0)
	for _, m := range s.metas {
		if plan.IsSource(m.Kind) {
			sources = append(sources, m)
			if m.Role == chat.RoleUser {
				last = m.Seq
			}
		}
	}
	// A user message that the application put behind a call has passed it by.
	passed := last
	for _, m := range s.metas {
		if m.Role == chat.RoleUser && (s.included[m.Seq] || m.Has(chat.Moved)) {
			passed = max(passed, m.Position-1)
		}
	}
	held := func(m chat.Meta) bool {
		return slices.ContainsFunc(s.metas, func(x chat.Meta) bool {
			return s.included[x.Seq] && x.Kind != chat.KindSummary && x.Position == m.Position
		})
	}
	for _, g := range chat.Groups(sources) {
		var call *chat.Meta
		answers, all, some := 0, true, false
		for i := g.Start; i < g.End; i++ {
			if sources[i].Calls > 0 && sources[i].Role == chat.RoleAssistant {
				call = &sources[i]
			}
		}
		for i := g.Start; i < g.End; i++ {
			m := sources[i]
			if m.Role == chat.RoleTool && (call == nil || !m.Has(chat.Paired)) {
				continue
			}
			if m.Role == chat.RoleTool {
				answers++
			}
			// With a faulty result before it gone, a view no longer tells that
			// reasoning does not belong to the call before that.
			if m.ReasoningOnly() && i > 0 && sources[i-1].Role == chat.RoleTool && !sources[i-1].Has(chat.Paired) {
				continue
			}
			all, some = all && held(m), some || held(m)
			lost := !s.included[m.Seq]
			switch {
			case lost && m.Seq == last:
				return fmt.Errorf("last user message %d is gone", m.Seq)
			case lost && system && m.Role == chat.RoleSystem:
				return fmt.Errorf("system message %d is gone", m.Seq)
			}
		}
		open := call != nil && call.Calls > answers && call.Seq > passed
		for i := g.Start; i < g.End; i++ {
			m := sources[i]
			faulty := m.Role == chat.RoleTool && (call == nil || !m.Has(chat.Paired)) ||
				call != nil && m.Seq == call.Seq && call.Calls > answers && !open
			if s.pinned[m.Seq] && !s.included[m.Seq] && !faulty {
				return fmt.Errorf("pinned message %d is gone", m.Seq)
			}
		}
		if dropped := call != nil && answers == 0 && !open; some && !all && !dropped {
			return fmt.Errorf("group %d to %d is split", sources[g.Start].Seq, sources[g.End-1].Seq)
		}
		if open && !all {
			return fmt.Errorf("open call %d is gone", call.Seq)
		}
	}
	return nil
}

// quarter counts characters by four.
type quarter struct{}

func (quarter) Name() string { return "quarter" }

func (quarter) Message(m *chat.Message) chat.Tokens {
	n := len(m.Content.String()) + len(m.Reasoning)
	for _, c := range m.ToolCalls {
		n += len(c.Name) + len(c.Arguments)
	}
	return chat.Tokens(n/4 + 4)
}

// Short forms of messages for tables.
func sys(s string) chat.Message  { return text(chat.RoleSystem, s) }
func user(s string) chat.Message { return text(chat.RoleUser, s) }
func says(s string) chat.Message { return text(chat.RoleAssistant, s) }
func text(r chat.Role, s string) chat.Message {
	return chat.Message{Role: r, Content: chat.TextContent(s)}
}

func thinks(s string) chat.Message {
	return chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, Reasoning: s}
}

// calls makes a call message; a name and an id of a call are both that id.
func calls(ids ...string) chat.Message {
	m := chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}}
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: id, Type: "function", Name: "do_" + id, Arguments: "{}"})
	}
	return m
}

func result(id, s string) chat.Message {
	return chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(s)}
}

func session(ms ...chat.Message) *model {
	s := newModel()
	s.append(ms...)
	return s
}

func mustNew(t testing.TB, name string, p plan.Params) plan.Strategy {
	t.Helper()
	s, err := Builtin().New(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// writes returns a summarizer that always answers the same, or fails where that is
// nothing.
func writes(summary string) plan.Summarizer {
	return plan.Func(func(context.Context, plan.Request) (string, error) {
		if summary == "" {
			return "", errors.New("the model fails")
		}
		return summary, nil
	})
}

// run plans with a pipeline and applies the plan.
func (s *model) run(t interface{ Fatalf(string, ...any) }, p pipeline.Pipeline, whole bool) pipeline.Result {
	tr := s.transcript(whole)
	before := slices.Clone(tr.Entries)
	r, err := p.Run(context.Background(), tr, s.load)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !slices.Equal(before, tr.Entries) {
		t.Fatalf("the transcript was changed")
	}
	s.apply(t, r.Plan)
	view := s.view()
	if len(view) != len(r.View) {
		t.Fatalf("view has %d messages, result says %d\n%v\n%v", len(view), len(r.View), view, r.View)
	}
	var tokens chat.Tokens
	for i, m := range view {
		tokens += m.Tokens
		if want := r.View[i]; !plan.IsSource(m.Kind) && !whole {
			want.Seq = m.Seq
			r.View[i] = want
		}
		if m != r.View[i] {
			t.Fatalf("entry %d of the view is %+v, result says %+v", i, m, r.View[i])
		}
	}
	if tokens != r.After.IncludedTokens || len(view) != r.After.IncludedMessages {
		t.Fatalf("view has %d tokens in %d messages, result says %+v", tokens, len(view), r.After)
	}
	return r
}

// invariants says what is wrong with the view after a run.
func (s *model) invariants(system bool) error {
	if faults := chat.Check(s.view()); len(faults) > 0 {
		return fmt.Errorf("faults %v", faults)
	}
	if err := s.strict(); err != nil {
		return err
	}
	return s.kept(system)
}

// seqs of the view; additions as negative positions.
func (s *model) shape() []int {
	var out []int
	for _, m := range s.view() {
		if plan.IsSource(m.Kind) {
			out = append(out, int(m.Seq))
		} else {
			out = append(out, -int(m.Position))
		}
	}
	return out
}

func sortedReasons(p chat.Plan) map[string]string {
	out := map[string]string{}
	for _, x := range p.Exclude {
		out[x.Reason] = x.Seqs.String()
	}
	slices.SortFunc(p.Additions, func(a, b chat.Addition) int { return cmp.Compare(a.Position, b.Position) })
	for _, a := range p.Additions {
		out[a.Reason] += "+" + a.Covers.String()
	}
	return out
}

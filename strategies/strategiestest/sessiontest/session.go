package sessiontest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Session is a session as a store keeps it: the log, and the messages of it that are in the
// view.
type Session struct {
	Messages map[chat.Seq]*chat.Message
	Metas    []chat.Meta // by seq
	Included map[chat.Seq]bool
	Pinned   map[chat.Seq]bool
	pairer   chat.Pairer
	// Originals reads the originals of transcripts, nil for none.
	Originals plan.Originals
}

// New returns an empty session.
func New() *Session {
	return &Session{
		Messages: map[chat.Seq]*chat.Message{}, Included: map[chat.Seq]bool{}, Pinned: map[chat.Seq]bool{},
	}
}

// Add appends source messages.
func (s *Session) Add(ms ...chat.Message) {
	for _, m := range ms {
		q := chat.Seq(len(s.Metas) + 1)
		meta := s.pairer.Describe(&m, q)
		meta.Tokens = Quarter{}.Message(&m)
		s.Put(meta, m)
	}
}

// Put appends a message with its metadata.
func (s *Session) Put(meta chat.Meta, m chat.Message) {
	s.Metas = append(s.Metas, meta)
	s.Messages[meta.Seq] = &m
	s.Included[meta.Seq] = true
}

// Transcript returns a transcript without content: of the view, or of the whole log.
func (s *Session) Transcript(whole bool) *plan.Transcript {
	t := &plan.Transcript{Counter: Quarter{}, Originals: s.Originals}
	for _, m := range s.Metas {
		if whole || s.Included[m.Seq] {
			t.Entries = append(t.Entries, plan.Entry{Meta: m, Included: s.Included[m.Seq], Pinned: s.Pinned[m.Seq]})
		}
	}
	slices.SortFunc(t.Entries, func(a, b plan.Entry) int { return chat.Compare(a.Meta, b.Meta) })
	return t
}

// Load returns the content of messages, for pipelines.
func (s *Session) Load(_ context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
	out := map[chat.Seq]*chat.Message{}
	for _, q := range seqs {
		out[q] = s.Messages[q]
	}
	return out, nil
}

// Failer is a testing.TB or a rapid.T.
type Failer interface {
	Fatalf(format string, args ...any)
}

// apply applies a plan as a store does, and fails the test if the plan is invalid.
func (s *Session) apply(t Failer, p chat.Plan) {
	seen := map[chat.Seq]string{}
	take := func(name string, r chat.Ranges) {
		for _, q := range r.Seqs() {
			if s.Messages[q] == nil || seen[q] != "" {
				t.Fatalf("%s names %d, which does not exist or is named by %q too", name, q, seen[q])
			}
			seen[q] = name
		}
	}
	for _, x := range p.Exclude {
		take(x.Reason, x.Seqs)
		if x.Reason == "" || len(x.Seqs) == 0 {
			t.Fatalf("exclusion without reason or messages: %+v", x)
		}
		for _, q := range x.Seqs.Seqs() {
			if !s.Included[q] {
				t.Fatalf("%s excludes %d, which is not in the view", x.Reason, q)
			}
			s.Included[q] = false
		}
	}
	take("include", p.Include)
	for _, q := range p.Include.Seqs() {
		if s.Included[q] {
			t.Fatalf("plan includes %d, which is in the view", q)
		}
		s.Included[q] = true
	}
	for _, a := range p.Additions {
		take("addition", a.Covers)
		if len(a.Covers) == 0 || a.Reason == "" {
			t.Fatalf("addition that covers nothing or has no reason: %+v", a)
		}
		for _, q := range a.Covers.Seqs() {
			s.Included[q] = false
		}
	}
	for _, a := range p.Additions {
		s.Put(chat.Meta{
			Seq: chat.Seq(len(s.Metas) + 1), Position: a.Position, Kind: a.Kind, Role: a.Message.Role,
			Flags: a.Flags, Calls: len(a.Message.ToolCalls), Tokens: a.Tokens,
		}, a.Message)
	}
}

// View returns the metadata of the view.
func (s *Session) View() []chat.Meta {
	t := s.Transcript(false)
	out := make([]chat.Meta, len(t.Entries))
	for i := range t.Entries {
		out[i] = t.Entries[i].Meta
	}
	return out
}

// strict returns an error for a view that a strict provider refuses, judged by the content
// of the messages.
func (s *Session) strict() error {
	view := s.View()
	for i := 0; i < len(view); i++ {
		m := s.Messages[view[i].Seq]
		if m.Role == chat.RoleTool {
			return fmt.Errorf("result at %d without a call", view[i].Seq)
		}
		if m.Role != chat.RoleAssistant || len(m.ToolCalls) == 0 {
			continue
		}
		call, left := i, m.CallIDs()
		for i+1 < len(view) && (view[i+1].ReasoningOnly() || view[i+1].Calls > 0 && view[i+1].Has(chat.Parallel)) {
			i++
			left = append(left, s.Messages[view[i].Seq].CallIDs()...)
		}
		for i+1 < len(view) && view[i+1].Role == chat.RoleTool {
			i++
			k := slices.Index(left, s.Messages[view[i].Seq].ToolCallID)
			if k < 0 {
				return fmt.Errorf("result at %d answers no call of %d", view[i].Seq, view[call].Seq)
			}
			left = slices.Delete(left, k, k+1)
		}
		if len(left) > 0 && i+1 < len(view) {
			return fmt.Errorf("calls %v at %d have no result", left, view[call].Seq)
		}
	}
	return nil
}

// kept returns an error if the view lacks a message that must stay or splits a group.
func (s *Session) kept(system bool) error {
	var sources []chat.Meta
	last := chat.Seq(0)
	for _, m := range s.Metas {
		if plan.IsSource(m.Kind) {
			sources = append(sources, m)
			if m.Role == chat.RoleUser {
				last = m.Seq
			}
		}
	}
	// A message that the application moved after a call closes it, and so does one that a run wrote there.
	passed := plan.PassedPosition(s.Transcript(true).Entries)
	held := func(m chat.Meta) bool {
		return slices.ContainsFunc(s.Metas, func(x chat.Meta) bool {
			return s.Included[x.Seq] && x.Kind != chat.KindSummary && x.Position == m.Position
		})
	}
	groups := chat.Groups(sources)
	for k, g := range groups {
		var call *chat.Meta
		if g.Call >= 0 {
			call = &sources[g.Call]
		}
		orphaned := func(m chat.Meta) bool { return m.Role == chat.RoleTool && (call == nil || !m.Has(chat.Paired)) }
		answers, all, some := 0, true, false
		for i := g.Start; i < g.End; i++ {
			m := sources[i]
			if orphaned(m) {
				continue
			}
			if m.Role == chat.RoleTool {
				answers++
			}
			// Once an orphaned result before it is gone, a view does not show that
			// reasoning does not belong to the call before that.
			if m.ReasoningOnly() && i > 0 && sources[i-1].Role == chat.RoleTool && !sources[i-1].Has(chat.Paired) {
				continue
			}
			all, some = all && held(m), some || held(m)
			lost := !s.Included[m.Seq]
			switch {
			case lost && m.Seq == last:
				return fmt.Errorf("last user message %d is gone", m.Seq)
			case lost && system && m.Role == chat.RoleSystem:
				return fmt.Errorf("system message %d is gone", m.Seq)
			}
		}
		open := g.Waits() && call.Seq > passed && k == len(groups)-1
		for i := g.Start; i < g.End; i++ {
			m := sources[i]
			invalid := !m.Role.Known() || orphaned(m) || m.Calls > 0 && g.Waits() && !open
			if s.Pinned[m.Seq] && !s.Included[m.Seq] && !invalid {
				return fmt.Errorf("pinned message %d is gone", m.Seq)
			}
		}
		// Of calls without a result, or without all of them, those that are not answered go.
		dropped := g.Waits() && !open && (answers == 0 || g.Calls > call.Calls)
		if some && !all && !dropped {
			return fmt.Errorf("group %d to %d is split", sources[g.Start].Seq, sources[g.End-1].Seq)
		}
		if open && !all {
			return fmt.Errorf("open call %d is gone", call.Seq)
		}
	}
	return nil
}

// Of returns a session with messages.
func Of(ms ...chat.Message) *Session {
	s := New()
	s.Add(ms...)
	return s
}

// Run plans with a pipeline and applies the plan. It fails the test if the view then differs
// from the result.
func (s *Session) Run(t Failer, p pipeline.Pipeline, whole bool) pipeline.Result {
	return s.run(t, p, whole, false)
}

// RunLimited runs like Run, but limits growth: see Pipeline.LimitGrowth. It fails the test if
// the view grew nevertheless, and applies nothing if it would.
func (s *Session) RunLimited(t Failer, p pipeline.Pipeline, whole bool) pipeline.Result {
	tr := s.Transcript(whole)
	alone, err := pipeline.Pipeline{Guard: p.Guard}.Run(context.Background(), tr, s.Load)
	if err != nil {
		t.Fatalf("%v", err)
	}
	most := alone.Before.IncludedTokens
	if len(alone.Violations) > 0 || slices.ContainsFunc(tr.Entries, func(e plan.Entry) bool { return e.Pinned && !e.Included }) {
		most = max(most, alone.After.IncludedTokens)
	}
	r := s.run(t, p, whole, true)
	switch {
	case !r.WouldGrow && r.After.IncludedTokens > most:
		t.Fatalf("view of %d tokens grew to %d, of at most %d", r.Before.IncludedTokens, r.After.IncludedTokens, most)
	case r.WouldGrow && most > alone.Before.IncludedTokens:
		t.Fatalf("the view stays unrepaired")
	}
	return r
}

func (s *Session) run(t Failer, p pipeline.Pipeline, whole, limited bool) pipeline.Result {
	tr := s.Transcript(whole)
	before := slices.Clone(tr.Entries)
	r, err := p.Run(context.Background(), tr, s.Load)
	if err == nil && limited {
		r, err = p.LimitGrowth(context.Background(), tr, s.Load, r, nil)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !slices.Equal(before, tr.Entries) {
		t.Fatalf("the transcript was changed")
	}
	if r.WouldGrow {
		return r
	}
	s.apply(t, r.Plan)
	view := s.View()
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

// Invariants returns an error if the view after a run is invalid. If system is false, system
// messages may be missing.
func (s *Session) Invariants(system bool) error {
	if violations := chat.Check(s.View()); len(violations) > 0 {
		return fmt.Errorf("violations %v", violations)
	}
	if err := s.strict(); err != nil {
		return err
	}
	return s.kept(system)
}

// Briefly returns the role and text of a message, the id of the call it answers and the ids
// of those it makes.
func Briefly(m *chat.Message) string {
	s := string(m.Role)
	if m.ToolCallID != "" {
		s += "(" + m.ToolCallID + ")"
	}
	if t := m.Content.String(); t != "" {
		s += " " + t
	}
	if ids := m.CallIDs(); len(ids) > 0 {
		s += " calls " + strings.Join(ids, ",")
	}
	return s
}

// Describe returns the metadata of the view or of the whole log, a line per message.
func (s *Session) Describe(whole bool) string {
	var b strings.Builder
	for _, e := range s.Transcript(whole).Entries {
		fmt.Fprintf(&b, "\n  %d@%d %s %s calls=%d flags=%b in=%v pin=%v",
			e.Seq, e.Position, e.Kind, e.Role, e.Calls, e.Flags, e.Included, e.Pinned)
	}
	return b.String()
}

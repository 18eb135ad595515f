package builtin

import (
	"context"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// The actions of an attribution rule.
const (
	attrDrop     = "drop"
	attrProtect  = "protect"
	attrKeep     = "keep"
	attrCollapse = "collapse"
	attrInclude  = "include"
)

// attribution applies rules by the origin of messages: the first rule that a group matches
// decides. Other groups are unchanged.
type attribution struct {
	rules []attributionRule
	keep  int64
}

// attributionRule matches groups by their messages; an empty condition matches all.
type attributionRule struct {
	// sources and roles must match the same message of the group, tools its calls.
	sources, roles, tools []string
	action                string
}

func newAttribution(a *plan.Args) (plan.Strategy, error) {
	s := &attribution{}
	a.Objects("rules", "the first rule that matches a group applies. Each has an action (drop; protect: later steps keep the group too; keep; "+
		"collapse: replace a tool call by one message with its results; include: restore an excluded group) and at least one of source_id, role and tool, "+
		"each a list of names of which one must match; a name may end in *", s.rule)
	s.keep = a.Int(plan.Int{
		Name: "keep_last_tool_call_groups", Default: 1, Min: 0,
		Doc: "how many of the newest tool call groups are never dropped or collapsed",
	})
	return s, nil
}

func (s *attribution) rule(a *plan.Args) {
	r := attributionRule{
		sources: a.Strings("source_id", nil, "source_id of a message"),
		roles:   a.Strings("role", nil, "role of that message"),
		tools:   a.Strings("tool", nil, "tool that the group calls"),
		action:  a.Choice("action", "", "action for matching groups", attrDrop, attrProtect, attrKeep, attrCollapse, attrInclude),
	}
	if len(r.sources)+len(r.roles)+len(r.tools) == 0 && !a.Faulty() {
		a.Missing("source_id", "a condition: source_id, role or tool")
	}
	if !a.Given("action") {
		a.Missing("action", "one of drop, protect, keep, collapse, include")
	}
	s.rules = append(s.rules, r)
}

// Name implements plan.Strategy.
func (*attribution) Name() string { return "attribution" }

// Reads implements plan.Reader. Roles need no content; sources do, calls name the tools,
// and groups that may be collapsed are read in full.
func (s *attribution) Reads(t *plan.Transcript) []chat.Seq {
	var out []chat.Seq
	for i, g := range t.Groups() {
		if !s.concerns(t, i) {
			continue
		}
		call := callsTool(t, g)
		for k := g.Start; k < g.End; k++ {
			e := &t.Entries[k]
			needs := func(r attributionRule) bool {
				return r.action == attrCollapse && g.Kind == chat.GroupToolCall ||
					len(r.sources) > 0 && named(r.roles, string(e.Role)) ||
					len(r.tools) > 0 && namesTool(e, call)
			}
			if slices.ContainsFunc(s.rules, needs) {
				out = append(out, e.Seq)
			}
		}
	}
	return out
}

// concerns reports whether rules apply to a group: excluded groups only if a rule includes
// them, summaries never.
func (s *attribution) concerns(t *plan.Transcript, i int) bool {
	e := &t.Entries[t.Groups()[i].Start]
	if e.Kind == chat.KindSummary && !e.Has(chat.Moved) {
		return false
	}
	return t.GroupIncluded(i) || slices.ContainsFunc(s.rules, func(r attributionRule) bool { return r.action == attrInclude })
}

// Plan implements plan.Strategy.
func (s *attribution) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	const reason = "attribution"
	groups := t.Groups()
	newest := map[int]bool{}
	older := olderToolCalls(t, s.keep)
	for _, i := range olderToolCalls(t, 0)[len(older):] {
		newest[i] = true
	}
	var planned chat.Plan
	var in, out plan.SeqSet
	err := s.decide(t, func(i int, action string) error {
		g, included := groups[i], t.GroupIncluded(i)
		switch {
		case action == attrInclude && !included:
			for k := g.Start; k < g.End; k++ {
				if plan.FromApplication(t.Entries[k].Meta) {
					in.Add(t.Entries[k].Seq)
				}
			}
		case !included || t.GroupPinned(i) || newest[i]:
		case action == attrDrop:
			t.GroupSeqs(&out, i)
		case action == attrCollapse && g.Kind == chat.GroupToolCall:
			a, err := collapsed(t, i, reason)
			if err != nil {
				return err
			}
			planned.Additions = append(planned.Additions, a)
		}
		return nil
	})
	if err != nil {
		return chat.Plan{}, err
	}
	planned.Exclude, planned.Include = out.Exclude(reason).Exclude, in.Ranges()
	return planned, nil
}

// Pins implements plan.Pinner. It pins the groups that a rule protects.
func (s *attribution) Pins(t *plan.Transcript) ([]chat.Seq, error) {
	var out plan.SeqSet
	err := s.decide(t, func(i int, action string) error {
		if action == attrProtect && t.GroupIncluded(i) {
			t.GroupSeqs(&out, i)
		}
		return nil
	})
	return out.Ranges().Seqs(), err
}

// decide calls f with every group that matches a rule and the rule's action.
func (s *attribution) decide(t *plan.Transcript, f func(i int, action string) error) error {
	for i, g := range t.Groups() {
		if !s.concerns(t, i) {
			continue
		}
		for _, r := range s.rules {
			ok, err := r.matches(t, g)
			if err != nil {
				return err
			}
			if ok {
				if err := f(i, r.action); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

func (r *attributionRule) matches(t *plan.Transcript, g chat.Group) (bool, error) {
	if len(r.tools) > 0 {
		if ok, err := anyTool(t, g, r.tools); !ok || err != nil {
			return false, err
		}
	}
	for k := g.Start; k < g.End; k++ {
		if !named(r.roles, string(t.Entries[k].Role)) {
			continue
		}
		if len(r.sources) == 0 {
			return true, nil
		}
		m, err := t.Read(k)
		if err != nil {
			return false, err
		}
		if m.SourceID != "" && named(r.sources, m.SourceID) {
			return true, nil
		}
	}
	return false, nil
}

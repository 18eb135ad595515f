package builtin

import (
	"context"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// attribution applies rules by the origin of messages. Groups that match none are unchanged.
type attribution struct {
	rules
	keep int64
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
	r := rule{
		sources: a.Strings("source_id", nil, "source_id of a message"),
		roles:   a.Strings("role", nil, "role of that message"),
		tools:   a.Strings("tool", nil, "tool that the group calls"),
		action:  a.Choice("action", "", "action for matching groups", actionDrop, actionProtect, actionKeep, actionCollapse, actionInclude),
	}
	if len(r.sources)+len(r.roles)+len(r.tools) == 0 && !a.Faulty() {
		a.Missing("source_id", "a condition: source_id, role or tool")
	}
	if !a.Given("action") {
		a.Missing("action", "one of drop, protect, keep, collapse, include")
	}
	s.rules = append(s.rules, r)
}

func (*attribution) Name() string { return "attribution" }

func (s *attribution) Reads(t *plan.Transcript) []chat.Seq {
	var out []chat.Seq
	for i, g := range t.Groups() {
		if s.concerns(t, i) {
			out = s.reads(t, g, out)
		}
	}
	return out
}

// concerns reports whether rules apply to a group: excluded groups only if a rule includes
// them, summaries never.
func (s *attribution) concerns(t *plan.Transcript, i int) bool {
	if isSummary(&t.Entries[t.Groups()[i].Start]) {
		return false
	}
	return t.GroupIncluded(i) || slices.ContainsFunc(s.rules, func(r rule) bool { return r.action == actionInclude })
}

func (s *attribution) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	const reason = "attribution"
	newest := olderToolCalls(t, 0)[len(olderToolCalls(t, s.keep)):]
	isNewest := func(i int) bool {
		_, ok := slices.BinarySearch(newest, i)
		return ok
	}
	var planned chat.Plan
	var in, out plan.SeqSet
	err := s.each(t, func(i int, action string) error {
		g, included := t.Groups()[i], t.GroupIncluded(i)
		switch {
		case action == actionInclude && !included:
			for k := g.Start; k < g.End; k++ {
				if plan.FromApplication(t.Entries[k].Meta) {
					in.Add(t.Entries[k].Seq)
				}
			}
		case !included || t.GroupPinned(i) || isNewest(i):
		case action == actionDrop:
			t.GroupSeqs(&out, i)
		case action == actionCollapse && g.Kind == chat.GroupToolCall:
			a, err := collapsed(t, i, reason)
			planned.Additions = append(planned.Additions, a)
			return err
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
	err := s.each(t, func(i int, action string) error {
		if action == actionProtect && t.GroupIncluded(i) {
			t.GroupSeqs(&out, i)
		}
		return nil
	})
	return out.Ranges().Seqs(), err
}

// each calls f with every group that rules apply to, and the action of the first that
// matches, "" for none.
func (s *attribution) each(t *plan.Transcript, f func(i int, action string) error) error {
	for i, g := range t.Groups() {
		if !s.concerns(t, i) {
			continue
		}
		action, err := s.first(t, g)
		if err == nil {
			err = f(i, action)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

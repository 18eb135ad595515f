package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// The metrics of truncation.
const (
	metricMessages = "messages"
	metricTokens   = "tokens"
)

// truncation drops the oldest groups of a view larger than maxN until it is no larger than
// compactTo.
type truncation struct {
	maxN, compactTo int64
	tokens          bool
	preserveSystem  bool
}

func newTruncation(a *plan.Args) (plan.Strategy, error) {
	if p, ok := a.Policy(); ok {
		if !a.Given("metric", "max_n", "compact_to") {
			a.Fill("metric", metricTokens)
			a.Fill("max_n", int(p.Target))
			a.Fill("compact_to", int(p.Target))
		}
		a.Fill("preserve_system", p.PreserveSystem)
	}
	s := &truncation{
		maxN: a.Int(plan.Int{
			Name: "max_n", Required: true, Min: 1,
			Doc: "compact when the view is larger than this many messages, pinned groups not counted, or tokens, all counted",
		}),
		compactTo: a.Int(plan.Int{
			Name: "compact_to", Required: true, Min: 1,
			Doc: "stop when the view is no larger than this; at most max_n",
		}),
		tokens: a.Choice("metric", metricMessages, "unit of max_n and compact_to",
			metricMessages, metricTokens) == metricTokens,
		preserveSystem: a.Bool("preserve_system", true, "never drop system messages"),
	}
	if s.compactTo > s.maxN {
		a.Fault("compact_to", s.compactTo, "at most max_n (%d)", s.maxN)
	}
	return s, nil
}

func (*truncation) Name() string { return "truncation" }

// Plan implements plan.Strategy. Since groups are dropped as a whole, the view may become
// smaller than necessary.
func (s *truncation) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	size, retained := s.size(t.Included()), t.MinimumRetained()
	for i := range t.Groups() {
		if !s.tokens && t.GroupPinned(i) {
			size -= s.size(t.GroupTotals(i))
		}
	}
	if size <= s.maxN {
		return chat.Plan{}, nil
	}
	var out plan.SeqSet
	for i, g := range t.Groups() {
		if size <= s.compactTo {
			break
		}
		if i == retained || s.preserveSystem && g.Kind == chat.GroupSystem || t.GroupPinned(i) {
			continue
		}
		size -= s.size(t.GroupTotals(i))
		t.GroupSeqs(&out, i)
	}
	return out.Exclude("truncation"), nil
}

// Truncation implements plan.Truncator.
func (s *truncation) Truncation() plan.Truncation {
	return plan.Truncation{Most: s.maxN, Leave: s.compactTo, Tokens: s.tokens, PreserveSystem: s.preserveSystem}
}

func (s *truncation) size(messages int, tokens chat.Tokens) int64 {
	if s.tokens {
		return int64(tokens)
	}
	return int64(messages)
}

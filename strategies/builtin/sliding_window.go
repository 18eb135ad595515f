package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// slidingWindow keeps the newest groups.
type slidingWindow struct {
	keep           int64
	preserveSystem bool
}

func newSlidingWindow(a *plan.Args) (plan.Strategy, error) {
	if p, ok := a.Policy(); ok {
		a.Fill("preserve_system", p.PreserveSystem)
	}
	return &slidingWindow{
		keep: a.Int(plan.Int{
			Name: "keep_last_groups", Required: true, Min: 1,
			Doc: "how many of the newest groups stay; system messages and pinned groups do not count",
		}),
		preserveSystem: a.Bool("preserve_system", true, "never drop system messages"),
	}, nil
}

// Name implements plan.Strategy.
func (*slidingWindow) Name() string { return "sliding_window" }

// Plan implements plan.Strategy.
func (s *slidingWindow) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	system := func(g chat.Group) bool { return g.Kind == chat.GroupSystem }
	drop := olderGroups(t, s.keep, func(g chat.Group) bool { return !system(g) })
	if !s.preserveSystem {
		drop = append(drop, olderGroups(t, 0, system)...)
	}
	var out plan.SeqSet
	for _, i := range drop {
		t.GroupSeqs(&out, i)
	}
	return out.Exclude("sliding_window"), nil
}

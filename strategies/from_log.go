package strategies

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
)

// reasonReplanned is the reason of summaries and stand-ins that make room for
// what they took the place of.
const reasonReplanned = "replanned"

// fromLog brings back everything that was said and takes out everything that
// earlier runs wrote: what follows plans as if nothing were in force, on a
// transcript of the whole log. It has no name in a Registry: Pipeline.FromLog asks
// for it.
type fromLog struct{}

// Name implements Strategy.
func (fromLog) Name() string { return "from_log" }

// Plan implements Strategy.
func (fromLog) Plan(_ context.Context, t *Transcript) (chat.Plan, error) {
	var in, out seqSet
	for i := range t.Entries {
		switch e := &t.Entries[i]; {
		case said(e.Meta) && !e.Included:
			in.add(e.Seq)
		case !said(e.Meta) && e.Included:
			out.add(e.Seq)
		}
	}
	plan := out.exclude(reasonReplanned)
	plan.Include = in.ranges()
	return plan, nil
}

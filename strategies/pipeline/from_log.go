package pipeline

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// reasonReplanned is the reason of summaries and stand-ins that make room for
// what they took the place of.
const reasonReplanned = "replanned"

// fromLog brings back everything that was said and takes out everything that
// earlier runs wrote: what follows plans as if nothing were in force, on a
// transcript of the whole log. It has no name in a Registry: Pipeline.FromLog asks
// for it.
type FromLog struct{}

// Name implements Strategy.
func (FromLog) Name() string { return "from_log" }

// Plan implements Strategy.
func (FromLog) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	var in, out plan.SeqSet
	for i := range t.Entries {
		switch e := &t.Entries[i]; {
		case plan.FromApplication(e.Meta) && !e.Included:
			in.Add(e.Seq)
		case !plan.FromApplication(e.Meta) && e.Included:
			out.Add(e.Seq)
		}
	}
	plan := out.Exclude(reasonReplanned)
	plan.Include = in.Ranges()
	return plan, nil
}

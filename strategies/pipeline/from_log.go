package pipeline

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// reasonReplanned is the reason of excluded summaries and replacements whose originals are
// restored.
const reasonReplanned = "replanned"

// FromLog restores all messages of the application and excludes all summaries and
// replacements of earlier runs, so that the following steps plan from the whole log. It is
// not in a Registry; see Pipeline.FromLog.
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

package strategies

import (
	"context"
	"iter"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// originals implements plan.Originals on the messages of the conversation, which are in memory,
// so that there is no limit.
func (c *Conversation) originals(_ context.Context, of []chat.Seq, _ int64) (iter.Seq2[chat.Original, error], []*chat.Message, error) {
	reached, explained := make([]bool, len(c.exclusions)), make([]bool, len(c.exclusions))
	for _, q := range of {
		if q < c.next() { // not an addition of the present run
			reached[q-1] = true
		}
	}
	for i := range slices.Backward(reached) { // an addition has a higher seq than the messages that it covers
		switch e, x := &c.entries[c.at[i]], c.exclusions[i]; {
		case e.Included:
		case x.by > 0 && reached[x.by-1]:
			reached[i], explained[x.by-1] = true, true
		case x.by == 0 && x.reason == pipeline.ReasonFallback:
			reached[i] = true
		}
	}
	var out []chat.Original
	var older []*chat.Message
	for i, in := range reached {
		switch e := &c.entries[c.at[i]]; {
		case !in:
		case plan.FromApplication(e.Meta):
			out = append(out, chat.Original{Message: e.Message, Seq: e.Seq})
		case !explained[i]: // of a store
			older = append(older, e.Message)
		}
	}
	return func(yield func(chat.Original, error) bool) {
		for _, m := range out {
			if !yield(m, nil) {
				return
			}
		}
	}, older, nil
}

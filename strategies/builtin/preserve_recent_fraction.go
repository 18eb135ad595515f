package builtin

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

const metricCharacters = "characters"

// preserveRecentFraction keeps the newest part of the view, starting with a user message,
// and summarizes the rest.
type preserveRecentFraction struct {
	splitPoint
	fraction   float64
	characters bool
}

func newPreserveRecentFraction(a *plan.Args) (plan.Strategy, error) {
	return &preserveRecentFraction{
		fraction: a.Float(plan.Float{
			Name: "fraction", Default: 0.3, Min: 0, Max: 1,
			Doc: "share of the view that stays, rounded down to the next user message",
		}),
		characters: a.Choice("metric", metricTokens, "unit of the share; for characters the whole view is read",
			metricTokens, metricCharacters) == metricCharacters,
		splitPoint: newSplitPoint(a, "preserve_recent_fraction", summaryFirst),
	}, nil
}

// Reads implements plan.Reader.
func (s *preserveRecentFraction) Reads(t *plan.Transcript) []chat.Seq {
	if s.characters {
		return s.originals(t).seqs(included(t, func(int, *plan.Entry) bool { return true }))
	}
	preserved, err := s.preserved(t)
	if err != nil {
		return nil
	}
	return s.reads(t, preserved)
}

// Plan implements plan.Strategy.
func (s *preserveRecentFraction) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	preserved, err := s.preserved(t)
	if err != nil {
		return chat.Plan{}, err
	}
	return s.plan(ctx, t, preserved)
}

// preserved reports by index which messages stay: all from the split point on.
func (s *preserveRecentFraction) preserved(t *plan.Transcript) ([]bool, error) {
	sizes := make([]int64, len(t.Entries))
	var total int64
	for i := range t.Entries {
		n, err := s.size(t, i)
		if err != nil {
			return nil, err
		}
		sizes[i] = n
		total += n
	}
	preserved := make([]bool, len(t.Entries))
	for i := s.split(t, sizes, total); i < len(preserved); i++ {
		preserved[i] = true
	}
	return preserved, nil
}

// split returns the index of the first message that stays: the first user message from
// which on the view has at most the given share; otherwise the last one with messages
// before it; in a single turn, the group in which the share begins.
func (s *preserveRecentFraction) split(t *plan.Transcript, sizes []int64, total int64) int {
	before := float64(total) * (1 - s.fraction)
	var sum int64
	last, group := -1, len(t.Entries)
	summarizable := false // a message to summarize precedes the group
	for _, g := range t.Groups() {
		if e := &t.Entries[g.Start]; userTurn(e) {
			if float64(sum) >= before {
				return g.Start
			}
			if summarizable {
				last = g.Start
			}
		}
		start := sum
		for k := g.Start; k < g.End; k++ {
			sum += sizes[k]
			e := &t.Entries[k]
			summarizable = summarizable || e.Included && !instructs(e) && (e.Kind != chat.KindSummary || e.Has(chat.Moved))
		}
		if group == len(t.Entries) && float64(sum) > before && float64(start) <= before {
			group = g.Start
		}
	}
	if last >= 0 {
		return last
	}
	return group
}

func (s *preserveRecentFraction) size(t *plan.Transcript, i int) (int64, error) {
	e := &t.Entries[i]
	if !e.Included || instructs(e) {
		return 0, nil
	}
	if !s.characters {
		return int64(e.Tokens), nil
	}
	m, err := t.Read(i)
	if err != nil {
		return 0, err
	}
	return int64(tokens.MessageLength(m)), nil
}

package builtin

import (
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

const metricCharacters = "characters"

func newPreserveRecentFraction(a *plan.Args) (plan.Strategy, error) {
	fraction := a.Float(plan.Float{
		Name: "fraction", Default: 0.3, Min: 0, Max: 1,
		Doc: "share of the view that stays, rounded down to the next user message",
	})
	characters := a.Choice("metric", metricTokens, "unit of the share; for characters the whole view is read",
		metricTokens, metricCharacters) == metricCharacters
	s := newSplitPoint(a, "preserve_recent_fraction", summaryFirst, func(t *plan.Transcript) (split, error) {
		sizes := make([]int64, len(t.Entries))
		for i := range t.Entries {
			var err error
			if sizes[i], err = sizeOf(t, i, characters); err != nil {
				return split{}, err
			}
		}
		x := split{keep: make([]bool, len(t.Entries)), cut: -1}
		for i := shareFrom(t, sizes, fraction); i < len(x.keep); i++ {
			x.keep[i] = true
		}
		return x, nil
	})
	s.reads = characters
	return s, nil
}

// sizeOf returns the tokens or characters of a message of the conversation in the view.
func sizeOf(t *plan.Transcript, i int, characters bool) (int64, error) {
	e := &t.Entries[i]
	if !e.Included || instructs(e) {
		return 0, nil
	}
	if !characters {
		return int64(e.Tokens), nil
	}
	m, err := t.Read(i)
	if err != nil {
		return 0, err
	}
	return int64(tokens.MessageLength(m)), nil
}

// shareFrom returns the index of the first message that stays: the first user message from
// which on the view has at most the given share; otherwise the last one with messages
// before it; in a single turn, the group in which the share begins.
func shareFrom(t *plan.Transcript, sizes []int64, share float64) int {
	total := int64(0)
	for _, n := range sizes {
		total += n
	}
	before := float64(total) * (1 - share)
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
			summarizable = summarizable || e.Included && !instructs(e) && !isSummary(e)
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

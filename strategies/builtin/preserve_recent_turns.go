package builtin

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

func newPreserveRecentTurns(a *plan.Args) (plan.Strategy, error) {
	if p, ok := a.Policy(); ok {
		a.Fill("context_tokens", int(p.Window))
	}
	turns := a.Int(plan.Int{Name: "turns", Default: 2, Min: 1, Doc: "how many of the newest turns stay"})
	usable := a.Int(plan.Int{Name: "context_tokens", Default: 128_000, Min: 1, Doc: "tokens of the context that can be used; a policy fills in the model's window"})
	fraction := a.Float(plan.Float{Name: "turn_fraction", Default: 0.25, Min: 0, Max: 1, Doc: "share of the context that one turn may have"})
	least := a.Int(plan.Int{Name: "min_turn_tokens", Default: 2000, Min: 0, Doc: "lower limit of that share in tokens"})
	most := a.Int(plan.Int{Name: "max_turn_tokens", Default: 8000, Min: 1, Doc: "upper limit of that share in tokens"})
	if least > most {
		a.Fault("min_turn_tokens", least, "at most max_turn_tokens (%d)", most)
	}
	limit := chat.Tokens(min(max(int64(float64(usable)*fraction), least), most))
	return newSplitPoint(a, "preserve_recent_turns", summaryFirst, func(t *plan.Transcript) (split, error) {
		return split{keep: keepTurns(t, turns, limit), cut: -1}, nil
	}), nil
}

// keepTurns keeps the newest turns. One of more tokens than the limit keeps its user message
// and its newest groups.
func keepTurns(t *plan.Transcript, turns int64, limit chat.Tokens) []bool {
	keep := make([]bool, len(t.Entries))
	// The user message of a turn comes last here, so its tokens are set aside first.
	rest, full := limit-opening(t, len(t.Entries)), false
	for i, g := range slices.Backward(t.Groups()) {
		if turns == 0 {
			break
		}
		if userTurn(&t.Entries[g.Start]) {
			keep[g.Start] = true
			turns--
			rest, full = limit-opening(t, g.Start), false
			continue
		}
		if e := &t.Entries[g.Start]; instructs(e) || rolling(e) {
			continue // instructions stay anyway, earlier summaries never do
		}
		_, n := t.GroupTotals(i)
		if full = full || n > rest; full {
			continue
		}
		rest -= n
		for k := g.Start; k < g.End; k++ {
			keep[k] = true
		}
	}
	return keep
}

// opening returns the tokens of the user message that starts the turn before entry end.
func opening(t *plan.Transcript, end int) chat.Tokens {
	for i := range slices.Backward(t.Entries[:end]) {
		if userTurn(&t.Entries[i]) {
			return t.Entries[i].Tokens
		}
	}
	return 0
}

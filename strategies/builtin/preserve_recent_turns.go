package builtin

import (
	"context"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// preserveRecentTurns keeps the newest turns and summarizes the rest. A turn that is too
// large keeps its user message and its newest groups.
type preserveRecentTurns struct {
	splitPoint
	turns int64
	// maxTurn is the maximum size of a turn.
	maxTurn chat.Tokens
}

func newPreserveRecentTurns(a *plan.Args) (plan.Strategy, error) {
	if p, ok := a.Policy(); ok {
		a.Fill("context_tokens", int(p.Window))
	}
	s := &preserveRecentTurns{
		turns: a.Int(plan.Int{Name: "turns", Default: 2, Min: 1, Doc: "how many of the newest turns stay"}),
	}
	usable := a.Int(plan.Int{Name: "context_tokens", Default: 128_000, Min: 1, Doc: "tokens of the context that can be used; a policy fills in the model's window"})
	fraction := a.Float(plan.Float{Name: "turn_fraction", Default: 0.25, Min: 0, Max: 1, Doc: "share of the context that one turn may have"})
	least := a.Int(plan.Int{Name: "min_turn_tokens", Default: 2000, Min: 0, Doc: "lower limit of that share in tokens"})
	most := a.Int(plan.Int{Name: "max_turn_tokens", Default: 8000, Min: 1, Doc: "upper limit of that share in tokens"})
	if least > most {
		a.Fault("min_turn_tokens", least, "at most max_turn_tokens (%d)", most)
	}
	s.maxTurn = chat.Tokens(min(max(int64(float64(usable)*fraction), least), most))
	s.splitPoint = newSplitPoint(a, "preserve_recent_turns", summaryFirst)
	return s, nil
}

// Reads implements plan.Reader.
func (s *preserveRecentTurns) Reads(t *plan.Transcript) []chat.Seq {
	return s.reads(t, s.preserved(t))
}

// Plan implements plan.Strategy.
func (s *preserveRecentTurns) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	return s.plan(ctx, t, s.preserved(t))
}

// preserved reports by index which messages of the newest turns stay.
func (s *preserveRecentTurns) preserved(t *plan.Transcript) []bool {
	preserved := make([]bool, len(t.Entries))
	turns, rest, full := int64(0), s.maxTurn, false
	// The user message of a turn comes last here, so its tokens are set aside first.
	rest -= s.opening(t, len(t.Entries))
	for i, g := range slices.Backward(t.Groups()) {
		if turns == s.turns {
			break
		}
		if userTurn(&t.Entries[g.Start]) {
			preserved[g.Start] = true
			turns++
			rest, full = s.maxTurn-s.opening(t, g.Start), false
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
			preserved[k] = true
		}
	}
	return preserved
}

// opening returns the tokens of the user message that starts the turn before entry end.
func (*preserveRecentTurns) opening(t *plan.Transcript, end int) chat.Tokens {
	for i := range slices.Backward(t.Entries[:end]) {
		if userTurn(&t.Entries[i]) {
			return t.Entries[i].Tokens
		}
	}
	return 0
}

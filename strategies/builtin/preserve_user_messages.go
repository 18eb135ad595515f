package builtin

import (
	"context"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// leastCut is the minimum number of tokens to cut a message to.
const leastCut = 100

// preserveUserMessages keeps the user's messages and summarizes the rest.
type preserveUserMessages struct {
	splitPoint
	maxTokens chat.Tokens
}

func newPreserveUserMessages(a *plan.Args) (plan.Strategy, error) {
	return &preserveUserMessages{
		maxTokens: chat.Tokens(a.Int(plan.Int{
			Name: "max_tokens", Default: 20_000, Min: 1,
			Doc: "how many tokens of user messages stay, newest first; the one that no longer fits is cut to what is left, and the last one always stays whole",
		})),
		splitPoint: newSplitPoint(a, "preserve_user_messages", summaryAfter),
	}, nil
}

// Reads implements plan.Reader.
func (s *preserveUserMessages) Reads(t *plan.Transcript) []chat.Seq {
	preserved, cut, _ := s.preserved(t)
	seqs := seqsOf(t, older(t, preserved))
	if cut >= 0 {
		seqs = append(seqs, t.Entries[cut].Seq)
	}
	return seqs
}

// preserved reports by index which user messages stay, and which of them has to be cut, or
// -1, and to how many tokens.
func (s *preserveUserMessages) preserved(t *plan.Transcript) (preserved []bool, cut int, room chat.Tokens) {
	preserved, room = make([]bool, len(t.Entries)), s.maxTokens
	may := rewritable(t)
	for i := range slices.Backward(t.Entries) {
		e := &t.Entries[i]
		if !e.Included || e.Role != chat.RoleUser || e.Kind == chat.KindSummary && !e.Has(chat.Moved) {
			continue
		}
		if e.Tokens > room && may(i) {
			// A message that was cut already has had its share.
			if room >= leastCut && plan.IsSource(e.Kind) && e.Has(chat.HasText) {
				preserved[i] = true
				return preserved, i, room
			}
			return preserved, -1, 0
		}
		preserved[i] = true
		room -= e.Tokens
	}
	return preserved, -1, 0
}

// Plan implements plan.Strategy.
func (s *preserveUserMessages) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	preserved, cut, room := s.preserved(t)
	var standIns []chat.Addition
	if cut >= 0 {
		e := &t.Entries[cut]
		m, err := t.Read(cut)
		if err != nil {
			return chat.Plan{}, err
		}
		if short, n, ok := clampMessage(t.Counter, e, m, room, 0, 0.5); ok && n <= room {
			a := replacement(e, short, s.name)
			a.Tokens = n
			standIns = append(standIns, a)
		} else {
			preserved[cut] = false
		}
	}
	plan, err := s.plan(ctx, t, preserved)
	if err == nil && !plan.Empty() {
		plan.Additions = append(plan.Additions, standIns...)
	}
	return plan, err
}

package builtin

import (
	"context"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// minCut is the minimum number of tokens to cut a message to.
const minCut = 100

// preserveUserMessages keeps the user's messages and summarizes the rest.
type preserveUserMessages struct {
	splitPoint
	maxTokens chat.Tokens
}

func newPreserveUserMessages(a *plan.Args) (plan.Strategy, error) {
	return &preserveUserMessages{
		maxTokens: chat.Tokens(a.Int(plan.Int{
			Name: "max_tokens", Default: 20_000, Min: 1,
			Doc: "how many tokens of user messages stay, newest first; the first one that does not fit is shortened, but never the last user message",
		})),
		splitPoint: newSplitPoint(a, "preserve_user_messages", summaryAfter),
	}, nil
}

// Reads implements plan.Reader.
func (s *preserveUserMessages) Reads(t *plan.Transcript) []chat.Seq {
	preserved, cut, _ := s.preserved(t)
	seqs := s.reads(t, preserved)
	if cut >= 0 {
		seqs = append(seqs, t.Entries[cut].Seq)
	}
	return seqs
}

// preserved reports by index which user messages stay. cut is the index of the one to
// shorten to size tokens, or -1.
func (s *preserveUserMessages) preserved(t *plan.Transcript) (preserved []bool, cut int, size chat.Tokens) {
	preserved = make([]bool, len(t.Entries))
	rest, canRewrite := s.maxTokens, rewritable(t)
	for i := range slices.Backward(t.Entries) {
		e := &t.Entries[i]
		if !e.Included || e.Role != chat.RoleUser || e.Kind == chat.KindSummary && !e.Has(chat.Moved) {
			continue
		}
		if e.Tokens > rest && canRewrite(i) {
			// A message that was shortened before is not shortened again.
			if rest >= minCut && plan.IsSource(e.Kind) && e.Has(chat.HasText) {
				preserved[i] = true
				return preserved, i, rest
			}
			return preserved, -1, 0
		}
		preserved[i] = true
		rest -= e.Tokens
	}
	return preserved, -1, 0
}

// Plan implements plan.Strategy.
func (s *preserveUserMessages) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	preserved, cut, size := s.preserved(t)
	var shortened []chat.Addition
	if cut >= 0 {
		e := &t.Entries[cut]
		m, err := t.Read(cut)
		if err != nil {
			return chat.Plan{}, err
		}
		if short, n, ok := clampMessage(t.Counter, e, m, size, 0, 0.5); ok && n <= size {
			a := replacement(e, short, s.name)
			a.Tokens = n
			shortened = append(shortened, a)
		} else {
			preserved[cut] = false
		}
	}
	plan, err := s.plan(ctx, t, preserved)
	if err == nil && !plan.Empty() {
		plan.Additions = append(plan.Additions, shortened...)
	}
	return plan, err
}

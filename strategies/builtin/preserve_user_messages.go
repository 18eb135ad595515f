package builtin

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// minCut is the minimum number of tokens to cut a message to.
const minCut = 100

func newPreserveUserMessages(a *plan.Args) (plan.Strategy, error) {
	most := chat.Tokens(a.Int(plan.Int{
		Name: "max_tokens", Default: 20_000, Min: 1,
		Doc: "how many tokens of user messages stay, newest first; the first one that does not fit is shortened, but never the last user message",
	}))
	return newSplitPoint(a, "preserve_user_messages", summaryAfter, func(t *plan.Transcript) (split, error) {
		return keepUserMessages(t, most), nil
	}), nil
}

// keepUserMessages keeps the newest user messages within rest tokens, and a part of the one
// that does not fit. A message that was shortened before is not shortened again.
func keepUserMessages(t *plan.Transcript, rest chat.Tokens) split {
	x := split{keep: make([]bool, len(t.Entries)), cut: -1}
	canRewrite := rewritable(t)
	for i := range slices.Backward(t.Entries) {
		e := &t.Entries[i]
		if !e.Included || e.Role != chat.RoleUser || isSummary(e) {
			continue
		}
		if e.Tokens > rest && canRewrite(i) {
			if rest >= minCut && plan.IsSource(e.Kind) && e.Has(chat.HasText) {
				x.keep[i], x.cut, x.size = true, i, rest
			}
			break
		}
		x.keep[i] = true
		rest -= e.Tokens
	}
	return x
}

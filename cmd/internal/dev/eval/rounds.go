package eval

import (
	"context"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
)

// keep compacts a session in rounds, as a worker does while it grows: each round compacts the
// result of the previous one and the messages up to the next equal share of the tokens, within
// the whole budget.
func (p *Policy) keep(ctx context.Context, in Input, rounds int) (Kept, error) {
	all := in.Messages
	parts, rest := partsOf(all, rounds)
	if p.Grow != nil {
		kept, err := p.Grow(ctx, in, parts)
		kept.Messages = slices.Concat(kept.Messages, rest)
		return kept, err
	}
	var kept Kept
	to := 0
	for _, grown := range parts {
		to += len(grown)
		in.Log = all[:to]
		in.Previous, in.Messages = "", slices.Concat(kept.Messages, grown)
		if text := len(kept.Messages) - 1; p.Updates && text >= 0 {
			in.Previous = kept.Messages[text].Content.String()
			in.Messages = slices.Concat(kept.Messages[:text], grown)
		}
		next, err := p.Keep(ctx, in)
		next.add(kept.Usage)
		if kept = next; err != nil {
			return kept, err
		}
	}
	return Kept{slices.Concat(kept.Messages, rest), kept.Usage}, nil
}

// partsOf divides messages into at most n parts of about equal tokens. rest has none.
func partsOf(all []chat.Message, n int) (parts [][]chat.Message, rest []chat.Message) {
	from := 0
	for k := 1; k <= n; k++ {
		to := len(all)
		if k < n {
			to = retention.CutIndex(all, float64(k)/float64(n))
		}
		part := all[from:to]
		if retention.Total(part) == 0 && (k < n || from > 0) {
			continue // nothing to compact yet, or any more
		}
		parts, from = append(parts, part), to
	}
	return parts, all[from:]
}

// systems returns the system messages among ms.
func systems(ms []chat.Message) []chat.Message {
	var out []chat.Message
	for i := range ms {
		if r := ms[i].Role; r == chat.RoleSystem || r == chat.RoleDeveloper {
			out = append(out, ms[i])
		}
	}
	return out
}

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
	var kept Kept
	from := 0
	for n := 1; n <= rounds; n++ {
		to := len(all)
		if n < rounds {
			to = retention.CutIndex(all, float64(n)/float64(rounds))
		}
		grown := all[from:to]
		if retention.Total(grown) == 0 && (n < rounds || from > 0) {
			continue // nothing to compact yet, or any more
		}
		from = to
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
	return Kept{slices.Concat(kept.Messages, all[from:]), kept.Usage}, nil
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

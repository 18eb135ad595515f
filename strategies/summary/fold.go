package summary

import (
	"context"
	"errors"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// How far a summary that does not fit is tried.
const (
	// mostHalved is how often an answer that the prompt is too long halves the part.
	mostHalved = 5
	// leastRoom is the least a part may have, in tokens.
	leastRoom = 500
)

// ask has the model summarize: in one part where all fits into its window, else in
// several, each of which brings the summary of those before it up to date.
func (w *Writer) ask(ctx context.Context, m *input) (string, error) {
	model := w.o.Model.Usable(ctx)
	w.bound(m, model)
	room, err := w.room(m, model)
	if err != nil {
		return "", err
	}
	w.trim(m, room)
	m.report.PromptVersion = PromptVersion
	todo := w.within(m, stretches(m.messages), room)
	previous, prose := m.previous, ""
	for len(todo) > 0 {
		part, rest, cut := take(todo, room)
		told, trims := m.cut, len(m.report.Trimmed)
		if cut > 0 {
			m.trimmed("shorten", Trimmed{Outputs: len(part), Tokens: chat.Tokens(cut)})
		}
		prose, err = w.prose(ctx, m, previous, part)
		var failed *llm.Error
		if errors.As(err, &failed) && failed.Class == llm.ContextTooLong && m.report.Halved < mostHalved && room/2 >= leastRoom {
			m.report.Halved++
			m.cut, m.report.Trimmed = told, m.report.Trimmed[:trims] // it is cut anew
			room = min(room, sizeAll(part)) / 2
			todo = w.within(m, todo, room)
			continue
		}
		if err != nil {
			return "", failure(err)
		}
		m.report.Parts++
		if len(rest) > 0 && w.o.Settings.Overspent(m.spent) {
			return "", &plan.Failure{Code: "over_budget"}
		}
		previous, todo = prose, rest
	}
	return w.whole(m, prose)
}

// within drops the oldest groups until what is left can be read in as many parts as
// the settings leave, one at least: what a summary may cost is bounded.
func (w *Writer) within(m *input, all []stretch, room int) []stretch {
	parts, left, most := 1, room, max(1, w.o.Settings.MaxParts-m.report.Parts)
	for i, s := range slices.Backward(all) {
		size := min(s.size, room)
		if size > left {
			parts, left = parts+1, room
		}
		if parts > most {
			var cut Trimmed
			for _, s := range all[:i+1] {
				cut = cut.Plus(Trimmed{Messages: len(s.messages), Tokens: chat.Tokens(s.size)})
			}
			m.trimmed(policy.DropOldest, cut)
			return all[i+1:]
		}
		left -= size
	}
	return all
}

// failure is why there is no summary, as a code with how long to wait.
func failure(err error) error {
	var f *llm.Error
	if !errors.As(err, &f) {
		return err
	}
	return &plan.Failure{Code: string(f.Class), Wait: f.RetryAfter, Err: f}
}

func sizeAll(messages []*chat.Message) int {
	n := 0
	for _, m := range messages {
		n += sizeOf(m)
	}
	return n
}

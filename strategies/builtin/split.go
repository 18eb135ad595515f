package builtin

import (
	"context"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/summary"
)

// The positions of the summary of a split-point strategy.
const (
	summaryFirst = "first"
	summaryAfter = "after_preserved"
)

// split divides a view into messages that stay and others to summarize.
type split struct {
	keep []bool // by index, the messages that stay
	// cut is the index of one of them that is shortened to size tokens, -1 for none.
	cut  int
	size chat.Tokens
}

// splitPoint is a strategy that summarizes all messages that its split does not keep.
type splitPoint struct {
	name string
	summarizing
	after bool // the summary follows the messages that stay
	split func(t *plan.Transcript) (split, error)
	// reads reports that split reads the content of the whole view.
	reads bool
}

func newSplitPoint(a *plan.Args, name, where string, f func(t *plan.Transcript) (split, error)) *splitPoint {
	return &splitPoint{
		name:        name,
		summarizing: summarizing{a.Summarizer()},
		after: a.Choice("summary", where, "position of the summary: before all preserved messages, or after them",
			summaryFirst, summaryAfter) == summaryAfter,
		split: f,
	}
}

func (s *splitPoint) Name() string { return s.name }

func (s *splitPoint) Reads(t *plan.Transcript) []chat.Seq {
	if s.reads {
		return s.originals(t).seqs(included(t, anyEntry))
	}
	x, _ := s.split(t) // without content it does not fail
	out := s.withPins(t, s.originals(t).seqs(s.older(t, x)))
	if x.cut >= 0 {
		out = append(out, t.Entries[x.cut].Seq)
	}
	return out
}

// Plan implements plan.Strategy. The plan is empty if there is nothing to summarize but the
// last summary.
func (s *splitPoint) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	x, err := s.split(t)
	if err != nil {
		return chat.Plan{}, err
	}
	var shortened []chat.Addition
	if x.cut >= 0 {
		e := &t.Entries[x.cut]
		m, err := t.Read(x.cut)
		if err != nil {
			return chat.Plan{}, err
		}
		short, n, ok := clampMessage(t.Counter, e, m, x.size, 0, 0.5)
		if ok && n <= x.size {
			a := replacement(e, short, s.name)
			a.Tokens = n
			shortened = append(shortened, a)
		} else {
			x.keep[x.cut] = false
		}
	}
	covered := s.older(t, x)
	task, err := s.task(t, covered)
	if err != nil || len(task.Messages) == 0 {
		return chat.Plan{}, err
	}
	position := s.position(t, x)
	summary, err := s.replace(ctx, t, task, covered, func(text string) chat.Addition {
		return chat.Addition{
			Reason: s.name, Position: position,
			Message: chat.Message{Role: chat.RoleUser, Content: chat.TextContent(s.framed(splitHead, text))},
		}
	})
	if err != nil {
		return chat.Plan{}, err
	}
	return chat.Plan{Additions: append([]chat.Addition{summary}, shortened...)}, nil
}

// older returns the messages of the view to summarize: those that the split does not keep.
// Instructions, the last user message, pinned groups, incomplete calls and groups of which a
// message is kept stay in any case.
func (s *splitPoint) older(t *plan.Transcript, x split) []int {
	var out []int
	last, waiting := lastUser(t), waitingFrom(t)
	for i, g := range t.Groups() {
		if g.End > waiting || t.GroupPinned(i) {
			continue
		}
		stays := false
		for k := g.Start; k < g.End; k++ {
			e := &t.Entries[k]
			stays = stays || e.Included && !rolling(e) && (x.keep[k] || instructs(e) || e.Role == chat.RoleUser && e.Position == last)
		}
		if !stays {
			out = append(out, entriesOf(t, i)...)
		}
	}
	return out
}

// position returns the position of the summary: before the first included message that is
// no instruction, or after the last one that stays.
func (s *splitPoint) position(t *plan.Transcript, x split) chat.Seq {
	for i := range slices.Backward(t.Entries) {
		if e := &t.Entries[i]; s.after && x.keep[i] && e.Included && !rolling(e) {
			return e.Position + 1
		}
	}
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Included && !instructs(e) {
			return e.Position
		}
	}
	return 0
}

// splitHead begins every summary, so that models and later runs recognize it.
const splitHead = "[Summary of the conversation so far]\n\n"

// task returns the task for the entries, with the summary of an earlier run as the previous
// one. The task has no messages if there is nothing else.
func (s *splitPoint) task(t *plan.Transcript, entries []int) (plan.Task, error) {
	sources := s.originals(t)
	task := plan.Task{Followed: true, Prompt: standardPrompt(summary.Prompt{})}
	for _, i := range entries {
		m, err := t.Read(i)
		if err != nil {
			return task, err
		}
		if text, ok := strings.CutPrefix(m.Content.String(), splitHead); ok && t.Entries[i].Kind == chat.KindSummary {
			task.Previous += text + "\n"
		} else if err := sources.add(&task, i); err != nil {
			return task, err
		}
	}
	return task, nil
}

// rolling reports whether an entry may be the summary of an earlier run, which the next one
// includes wherever it stands.
func rolling(e *plan.Entry) bool { return isSummary(e) && e.Role == chat.RoleUser }

// waitingFrom returns the index of the first included entry that waits for results (see
// chat.OpenFrom), or the number of entries.
func waitingFrom(t *plan.Transcript) int {
	groups, at := t.ViewGroups()
	from := chat.OpenFrom(groups, plan.PassedPosition(t.Entries), func(i int) *chat.Meta { return &t.Entries[at[i]].Meta })
	if from < 0 {
		return len(t.Entries)
	}
	return int(at[from])
}

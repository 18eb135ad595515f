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

// splitPoint is the common part of the split-point strategies, which summarize all messages
// that they do not preserve and differ only in which those are.
type splitPoint struct {
	name string
	summarizing
	after bool // the summary follows the preserved messages
}

func newSplitPoint(a *plan.Args, name, where string) splitPoint {
	return splitPoint{
		name:        name,
		summarizing: summarizing{a.Summarizer()},
		after: a.Choice("summary", where, "position of the summary: before all preserved messages, or after them",
			summaryFirst, summaryAfter) == summaryAfter,
	}
}

// Name implements plan.Strategy.
func (s *splitPoint) Name() string { return s.name }

// older returns the messages of the view to summarize: those that preserved does not name
// by index. Instructions, the last user message, pinned groups, incomplete calls and groups
// of which a message is preserved stay in any case.
func older(t *plan.Transcript, preserved []bool) []int {
	var out []int
	last, waiting := lastUser(t), waitingFrom(t)
	for i, g := range t.Groups() {
		if g.End > waiting || t.GroupPinned(i) {
			continue
		}
		stays := false
		for k := g.Start; k < g.End; k++ {
			e := &t.Entries[k]
			stays = stays || e.Included && !rolling(e) &&
				(preserved[k] || instructs(e) || e.Role == chat.RoleUser && e.Position == last)
		}
		for k := g.Start; k < g.End && !stays; k++ {
			if t.Entries[k].Included {
				out = append(out, k)
			}
		}
	}
	return out
}

// instructs reports whether a message is a standing instruction to the model.
func instructs(e *plan.Entry) bool { return e.Role == chat.RoleSystem || e.Role == chat.RoleDeveloper }

// rolling reports whether an entry may be the summary of an earlier run, which the next one
// includes wherever it stands.
func rolling(e *plan.Entry) bool {
	return e.Kind == chat.KindSummary && e.Role == chat.RoleUser && !e.Has(chat.Moved)
}

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

// reads returns what Plan reads for preserved entries.
func (s *splitPoint) reads(t *plan.Transcript, preserved []bool) []chat.Seq {
	return s.withPins(t, s.originals(t).seqs(older(t, preserved)))
}

// plan summarizes the older messages, whose content must be loaded. It returns the empty
// plan if they are only the last summary.
func (s *splitPoint) plan(ctx context.Context, t *plan.Transcript, preserved []bool) (chat.Plan, error) {
	covered := older(t, preserved)
	task, err := s.task(t, covered)
	if err != nil || len(task.Messages) == 0 {
		return chat.Plan{}, err
	}
	write := func(text string) chat.Message {
		return chat.Message{Role: chat.RoleUser, Content: chat.TextContent(s.framed(splitHead, text))}
	}
	text, err := s.ask(ctx, counted(t, task, covered, write))
	if err != nil {
		return chat.Plan{}, err
	}
	return chat.Plan{Additions: []chat.Addition{{
		Kind: chat.KindSummary, Reason: s.name, Covers: chat.RangesOf(seqsOf(t, covered)...),
		Position: s.position(t, preserved), Message: write(text),
	}}}, nil
}

// position returns the position of the summary: before the first included message that is
// no instruction, or after the last preserved one.
func (s *splitPoint) position(t *plan.Transcript, preserved []bool) chat.Seq {
	for i := range slices.Backward(t.Entries) {
		if e := &t.Entries[i]; s.after && preserved[i] && e.Included && !rolling(e) {
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
	var previous strings.Builder
	sources := s.originals(t)
	task := plan.Task{Followed: true, Prompt: standardPrompt(summary.Prompt{}), Messages: make([]*chat.Message, 0, len(entries))}
	for _, i := range entries {
		m, err := t.Read(i)
		if err != nil {
			return task, err
		}
		if text, ok := strings.CutPrefix(m.Content.String(), splitHead); ok && t.Entries[i].Kind == chat.KindSummary {
			previous.WriteString(text + "\n")
			continue
		}
		messages, kinds, err := sources.read(i)
		if err != nil {
			return task, err
		}
		task.Messages, task.Kinds = append(task.Messages, messages...), append(task.Kinds, kinds...)
	}
	task.Previous = previous.String()
	return task, nil
}

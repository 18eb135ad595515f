package builtin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/summary"
)

// summarizing is embedded in strategies that request summaries.
type summarizing struct{ summarizer plan.Summarizer }

// Summarizer returns the summarizer; the pipeline checks whether it is strict.
func (s summarizing) Summarizer() plan.Summarizer { return s.summarizer }

// strict reports whether the summarizer is a plan.Strict.
func (s summarizing) strict() bool {
	_, strict := s.summarizer.(plan.Strict)
	return strict
}

// extractor returns the summarizer of a strategy that needs no model.
func extractor(a *plan.Args) plan.Summarizer {
	if s := a.Extractor(); s != nil {
		return s
	}
	return extracts{}
}

// extracts writes extracts without the settings of a policy. It is safe for concurrent use.
type extracts struct{}

func (extracts) Summarize(ctx context.Context, r plan.Request) (string, error) {
	return summary.New(summary.Options{}).Summarize(ctx, r)
}

func (extracts) Write(ctx context.Context, t plan.Task) (string, error) {
	return summary.New(summary.Options{}).Write(ctx, t)
}

func (extracts) Strict() {}

// framed returns a summary in its stored form: after the strategy's head or, if the
// summarizer is strict, between delimiters, by which models and later runs of any strategy recognize
// it.
func (s summarizing) framed(head, text string) string {
	if s.strict() {
		return frame.Wrap(text, frame.Options{})
	}
	return head + text
}

// followed reports whether a user message stays in the view after entry last.
func followed(t *plan.Transcript, last int) bool {
	return slices.ContainsFunc(t.Entries[last+1:], func(e plan.Entry) bool { return e.Included && userTurn(&e) })
}

// shownBytes is the maximum length of each text and of each call's arguments in a prompt.
const shownBytes = 6000

// standardPrompt returns the Prompt of a task, for summarizers without one of their own.
func standardPrompt(p summary.Prompt) func(previous string, messages []*chat.Message) (system, user string) {
	return func(previous string, messages []*chat.Message) (system, user string) {
		return p.Render(previous, summary.Clip(messages, shownBytes))
	}
}

// kindOf returns the kind of an entry for a task: a message that the application moved is its
// own.
func kindOf(e *plan.Entry) chat.Kind {
	if e.Has(chat.Moved) {
		return chat.KindSource
	}
	return e.Kind
}

// maxPins is how many pinned messages a task has, the newest.
const maxPins = 32

// pins returns the entries that are pinned in the view, but for instructions.
func pins(t *plan.Transcript) []int {
	out := included(t, func(_ int, e *plan.Entry) bool { return e.Pinned && !instructs(e) })
	return out[max(0, len(out)-maxPins):]
}

// current returns the entry of the last user message, -1 if it is not in the view.
func current(t *plan.Transcript) int {
	last := lastUser(t)
	return slices.IndexFunc(t.Entries, func(e plan.Entry) bool { return userTurn(&e) && e.Position == last })
}

// withPins adds the pinned messages and the last one of the user to the reads of a strategy, if
// there are any and the summarizer is strict: others make their prompts of the summarized
// messages alone.
func (s summarizing) withPins(t *plan.Transcript, reads []chat.Seq) []chat.Seq {
	if len(reads) == 0 || !s.strict() {
		return reads
	}
	reads = append(reads, seqsOf(t, pins(t))...)
	if i := current(t); i >= 0 && !slices.Contains(reads, t.Entries[i].Seq) {
		reads = append(reads, t.Entries[i].Seq)
	}
	return reads
}

// replace requests the summary of a task and returns the addition that write makes of it,
// which covers entries.
func (s summarizing) replace(ctx context.Context, t *plan.Transcript, task plan.Task, covered []int, write func(summary string) chat.Addition) (chat.Addition, error) {
	text, err := s.ask(ctx, counted(t, task, covered, func(summary string) chat.Message { return write(summary).Message }))
	if err != nil {
		return chat.Addition{}, err
	}
	a := write(text)
	a.Kind, a.Covers = chat.KindSummary, chat.RangesOf(seqsOf(t, covered)...)
	return a, nil
}

// counted returns the task of a summary that covers entries: with the sources of earlier
// summaries among them, with a limit by which it saves something (the last user message does
// not leave the view), with the pinned messages and the user's current one, and with the
// tokens of the message that write returns for it together with the messages beside it.
func counted(t *plan.Transcript, task plan.Task, covered []int, write func(summary string) chat.Message, beside ...chat.Message) plan.Task {
	last := lastUser(t)
	for _, i := range covered {
		if e := &t.Entries[i]; !userTurn(e) || e.Position != last {
			task.Limit += e.Tokens
		}
	}
	task.Limit = max(1, task.Limit-1)
	task.Originals = fromLog(t, covered)
	task.Sources = sourcesOf(t, task, covered)
	for _, i := range pins(t) {
		if m := t.Entries[i].Message; m != nil && !slices.Contains(covered, i) {
			task.Pinned, task.PinnedSeqs = append(task.Pinned, m), append(task.PinnedSeqs, t.Entries[i].Seq)
		}
	}
	if i := current(t); i >= 0 && !t.Entries[i].Pinned && !slices.Contains(covered, i) && slices.ContainsFunc(covered, func(k int) bool { return k > i }) {
		task.Current, task.CurrentSeq = t.Entries[i].Message, t.Entries[i].Seq
	}
	if t.Counter != nil {
		task.Size = func(summary string) chat.Tokens {
			var size chat.Tokens
			for _, m := range append(beside, write(summary)) {
				size += t.Counter.Message(&m)
			}
			return size
		}
	}
	return task
}

// addMessage adds a message to those that a task summarizes.
func addMessage(task *plan.Task, m *chat.Message, kind chat.Kind, seq chat.Seq) {
	task.Messages, task.Kinds, task.Seqs = append(task.Messages, m), append(task.Kinds, kind), append(task.Seqs, seq)
}

// ask requests a summary and trims it. Secrets are masked in the prompt and in the answer.
// The error wraps ErrNoSummary unless it is that of ctx or wraps plan.ErrInterrupted; an
// empty answer is an error too.
func (s summarizing) ask(ctx context.Context, t plan.Task) (string, error) {
	answer, err := plan.Do(ctx, s.summarizer, t)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, plan.ErrInterrupted) {
			return "", err
		}
		return "", fmt.Errorf("%w: %w", plan.ErrNoSummary, err)
	}
	if answer = text.Trim(answer); answer == "" {
		return "", fmt.Errorf("%w: %w", plan.ErrNoSummary, plan.ErrEmptySummary)
	}
	return answer, nil
}

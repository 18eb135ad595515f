package summarize

import (
	"context"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Task is a summary that a strategy wants, before it is put into a prompt.
type Task struct {
	// Messages are what is summarized, in order, without the previous summary. They
	// are shared and must not be changed.
	Messages []*chat.Message
	// Previous is the summary that this one brings up to date, empty for none.
	Previous string
	// Focus is a topic that the summary should favour.
	Focus string
	// MaxTokens bounds the answer; 0 leaves that to the summarizer.
	MaxTokens int
	// Instruction is what somebody wants the summary to be like, empty for no wish.
	Instruction string
	// Prompt puts messages, all of them or some, behind a previous summary, for who
	// has no prompt of its own. It depends on nothing else and is safe for concurrent use.
	Prompt func(previous string, messages []*chat.Message) (system, user string)
}

// Writer is a Summarizer that works from the messages: one that shortens them, reads
// them in parts or needs no prompt at all.
type Writer interface {
	Summarizer
	// Write writes the summary of a task. Secrets in the task are its business.
	Write(ctx context.Context, t Task) (string, error)
}

// Request is the task as one prompt, without what Redact recognises as a secret.
func (t *Task) Request() Request {
	r := Request{MaxTokens: t.MaxTokens}
	r.System, r.User = t.Prompt(t.Previous, t.Messages)
	r.User, _ = Redact(r.User)
	r.Focus, _ = Redact(t.Focus)
	return r
}

// Do has a task done by whoever s is.
func Do(ctx context.Context, s Summarizer, t Task) (string, error) {
	if w, ok := s.(Writer); ok {
		return w.Write(ctx, t)
	}
	return s.Summarize(ctx, t.Request())
}

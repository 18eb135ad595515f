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
	// Followed: a message of the user stays behind what is summarized, so that what is
	// asked now is not in Messages.
	Followed bool
	// Focus is a topic that the summary should favour.
	Focus string
	// Budget is how many tokens the summary should have, MaxTokens how many it may have.
	// 0 leaves that to the summarizer.
	Budget, MaxTokens int
	// Most is the most that Budget may be, 0 for no bound: a Writer that has sizes of its
	// own goes by those within it, not by Budget.
	Most int
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

// Strict is a Writer whose summaries are not taken where they would make the view larger:
// a strategy's own text around them counts, too.
type Strict interface {
	Writer
	Strict()
}

// Request is the task as one prompt, without what Redact recognises as a secret.
func (t *Task) Request() Request {
	r := Request{MaxTokens: t.MaxTokens}
	r.System, r.User = t.Prompt(t.Previous, t.Messages)
	r.User, _ = Redact(r.User)
	r.Focus, _ = Redact(t.Focus)
	return r
}

// Do has a task done by whoever s is. No secret that Redact recognises is sent or comes
// back; a Writer sees to that itself.
func Do(ctx context.Context, s Summarizer, t Task) (string, error) {
	if w, ok := s.(Writer); ok {
		return w.Write(ctx, t)
	}
	text, err := s.Summarize(ctx, t.Request())
	text, _ = Redact(text)
	return text, err
}

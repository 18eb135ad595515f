package plan

import (
	"context"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/redact"
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

// Redact returns the task without secrets, and what was masked. Messages are copied where
// they have any.
func (t Task) Redact() (Task, redact.Found) {
	found := redact.Found{}
	mask := func(s string) string {
		s, n := redact.Redact(s)
		found.Add(n)
		return s
	}
	t.Previous, t.Focus, t.Instruction = mask(t.Previous), mask(t.Focus), mask(t.Instruction)
	messages := make([]*chat.Message, len(t.Messages))
	for i, m := range t.Messages {
		messages[i] = redacted(m, mask)
	}
	t.Messages = messages
	return t, found
}

// redacted returns a message with mask applied to each of its texts: m itself, where that
// changes nothing.
func redacted(m *chat.Message, mask func(string) string) *chat.Message {
	out := *m
	changed := false
	set := func(s *string) bool {
		was := *s
		*s = mask(was)
		changed = changed || *s != was
		return *s != was
	}
	set(&out.Name)
	set(&out.ToolCallID)
	set(&out.Content.Text)
	out.Content.Parts = slices.Clone(m.Content.Parts)
	for i := range out.Content.Parts {
		if p := &out.Content.Parts[i]; set(&p.Text) {
			p.Raw = nil
		}
	}
	out.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range out.ToolCalls {
		c := &out.ToolCalls[i]
		id, name, arguments := set(&c.ID), set(&c.Name), set(&c.Arguments)
		if id || name || arguments {
			c.Raw = nil
		}
	}
	if !changed {
		return m
	}
	return &out
}

// Request returns the task as one prompt.
func (t *Task) Request() Request {
	r := Request{Focus: t.Focus, MaxTokens: t.MaxTokens}
	r.System, r.User = t.Prompt(t.Previous, t.Messages)
	return r
}

// Do has a task done by s. No secret that Redact recognises is sent or comes
// back; a Writer sees to that itself.
func Do(ctx context.Context, s Summarizer, t Task) (string, error) {
	if w, ok := s.(Writer); ok {
		return w.Write(ctx, t)
	}
	t, _ = t.Redact()
	text, err := s.Summarize(ctx, t.Request())
	text, _ = redact.Redact(text)
	return text, err
}

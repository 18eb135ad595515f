package plan

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/redact"
)

// Request is a prompt for a summarizer. It is a function of the messages alone, above all
// not of the clock. Secrets in it are masked (see Do).
type Request struct {
	// System is the system prompt, empty if User contains everything.
	System string
	// User is the user prompt with the messages to summarize.
	User string
	// Focus is the topic to favour. It is already part of User.
	Focus string
	// MaxTokens limits the answer; 0 leaves the limit to the model.
	MaxTokens int
}

// Summarizer writes summaries. Implementations are safe for concurrent use and return the
// model's answer unchanged, even if it is empty.
type Summarizer interface {
	Summarize(ctx context.Context, r Request) (string, error)
}

// Func adapts a function to a Summarizer.
type Func func(ctx context.Context, r Request) (string, error)

// Summarize implements Summarizer.
func (f Func) Summarize(ctx context.Context, r Request) (string, error) { return f(ctx, r) }

// ErrNoModel is wrapped by the error of a Summarizer without a model. Retrying soon does
// not help.
var ErrNoModel = errors.New("no model is configured that could summarize")

// ErrInterrupted is wrapped if a summary was neither produced nor refused. The caller must
// retry the whole run and must not fall back to anything else.
var ErrInterrupted = errors.New("the summary was interrupted")

// FailureTooLarge is the code for a summary that would make the view larger.
const FailureTooLarge = "too_large"

// Failure is the reason why no summary was produced. Code, in snake_case, is stored and
// shown; the text of Err is not.
type Failure struct {
	Code string
	// Wait is the time before a retry can succeed, 0 if unknown.
	Wait time.Duration
	Err  error
}

// Error implements error.
func (f *Failure) Error() string {
	if f.Err == nil {
		return f.Code
	}
	return fmt.Sprintf("%s: %v", f.Code, f.Err)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Task describes a summary to be written, before it is turned into a prompt.
type Task struct {
	// Messages are the messages to summarize, in order, without the previous summary. They
	// are shared and must not be changed.
	Messages []*chat.Message
	// Kinds are the kinds of Messages. A message that begins like a summary and is none is not
	// trusted. nil means that they are unknown, and the delimiters decide.
	Kinds []chat.Kind
	// Seqs are the seqs of Messages in the log of the session, by which a summary can name them;
	// nil or 0 where they are unknown.
	Seqs []chat.Seq
	// Pinned are the pinned messages that stay in the view beside the summary, as far as their
	// content is loaded. PinnedSeqs are their seqs, as of Seqs.
	Pinned     []*chat.Message
	PinnedSeqs []chat.Seq
	// Current is the newest message of the user if it stays in the view in front of some of
	// Messages, which then report the work on it; nil otherwise. CurrentSeq is its seq.
	Current    *chat.Message
	CurrentSeq chat.Seq
	// Previous is the summary to update, empty for none.
	Previous string
	// Originals reads everything that the summary takes the place of from the log; nil if
	// Messages are all of it. See the type Originals.
	Originals func(ctx context.Context, most int64) (messages iter.Seq2[chat.Original, error], older []*chat.Message, err error)
	// Sources reads the messages that a Writer may summarize in place of Messages: the same, but
	// with the originals of stored replacements among them. nil if there are none; no messages if
	// they are too large.
	Sources func(ctx context.Context) (messages []*chat.Message, kinds []chat.Kind, seqs []chat.Seq, err error)
	// Followed reports whether a user message follows the summarized messages, so that the
	// current request is not among them.
	Followed bool
	// Focus is the topic to favour.
	Focus string
	// Budget is the intended length in tokens and MaxTokens the limit; 0 leaves either to
	// the summarizer.
	Budget, MaxTokens int
	// Most limits Budget, 0 for no limit. A Writer with its own sizes uses those up to Most
	// instead of Budget.
	Most int
	// Limit is the most tokens that the summary may add to the view, which is less than it
	// takes out of it; 0 for no limit. Size returns the tokens that a summary adds, with
	// everything that the strategy puts around it; it may be nil.
	Limit chat.Tokens
	Size  func(summary string) chat.Tokens
	// Instruction is an additional instruction of the user, empty for none.
	Instruction string
	// Prompt returns the prompt for a previous summary and all or some of the messages, for
	// summarizers without a prompt of their own. It is pure and safe for concurrent use.
	Prompt func(previous string, messages []*chat.Message) (system, user string)
}

// Writer is a Summarizer that receives the messages rather than a prompt, so that it can
// shorten them, read them in parts, or need no model.
type Writer interface {
	Summarizer
	// Write writes the summary of a task. It is responsible for masking secrets.
	Write(ctx context.Context, t Task) (string, error)
}

// Strict is a Writer whose summaries are rejected if they would make the view larger,
// including the text that the strategy puts around them.
type Strict interface {
	Writer
	Strict()
}

// Extractive is a Summarizer that can write without a model.
type Extractive interface {
	// Extractive returns it as one that does so from now on.
	Extractive() Summarizer
}

// Bounded is a Summarizer that knows the view that its summaries become part of.
type Bounded interface {
	// Bounds returns the target of the view and the most tokens that a summary of a budget,
	// 0 for any, adds to it with everything that the strategy puts around it; 0 if unknown.
	Bounds(budget chat.Tokens) (view, summary chat.Tokens)
}

// Redact returns the task with secrets masked, and the kinds of secrets found. A secret that
// one text shows to be one is masked in all. Messages that contain any are copied.
func (t Task) Redact() (Task, redact.Found) { return t.Mask(&redact.Secrets{}) }

// Mask does the same with secrets that other texts have shown, and adds those of the task.
func (t Task) Mask(secrets *redact.Secrets) (Task, redact.Found) {
	found := redact.Found{}
	apply := func(clean func(string) (string, redact.Found)) {
		mask := func(s string) string {
			s, n := clean(s)
			found.Add(n)
			return s
		}
		t.Previous, t.Focus, t.Instruction = mask(t.Previous), mask(t.Focus), mask(t.Instruction)
		for _, list := range []*[]*chat.Message{&t.Messages, &t.Pinned} {
			messages := make([]*chat.Message, len(*list))
			for i, m := range *list {
				messages[i] = MapTexts(m, mask)
			}
			*list = messages
		}
		if t.Current != nil {
			t.Current = MapTexts(t.Current, mask)
		}
	}
	apply(secrets.Redact)
	if secrets.Len() > 0 {
		apply(secrets.MaskKnown) // also in front of where they were found
	}
	return t, found
}

// MapTexts returns m with a function applied to all texts, or m itself if that changes nothing.
func MapTexts(m *chat.Message, mask func(string) string) *chat.Message {
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

// Request returns the task as a prompt.
func (t *Task) Request() Request {
	r := Request{Focus: t.Focus, MaxTokens: t.MaxTokens}
	r.System, r.User = t.Prompt(t.Previous, t.Messages)
	return r
}

// Do writes the summary of a task with s. Secrets that redact.Redact recognises are masked
// in the prompt and in the answer, unless s is a Writer, which does so itself.
func Do(ctx context.Context, s Summarizer, t Task) (string, error) {
	if w, ok := s.(Writer); ok {
		return w.Write(ctx, t)
	}
	var secrets redact.Secrets
	t, _ = t.Mask(&secrets)
	text, err := s.Summarize(ctx, t.Request())
	text, _ = secrets.Redact(text)
	return text, err
}

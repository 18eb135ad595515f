package summary

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Model answers prompts; *llm.Client is one.
type Model interface {
	// Complete asks. It holds no lock and is safe for concurrent use.
	Complete(ctx context.Context, c llm.Call) (llm.Answer, error)
	// Usable is the model that is asked first, now.
	Usable(ctx context.Context) llm.Profile
	// Identity names everything about the model that shapes its answers, and no key.
	Identity() string
}

// Options say how one run's summaries are made.
type Options struct {
	// Settings are the policy's; the zero value is policy.DefaultSummary.
	Settings Settings
	// Model is asked; without one summaries are extracts.
	Model Model
	// Answers are what was paid for before; without them every answer is.
	Answers AnswerStore
	// Scope names whose summaries these are (tenant and session), so that no answer
	// is given to anybody else.
	Scope string
	// Window is how many tokens the model can take that the summary is for.
	Window int
	// Focus is a topic that somebody asked for, before that of the settings.
	Focus string
	// At is when older outputs were cleared, as a prompt says. The same run has the
	// same time, however often it is delivered.
	At time.Time
	// Manual: somebody waits for it, so that models are asked that rest after a failure.
	Manual bool
	// Last: there is no step behind this one that could make up for a summary that was
	// not had, so that Settings.OnFailure says what does.
	Last bool
}

// Writer is the summarizer of one step of one run. It is used by one goroutine at a
// time.
type Writer struct {
	o      Options
	report *Report
}

// New makes a writer. Settings that are not zero are valid.
func New(o Options) *Writer {
	if o.Settings.MaxParts == 0 { // which no valid ones have
		o.Settings = policy.DefaultSummary()
	}
	return &Writer{o: o}
}

// Report says how the last summary came about; nil where none was asked for.
func (w *Writer) Report() *Report { return w.report }

// Strict implements summarize.Strict.
func (*Writer) Strict() {}

// Summarize implements summarize.Summarizer, for who has nothing but a prompt: it counts
// as one message of the user.
func (w *Writer) Summarize(ctx context.Context, r plan.Request) (string, error) {
	return w.Write(ctx, plan.Task{
		Messages:    []*chat.Message{{Role: chat.RoleUser, Content: chat.TextContent(r.User)}},
		Instruction: r.System, Focus: r.Focus, MaxTokens: r.MaxTokens,
	})
}

// Write implements summarize.Writer. The error is a *summarize.Failure with a code,
// that of ctx, or wraps summarize.ErrInterrupted.
func (w *Writer) Write(ctx context.Context, t plan.Task) (string, error) {
	m, err := w.gather(t)
	if err != nil {
		return "", err
	}
	w.report = m.report
	if w.o.Model == nil {
		return w.extract(m)
	}
	text, err := w.ask(ctx, m)
	if err == nil || ctx.Err() != nil || errors.Is(err, plan.ErrInterrupted) {
		return text, err
	}
	var failure *plan.Failure
	if !errors.As(err, &failure) {
		failure = &plan.Failure{Code: "failed", Err: err}
		err = failure
	}
	m.report.Failure = failure.Code
	if !w.o.Last {
		return "", err
	}
	switch w.o.Settings.OnFailure {
	case OnFailureExtractive:
		if text, none := w.extract(m); none == nil {
			return text, nil
		}
	case OnFailureMarker:
		return w.mark(m), nil
	}
	return "", err
}

// extract returns a summary that no model wrote.
func (w *Writer) extract(m *input) (string, error) {
	text := m.digest.Text(m.limit)
	if text == "" || roughly(text) >= m.report.CoveredTokens {
		return "", tooLarge()
	}
	m.report.WrittenBy, m.report.Tokens = ByExtract, roughly(text)
	return text, nil
}

// tooLarge returns why a summary is none that is not smaller than what it covers.
func tooLarge() error { return &plan.Failure{Code: string(CodeTooLarge)} }

// mark says that something stood here, and no more.
func (w *Writer) mark(m *input) string {
	m.report.WrittenBy = ByMarker
	text := fmt.Sprintf("%d earlier messages stood here. They were taken out of the view to save room, and summarizing them "+
		"did not work; they are stored. Go on from the messages that follow, and ask where something is missing.", len(m.messages))
	m.report.Tokens = roughly(text)
	return text
}

package summary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Model answers prompts; *llm.Client is one.
type Model interface {
	// Complete sends a call. It holds no lock and is safe for concurrent use.
	Complete(ctx context.Context, c llm.Call) (llm.Answer, error)
	// Usable returns the profile of the model that the next call would use.
	Usable(ctx context.Context) llm.Profile
	// Identity returns a string of all settings that shape answers; it holds no key.
	Identity() string
}

// Options configure the Writer of one run.
type Options struct {
	// Settings are the policy's; the zero value is policy.DefaultSummary.
	Settings policy.Summary
	// Model writes summaries; if nil, they are extracts.
	Model Model
	// Operator is a summary that a person wrote, which takes the place of the model's.
	Operator *Operator
	// Answers stores paid answers for reuse; if nil, none are reused.
	Answers AnswerStore
	// Scope identifies tenant and session, so that answers are never shared between
	// sessions.
	Scope string
	// Window is the context window, in tokens, of the model that reads the summary, and Target
	// the size of the view that it becomes part of; 0 if unknown.
	Window, Target int
	// Focus is a topic requested for this run; it overrides that of the settings.
	Focus string
	// At is the time that prompts give for cleared outputs. It is the same for every
	// delivery of a run, so that prompts and their hashes are too.
	At time.Time
	// Manual marks a run that a user waits for: it ignores cooldowns of models.
	Manual bool
	// Log receives failed calls of the model; nil for the model's own.
	Log *slog.Logger
	// Last marks the last step of the pipeline, to which Settings.OnFailure applies.
	Last bool
}

// Writer summarizes for one step of one run. It is not safe for concurrent use.
type Writer struct {
	o      Options
	report *Provenance
}

// New returns a Writer. Settings other than the zero value must be valid.
func New(o Options) *Writer {
	if o.Settings.MaxParts == 0 { // the zero value
		o.Settings = policy.DefaultSummary()
	}
	if o.Answers == nil {
		o.Answers = noStore{}
	}
	return &Writer{o: o}
}

// Provenance describes the last summary; it is nil before the first Write.
func (w *Writer) Provenance() *Provenance { return w.report }

// Strict implements plan.Strict.
func (*Writer) Strict() {}

// Extractive implements plan.Extractive.
func (w *Writer) Extractive() plan.Summarizer {
	w.o.Model, w.o.Operator = nil, nil
	return w
}

// Bounds implements plan.Bounded.
func (w *Writer) Bounds(budget chat.Tokens) (view, summary chat.Tokens) {
	s := w.o.Settings
	view = chat.Tokens(w.o.Target)
	summary = s.Size.Limit(view)
	if budget > 0 {
		if w.o.Model != nil { // an extract stays within the budget, and has references of its own
			budget = chat.Tokens(w.answerTokens(int(s.Size.Model(budget)))) + chat.Tokens(float64(budget)*s.References)
		}
		summary = min(summary, budget+tokensOf(frame.Wrap("", frame.Options{})))
	}
	return view, summary
}

// Summarize implements plan.Summarizer. The prompt counts as one message of the user.
func (w *Writer) Summarize(ctx context.Context, r plan.Request) (string, error) {
	return w.Write(ctx, plan.Task{
		Messages:    []*chat.Message{{Role: chat.RoleUser, Content: chat.TextContent(r.User)}},
		Instruction: r.System, Focus: r.Focus, MaxTokens: r.MaxTokens,
	})
}

// Write implements plan.Writer. The error is a *plan.Failure with a code, that of ctx, or
// wraps plan.ErrInterrupted.
func (w *Writer) Write(ctx context.Context, t plan.Task) (string, error) {
	m, err := w.newInput(ctx, t)
	if err != nil {
		return "", err
	}
	w.report = m.report
	if w.o.Model == nil && w.o.Operator == nil {
		return w.extract(m)
	}
	text, err := w.write(ctx, m)
	if err == nil || ctx.Err() != nil || errors.Is(err, plan.ErrInterrupted) {
		return text, err
	}
	var failure *plan.Failure
	if !errors.As(err, &failure) {
		failure = &plan.Failure{Code: "failed", Err: err}
		err = failure
	}
	m.report.Failure = failure.Code
	if !w.o.Last || w.o.Operator != nil { // nothing takes the place of an operator's text
		return "", err
	}
	switch w.o.Settings.OnFailure {
	case policy.OnFailureExtractive:
		if text, none := w.extract(m); none == nil {
			return text, nil
		}
	case policy.OnFailureMarker:
		return w.marker(m), nil
	}
	return "", err
}

// write returns the summary that the operator wrote or the model writes.
func (w *Writer) write(ctx context.Context, m *input) (string, error) {
	if w.o.Operator != nil {
		return w.accept(m)
	}
	return w.summarize(ctx, m)
}

// extract returns a summary made without a model.
func (w *Writer) extract(m *input) (string, error) {
	text := m.fit(m.limit, m.most, func(budget int) string { return Clean(m.digest.Text(budget)) })
	if text == "" || !m.fits(text) {
		return "", tooLarge()
	}
	m.report.WrittenBy, m.report.Tokens = ByExtract, estimateTokens(text)
	return text, nil
}

// tooLarge returns the failure of a summary that takes up too much.
func tooLarge() error { return &plan.Failure{Code: string(CodeTooLarge)} }

// marker returns a note that messages were removed without a summary.
func (w *Writer) marker(m *input) string {
	m.report.WrittenBy = ByMarker
	text := fmt.Sprintf("%d earlier messages stood here. They were taken out of the view to save room, and summarizing them "+
		"did not work; they are stored. Go on from the messages that follow, and ask where something is missing.", len(m.messages))
	m.report.Tokens = estimateTokens(text)
	return text
}

// assemble returns the summary that is stored: how to read it, the author's text, the last user
// message word for word, the log of actions and the references. These two take no more room than
// the author's text.
func (w *Writer) assemble(m *input, prose, by string) (string, error) {
	links := m.numbered && m.seqs
	if !m.seqs {
		prose = withoutTags(prose)
	}
	most := min(m.references, utf8.RuneCountInString(prose)/4)
	if m.request != "" {
		prose = insertRequest(prose, m.request, m.requestTag())
	}
	prose = readingNote(by, links, m.numbered) + "\n\n" + extract.Escape(text.Trim(prose))
	text := m.fit(most, m.most, func(budget int) string {
		block := m.block(budget)
		m.report.References = estimateTokens(block)
		return text.Trim(prose + "\n\n" + block)
	})
	if !m.fits(text) {
		return "", tooLarge()
	}
	m.report.WrittenBy, m.report.Tokens, m.report.Links = by, estimateTokens(text), len(Links(text))
	return text, nil
}

// noteStart begins the first line of a summary by a model or an operator, which says how to read it.
const noteStart = "(Notes of "

// readingNote returns the first line of a summary.
func readingNote(by string, links, numbered bool) string {
	author := "a model"
	if by == ByOperator {
		author = "an operator"
	}
	switch {
	case links:
		return fmt.Sprintf(wording["note linked"], author)
	case numbered:
		return fmt.Sprintf(wording["note checked"], author, Wishes)
	default:
		return fmt.Sprintf(wording["note unverified"], author)
	}
}

// withoutDerived returns the prose of a summary for the next prompt, without its first line, the
// log of actions and the references, which are generated anew.
func withoutDerived(summary string) string {
	prose := extract.Prose(summary)
	if strings.HasPrefix(prose, noteStart) {
		_, prose, _ = strings.Cut(prose, "\n")
	}
	return text.Trim(prose)
}

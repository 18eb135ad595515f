package agent

import (
	"context"
	"errors"
	"time"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

const (
	// leastSavings is the gain in percent below which a compression was in vain.
	leastSavings = 10.0
	// errorLength is how many characters of an error are remembered.
	errorLength = 220
)

// CompressRequest holds the options of a compression.
type CompressRequest struct {
	// Focus is a topic that the summary should favour.
	Focus string
	// Tokens is what the prompt is known to have; 0: what was reported since the last
	// compression, or else an estimate. Savings are measured against it.
	Tokens chat.Tokens
	// Force asks a model even within the cooldown after a failure.
	Force bool
}

// Compression is the result of Compress.
type Compression struct {
	// Messages is the new view, what was given where nothing was done.
	Messages []chat.Message
	// Compressed: the strategy wanted something.
	Compressed bool
	// NoSummary is the reason for a missing summary, empty if there is one or none was
	// asked for.
	NoSummary string
	// Before is the prompt as CompressRequest.Tokens says, After an estimate of
	// Messages, Savings the gain in percent: negative if it is a loss.
	Before, After chat.Tokens
	Savings       float64
}

// Compress compresses messages, which it does not change. A failing model is no error (see
// NoSummary). If the strategy or ctx fails, Compress returns the error and the messages
// unchanged. No lock is held during calls of a model.
func (e *Engine) Compress(ctx context.Context, messages []chat.Message, r CompressRequest) (Compression, error) {
	e.mu.Lock()
	s, strategy := e.session, e.strategy
	s.lastError, s.auxiliaryError = "", ""
	if r.Force {
		s.until = time.Time{}
	}
	before := r.Tokens
	if before == 0 {
		before = s.prompt
	}
	if f, ok := strategy.(Focuser); ok && r.Focus != "" {
		strategy = f.WithFocus(r.Focus)
	}
	continuer, continues := strategy.(Continuer)
	if continues && s.known {
		strategy = continuer.WithPrevious(s.summary)
	}
	e.mu.Unlock()

	h := history(messages)
	done, err := e.options.Compact(context.WithValue(ctx, sessionKey{}, s), h, strategy)
	if err != nil {
		return Compression{Messages: messages}, err
	}
	// The only step: the guard may have changed something though the strategy did not.
	step := done.Steps[0]
	c := Compression{Messages: messages, Compressed: step.Changed}
	if step.Err != nil {
		c.NoSummary = step.Err.Error()
	}
	estimated := e.options.Estimate(messages)
	if c.Before, c.After = before, estimated; before == 0 {
		c.Before = estimated
	}
	if done.Changed() {
		c.Messages = h.View()
		c.After = e.options.Estimate(c.Messages)
		if c.Before > 0 {
			c.Savings = 100 * float64(c.Before-c.After) / float64(c.Before)
		}
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if c.NoSummary != "" && s.lastError == "" && !e.options.Now().Before(s.until) {
		e.failed(s, backoff.Cooldown, c.NoSummary) // the model answered, but not with a summary
	}
	if !c.Compressed {
		return c, nil
	}
	s.compressions++
	s.prompt, s.completion = 0, 0 // those of a prompt that will not be sent again
	s.savings = c.Savings
	if s.ineffective++; c.Savings >= leastSavings {
		s.ineffective = 0
	}
	if continues && c.NoSummary == "" {
		if summary, ok := continuer.Previous(writtenBy(strategy.Name(), done.Written)); ok {
			s.summary, s.known = summary, true
		}
	}
	return c, nil
}

// guardedBy returns a function that compacts behind a guard.
func guardedBy(g pipeline.Guard) func(context.Context, *strategies.Conversation, plan.Strategy) (strategies.Report, error) {
	return func(ctx context.Context, c *strategies.Conversation, s plan.Strategy) (strategies.Report, error) {
		return c.Compact(ctx, pipeline.Pipeline{Steps: []plan.Strategy{s}, Guard: g})
	}
}

// watched is the summarizer of an engine's strategy: the auxiliary model until it
// fails, then the main one, and neither for a while after a failure.
type watched struct{ e *Engine }

type sessionKey struct{}

// Summarize implements summarize.Summarizer.
func (w watched) Summarize(ctx context.Context, r plan.Request) (string, error) {
	return w.watch(ctx, func(s plan.Summarizer) (string, error) { return s.Summarize(ctx, r) })
}

// Write implements summarize.Writer, for the sake of the models that do.
func (w watched) Write(ctx context.Context, t plan.Task) (string, error) {
	return w.watch(ctx, func(s plan.Summarizer) (string, error) { return plan.Do(ctx, s, t) })
}

func (w watched) watch(ctx context.Context, ask func(plan.Summarizer) (string, error)) (string, error) {
	e := w.e
	e.mu.Lock()
	s, ok := ctx.Value(sessionKey{}).(*engineSession)
	if !ok {
		s = e.session
	}
	rests := e.options.Now().Before(s.until)
	auxiliary := e.options.Auxiliary != nil && !e.fellBack
	e.mu.Unlock()
	if rests {
		return "", errCooldown
	}
	// Interrupted before an answer: the caller tries again.
	over := func(err error) bool { return ctx.Err() != nil || errors.Is(err, plan.ErrInterrupted) }
	var summary string
	err := plan.ErrNoModel
	if auxiliary {
		if summary, err = ask(e.options.Auxiliary); err != nil && !over(err) && !errors.Is(err, plan.ErrNoModel) {
			e.mu.Lock()
			s.auxiliaryError, e.fellBack = text.Cut(err.Error(), errorLength, errorLength-3), true
			e.mu.Unlock()
			auxiliary = false
		}
	}
	if !auxiliary && e.options.Main != nil {
		summary, err = ask(e.options.Main)
	}
	if over(err) {
		return summary, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		s.until, s.lastError = time.Time{}, ""
	case errors.Is(err, plan.ErrNoModel):
		e.failed(s, backoff.CooldownNoProvider, err.Error())
	default:
		e.failed(s, backoff.Cooldown, err.Error())
	}
	return summary, err
}

// failed notes why there is no summary. The lock is held.
func (e *Engine) failed(s *engineSession, rest time.Duration, why string) {
	s.until, s.lastError = e.options.Now().Add(rest), text.Cut(why, errorLength, errorLength-3)
}

// history is messages in memory. Growth is no reason to throw a result away here: it
// counts as a compression that gained nothing.
func history(messages []chat.Message) *strategies.Conversation {
	c := strategies.NewConversation(strategies.Options{AllowGrowth: true})
	c.Append(messages...)
	return c
}

// writtenBy returns the messages that were written for a reason, as a transcript.
func writtenBy(reason string, all []strategies.Written) *plan.Transcript {
	c := history(nil)
	for _, w := range all {
		if w.Reason == reason {
			c.Append(*w.Message)
		}
	}
	return c.Transcript()
}

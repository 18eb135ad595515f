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
	// minSavings is the gain in percent below which a compression was ineffective.
	minSavings = 10.0
	// maxErrorLength limits the characters of stored errors.
	maxErrorLength = 220
)

// CompressRequest holds the options of a compression.
type CompressRequest struct {
	// Focus is a topic that the summary should favour.
	Focus string
	// Tokens is the size of the prompt, against which savings are measured; 0 means the
	// size reported since the last compression, or else an estimate.
	Tokens chat.Tokens
	// Force calls a model even during the cooldown after a failure.
	Force bool
}

// Compression is the result of Compress.
type Compression struct {
	// Messages is the new view, or the input if nothing changed.
	Messages []chat.Message
	// Compressed reports whether the strategy changed the view.
	Compressed bool
	// NoSummary is the reason for a missing summary, empty if there is one or none was
	// requested.
	NoSummary string
	// Before is the size of the prompt (see CompressRequest.Tokens), After an estimate of
	// Messages, Savings the difference in percent, negative if the messages grew.
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
		s.cooldownUntil = time.Time{}
	}
	before := r.Tokens
	if before == 0 {
		before = s.prompt
	}
	if f, ok := strategy.(Focuser); ok && r.Focus != "" {
		strategy = f.WithFocus(r.Focus)
	}
	continuer, continues := strategy.(Continuer)
	if continues && s.hasSummary {
		strategy = continuer.WithPrevious(s.summary)
	}
	e.mu.Unlock()

	h := conversation(messages)
	done, err := e.options.Compact(context.WithValue(ctx, sessionKey{}, s), h, strategy)
	if err != nil {
		return Compression{Messages: messages}, err
	}
	// The report of the only step, since the guard alone may have changed the view.
	step := done.Steps[0]
	c := Compression{Messages: messages, Compressed: step.Changed && done.Changed()}
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
	if c.NoSummary != "" && s.lastError == "" && !e.options.Now().Before(s.cooldownUntil) {
		e.failed(s, backoff.Cooldown, c.NoSummary) // the model answered, but not with a summary
	}
	if !c.Compressed {
		return c, nil
	}
	s.compressions++
	s.prompt, s.completion = 0, 0 // those of a prompt that will not be sent again
	s.savings = c.Savings
	if s.ineffective++; c.Savings >= minSavings {
		s.ineffective = 0
	}
	if continues && c.NoSummary == "" {
		if summary, ok := continuer.Previous(writtenBy(strategy.Name(), done.Written)); ok {
			s.summary, s.hasSummary = summary, true
		}
	}
	return c, nil
}

// compactWith returns a function that runs a strategy as the only step of a pipeline.
func compactWith(p pipeline.Pipeline) func(context.Context, *strategies.Conversation, plan.Strategy) (strategies.Report, error) {
	return func(ctx context.Context, c *strategies.Conversation, s plan.Strategy) (strategies.Report, error) {
		p.Steps = []plan.Strategy{s}
		return c.Compact(ctx, p)
	}
}

// engineModel is the summarizer of an engine's strategy: the auxiliary model until it fails,
// then the main one, and neither during the cooldown after a failure.
type engineModel struct{ e *Engine }

type sessionKey struct{}

// Summarize implements plan.Summarizer.
func (m engineModel) Summarize(ctx context.Context, r plan.Request) (string, error) {
	return m.call(ctx, func(s plan.Summarizer) (string, error) { return s.Summarize(ctx, r) })
}

// Write implements plan.Writer, since a model may do so.
func (m engineModel) Write(ctx context.Context, t plan.Task) (string, error) {
	return m.call(ctx, func(s plan.Summarizer) (string, error) { return plan.Do(ctx, s, t) })
}

func (m engineModel) call(ctx context.Context, ask func(plan.Summarizer) (string, error)) (string, error) {
	e := m.e
	e.mu.Lock()
	s, ok := ctx.Value(sessionKey{}).(*engineSession)
	if !ok {
		s = e.session
	}
	cooling := e.options.Now().Before(s.cooldownUntil)
	auxiliary := e.options.Auxiliary != nil && !e.auxiliaryFailed
	e.mu.Unlock()
	if cooling {
		return "", errCooldown
	}
	// After an interruption the caller retries, so that it is not a failure.
	interrupted := func(err error) bool { return ctx.Err() != nil || errors.Is(err, plan.ErrInterrupted) }
	var summary string
	err := plan.ErrNoModel
	if auxiliary {
		if summary, err = ask(e.options.Auxiliary); err != nil && !interrupted(err) && !errors.Is(err, plan.ErrNoModel) {
			e.mu.Lock()
			s.auxiliaryError, e.auxiliaryFailed = text.Cut(err.Error(), maxErrorLength, maxErrorLength-3), true
			e.mu.Unlock()
			auxiliary = false
		}
	}
	if !auxiliary && e.options.Main != nil {
		summary, err = ask(e.options.Main)
	}
	if interrupted(err) {
		return summary, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		s.cooldownUntil, s.lastError = time.Time{}, ""
	case errors.Is(err, plan.ErrNoModel):
		e.failed(s, backoff.CooldownNoProvider, err.Error())
	default:
		e.failed(s, backoff.Cooldown, err.Error())
	}
	return summary, err
}

// failed starts a cooldown and records its reason. The caller holds the lock.
func (e *Engine) failed(s *engineSession, cooldown time.Duration, reason string) {
	s.cooldownUntil, s.lastError = e.options.Now().Add(cooldown), text.Cut(reason, maxErrorLength, maxErrorLength-3)
}

// conversation returns the messages as a conversation. It accepts results that grow, which
// count as ineffective compressions.
func conversation(messages []chat.Message) *strategies.Conversation {
	c := strategies.NewConversation(strategies.Options{AllowGrowth: true})
	c.Append(messages...)
	return c
}

// writtenBy returns the messages that were written for a reason, as a transcript.
func writtenBy(reason string, all []strategies.Written) *plan.Transcript {
	c := conversation(nil)
	for _, w := range all {
		if w.Reason == reason {
			c.Append(*w.Message)
		}
	}
	return c.Transcript()
}

package strategies

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/summarize"
	"github.com/sessionstore/compactor/strategies/tokens"
)

const (
	// cooldown is how long no model is asked after a failure, noModelCooldown after
	// there was none to ask.
	cooldown        = time.Minute
	noModelCooldown = 10 * time.Minute
	// leastSavings is the gain in percent below which a compression was in vain.
	leastSavings = 10.0
	errorLength  = 220
)

// CompressRequest says how to compress.
type CompressRequest struct {
	// Focus is a topic that the summary should favour.
	Focus string
	// Tokens is what the prompt is known to have; 0: what was reported last, or else
	// an estimate. Savings are measured against it.
	Tokens chat.Tokens
	// Force asks a model though one has just failed: somebody wants it now.
	Force bool
}

// Compression is what Compress came to.
type Compression struct {
	// Messages is the new view, what was given where nothing was done.
	Messages []chat.Message
	// Compressed: the strategy wanted something.
	Compressed bool
	// NoSummary is why a summary was not had, empty if it was or was not wanted.
	NoSummary string
	// Before and After are estimates, Savings the gain in percent: negative if it
	// is a loss.
	Before, After chat.Tokens
	Savings       float64
}

// Compress compresses messages, which it does not change. A model that fails is no
// error (see NoSummary); a strategy that fails, or ctx, is, and the messages are as
// they were. No lock is held while a model is asked.
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

	t := transcriptOf(messages)
	p, err := e.plan(context.WithValue(ctx, sessionKey{}, s), strategy, t)
	if err != nil {
		return Compression{Messages: messages}, err
	}
	c := Compression{Messages: messages, Compressed: p.compressed, NoSummary: p.noSummary}
	estimated := e.options.Estimate(messages)
	if c.Before, c.After = before, estimated; before == 0 {
		c.Before = estimated
	}
	if !p.plan.Empty() {
		c.Messages = apply(t, p.plan)
		c.After = e.options.Estimate(c.Messages)
		if c.Before > 0 {
			c.Savings = 100 * float64(c.Before-c.After) / float64(c.Before)
		}
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	if p.noSummary != "" && s.lastError == "" && !e.options.Now().Before(s.until) {
		e.failed(s, cooldown, p.noSummary) // the model answered, but not with a summary
	}
	if !c.Compressed {
		return c, nil
	}
	s.compressions++
	s.savings = c.Savings
	if s.ineffective++; c.Savings >= leastSavings {
		s.ineffective = 0
	}
	if continues && p.noSummary == "" {
		if summary, ok := continuer.Previous(writtenBy(strategy.Name(), p.plan)); ok {
			s.summary, s.known = summary, true
		}
	}
	return c, nil
}

// guarded plans with the guard.
func (e *Engine) guarded(ctx context.Context, s Strategy, t *Transcript) (planned, error) {
	r, err := Pipeline{Steps: []Strategy{s}, Guard: e.options.Guard}.Run(ctx, t, nil)
	if err != nil {
		return planned{}, err
	}
	out := planned{plan: r.Plan, compressed: r.Steps[0].Changed}
	if err := r.Steps[0].Err; err != nil {
		out.noSummary = err.Error()
	}
	return out, nil
}

// planned is what a strategy wants of messages.
type planned struct {
	plan chat.Plan
	// compressed: the strategy wanted something, rather than the guard alone.
	compressed bool
	noSummary  string
}

// watched is the summarizer of an engine's strategy: the auxiliary model until it
// fails, then the main one, and neither for a while after a failure.
type watched struct{ e *Engine }

type sessionKey struct{}

// Summarize implements summarize.Summarizer.
func (w watched) Summarize(ctx context.Context, r summarize.Request) (string, error) {
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
	var text string
	err := summarize.ErrNoModel
	if auxiliary {
		if text, err = e.options.Auxiliary.Summarize(ctx, r); err != nil && ctx.Err() == nil && !errors.Is(err, summarize.ErrNoModel) {
			e.mu.Lock()
			s.auxiliaryError, e.fellBack = clipped(err.Error()), true
			e.mu.Unlock()
			auxiliary = false
		}
	}
	if !auxiliary && e.options.Main != nil {
		text, err = e.options.Main.Summarize(ctx, r)
	}
	if ctx.Err() != nil {
		return text, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		s.until, s.lastError = time.Time{}, ""
	case errors.Is(err, summarize.ErrNoModel):
		e.failed(s, noModelCooldown, err.Error())
	default:
		e.failed(s, cooldown, err.Error())
	}
	return text, err
}

// failed notes why there is no summary. The lock is held.
func (e *Engine) failed(s *engineSession, rest time.Duration, why string) {
	s.until, s.lastError = e.options.Now().Add(rest), clipped(why)
}

// clipped is a text of bounded length.
func clipped(s string) string {
	if r := []rune(s); len(r) > errorLength {
		return string(r[:errorLength-3]) + "..."
	}
	return s
}

// transcriptOf is a history in memory.
func transcriptOf(messages []chat.Message) *Transcript {
	t := &Transcript{Counter: tokens.Chars4{}, Entries: make([]Entry, len(messages))}
	for i, m := range chat.Describe(messages) {
		m.Tokens = t.Counter.Message(&messages[i])
		t.Entries[i] = Entry{Meta: m, Included: true, Message: &messages[i]}
	}
	return t
}

// apply is the view that a plan makes of a transcript with content.
func apply(t *Transcript, p chat.Plan) []chat.Message {
	gone := map[chat.Seq]bool{}
	take := func(r chat.Ranges) {
		for _, q := range r.Seqs() {
			gone[q] = true
		}
	}
	for _, x := range p.Exclude {
		take(x.Seqs)
	}
	for i := range p.Additions {
		take(p.Additions[i].Covers)
	}
	var view []Entry
	next := chat.Seq(1)
	for i := range t.Entries {
		e := t.Entries[i]
		if next = max(next, e.Seq+1); !gone[e.Seq] {
			view = append(view, e)
		}
	}
	for i := range p.Additions {
		a := &p.Additions[i]
		meta := a.Message.Meta(next + chat.Seq(i))
		meta.Kind, meta.Position = a.Kind, a.Position
		view = append(view, Entry{Meta: meta, Message: &a.Message})
	}
	slices.SortFunc(view, func(a, b Entry) int { return chat.Compare(a.Meta, b.Meta) })
	out := make([]chat.Message, len(view))
	for i := range view {
		out[i] = *view[i].Message
	}
	return out
}

// writtenBy are the messages that a plan writes for a reason, as a transcript.
func writtenBy(reason string, p chat.Plan) *Transcript {
	var written []chat.Message
	for _, a := range p.Additions {
		if a.Reason == reason {
			written = append(written, a.Message)
		}
	}
	return transcriptOf(written)
}

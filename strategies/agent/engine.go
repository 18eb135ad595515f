package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Focuser is implemented by strategies that can favour a topic. WithFocus returns a copy of
// the strategy that does.
type Focuser interface {
	WithFocus(topic string) plan.Strategy
}

// Continuer is implemented by strategies whose summary goes on from the one before.
// They find it in the transcript; who knows better says so.
type Continuer interface {
	// WithPrevious is the same strategy, which goes on from this summary, or from
	// none if it is empty, whatever the transcript holds.
	WithPrevious(summary string) plan.Strategy
	// Previous is the newest summary in the transcript's view.
	Previous(t *plan.Transcript) (summary string, ok bool)
}

// ContentHaver is implemented by strategies that can report in advance whether there is
// anything to compress.
type ContentHaver interface {
	HasContent(t *plan.Transcript) bool
}

// EngineOptions configure an Engine. The zero value makes a handoff without a model, which
// changes nothing.
type EngineOptions struct {
	// Window is the model's, in tokens; 0 is 128,000.
	Window chat.Tokens
	// ThresholdPercent and SummaryTargetRatio are the shares that ThresholdsOf takes,
	// above 0 and at most 1; 0 is 0.5 and 0.2.
	ThresholdPercent, SummaryTargetRatio float64
	// Main summarizes; nil is no model. Auxiliary, if there is one, is asked instead:
	// once it fails Main is, by all sessions, until UpdateModel. An error that wraps
	// summarize.ErrNoModel is no failure, and Main is not asked for it.
	Main, Auxiliary plan.Summarizer
	// New makes the strategy with the summarizer that the engine watches over, which
	// has to be given the context that Plan is. It is called again when the window
	// changes. Nil makes a handoff.
	New func(s plan.Summarizer, sizes builtin.Thresholds) (plan.Strategy, error)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Estimate counts messages roughly; nil is Rough.
	Estimate func([]chat.Message) chat.Tokens
	// Guard holds what the strategy made of the messages to what must be true.
	Guard pipeline.Guard
	// Compact compacts a conversation with the strategy and reports one step. Nil plans
	// behind Guard.
	Compact func(ctx context.Context, c *strategies.Conversation, s plan.Strategy) (strategies.Report, error)
	// DuringCooldown lets ShouldCompress be true while no model is asked: for
	// strategies that do something useful without a summary.
	DuringCooldown bool
}

// Engine supports hosts that compact inside their own loop, one conversation at a time. It
// decides when to compress, limits retries of a failing model, and keeps state per session:
// the number of compressions without effect, the end of a cooldown, and the summary to
// update next. Sessions share no state.
//
// An engine is safe for concurrent use if its options are. Of two concurrent compressions
// of one session both are counted, and the summary of the last to finish is updated next. A
// compression that finishes after its session has ended is ignored.
type Engine struct {
	options  EngineOptions
	mu       sync.Mutex
	strategy plan.Strategy
	sizes    builtin.Thresholds
	// fellBack: the auxiliary model has failed.
	fellBack bool
	session  *engineSession
}

// engineSession is the state of a session.
type engineSession struct {
	id                                 string
	prompt, completion                 chat.Tokens
	compressions, ineffective          int
	savings                            float64
	until                              time.Time
	lastError, auxiliaryError, summary string
	// known: summary is what the next one goes on from, "" for nothing.
	known bool
}

// Usage is the token usage that a provider reported for a call.
type Usage struct{ PromptTokens, CompletionTokens chat.Tokens }

// Status is a snapshot of an engine.
type Status struct {
	Session string
	// What was reported last, 0 where nothing was since the last compression.
	LastPromptTokens     chat.Tokens
	LastCompletionTokens chat.Tokens
	// Threshold is the prompt from which on ShouldCompress says yes.
	Threshold chat.Tokens
	Window    chat.Tokens
	// UsagePercent is the last prompt in percent of the window, 100 at most.
	UsagePercent float64
	Compressions int
	// Ineffective counts compressions in a row that gained less than 10 percent; after
	// two ShouldCompress says no. LastSavings is what the last one gained, in percent.
	Ineffective int
	LastSavings float64
	// Cooldown is how long no model is asked, LastError why there was no summary.
	Cooldown       time.Duration
	LastError      string
	AuxiliaryError string
}

// NewEngine returns an engine without a session. The error lists every option that is out
// of range, or is that of creating the strategy.
func NewEngine(o EngineOptions) (*Engine, error) {
	if o.Window == 0 {
		o.Window = 128_000
	}
	if o.ThresholdPercent == 0 {
		o.ThresholdPercent = 0.5
	}
	if o.SummaryTargetRatio == 0 {
		o.SummaryTargetRatio = 0.2
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Estimate == nil {
		o.Estimate = tokens.Rough
	}
	if o.Compact == nil {
		o.Compact = guardedBy(o.Guard)
	}
	if o.New == nil {
		o.New = engineHandoff
	}
	var faults []error
	for _, share := range []struct {
		name  string
		value float64
	}{{"ThresholdPercent", o.ThresholdPercent}, {"SummaryTargetRatio", o.SummaryTargetRatio}} {
		if !(share.value > 0 && share.value <= 1) {
			faults = append(faults, fmt.Errorf("%s %v: want more than 0 and at most 1", share.name, share.value))
		}
	}
	if o.Window < 0 {
		faults = append(faults, wantWindow(o.Window))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("engine options: %w", errors.Join(faults...))
	}
	e := &Engine{options: o, session: &engineSession{}}
	if err := e.UpdateModel(o.Window); err != nil {
		return nil, err
	}
	return e, nil
}

// engineHandoff returns the strategy of an engine that was given none.
func engineHandoff(s plan.Summarizer, sizes builtin.Thresholds) (plan.Strategy, error) {
	r := builtin.Registry()
	r.Summarizer = s
	return r.New("handoff", plan.Params{
		"tail_token_budget": int64(sizes.Tail), "max_summary_tokens": int64(max(sizes.Summary, 1)),
	})
}

// UpdateModel changes the window, and with it every size that follows from it. The
// auxiliary model is tried again. On an error nothing has changed.
func (e *Engine) UpdateModel(window chat.Tokens) error {
	if window <= 0 {
		return wantWindow(window)
	}
	sizes := builtin.ThresholdsWithin(window, e.options.ThresholdPercent, e.options.SummaryTargetRatio)
	s, err := e.options.New(watched{e}, sizes)
	if err != nil {
		return fmt.Errorf("make the strategy: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.options.Window, e.strategy, e.sizes, e.fellBack = window, s, sizes, false
	return nil
}

func wantWindow(window chat.Tokens) error {
	return fmt.Errorf("window of %d tokens: want at least 1", window)
}

// OnSessionStart begins a session. What was known of another one is forgotten;
// starting the same again changes nothing. A session without an id is always another
// one.
func (e *Engine) OnSessionStart(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session.id != id || id == "" {
		e.session = &engineSession{id: id}
	}
}

// OnSessionEnd deletes the state of the session.
func (e *Engine) OnSessionEnd() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session = &engineSession{}
}

// OnSessionReset begins the session anew: nothing goes on from what was summarized
// before, even where messages still hold it.
func (e *Engine) OnSessionReset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session = &engineSession{id: e.session.id, known: true}
}

// UpdateFromResponse records the usage that a provider reported.
func (e *Engine) UpdateFromResponse(u Usage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session.prompt, e.session.completion = u.PromptTokens, u.CompletionTokens
}

// ShouldCompress reports whether a prompt of that many tokens is to be compressed;
// 0 stands for the one reported last, if there was one since the last compression. It
// is not where two compressions in a row have gained less than 10 percent, nor while no
// model may be asked (but see EngineOptions.DuringCooldown).
func (e *Engine) ShouldCompress(tokens chat.Tokens) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if tokens == 0 {
		tokens = e.session.prompt
	}
	if tokens < e.sizes.Compress || e.session.ineffective >= 2 {
		return false
	}
	return e.options.DuringCooldown || !e.options.Now().Before(e.session.until)
}

// Preflight estimates a prompt before it is sent and reports whether to compress it first.
func (e *Engine) Preflight(messages []chat.Message) (tokens chat.Tokens, compress bool) {
	tokens = e.options.Estimate(messages)
	return tokens, tokens > 0 && e.ShouldCompress(tokens)
}

// HasContent reports whether there is anything to compress, or for a strategy that is no
// ContentHaver, whether there are messages.
func (e *Engine) HasContent(messages []chat.Message) bool {
	e.mu.Lock()
	s := e.strategy
	e.mu.Unlock()
	if h, ok := s.(ContentHaver); ok {
		return h.HasContent(history(messages).Transcript())
	}
	return len(messages) > 0
}

// Status returns a snapshot of the engine.
func (e *Engine) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.session
	return Status{
		Session: s.id, LastPromptTokens: s.prompt, LastCompletionTokens: s.completion,
		Threshold: e.sizes.Compress, Window: e.options.Window,
		UsagePercent: min(100, 100*float64(s.prompt)/float64(e.options.Window)),
		Compressions: s.compressions, Ineffective: s.ineffective, LastSavings: s.savings,
		Cooldown: max(0, s.until.Sub(e.options.Now())), LastError: s.lastError, AuxiliaryError: s.auxiliaryError,
	}
}

// errCooldown is the error of a summarizer that is given a rest.
var errCooldown = errors.New("no model is asked so soon after a failure")

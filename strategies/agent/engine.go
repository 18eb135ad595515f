package agent

import (
	"cmp"
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

// Continuer is implemented by strategies that update their previous summary, by default the
// one in the transcript.
type Continuer interface {
	// WithPrevious returns a copy of the strategy that updates this summary, or writes a
	// first one if it is empty.
	WithPrevious(summary string) plan.Strategy
	// Previous returns the newest summary in the view.
	Previous(t *plan.Transcript) (summary string, ok bool)
}

// ContentHaver is implemented by strategies that can report in advance whether there is
// anything to compress.
type ContentHaver interface {
	HasContent(t *plan.Transcript) bool
}

// EngineOptions configure an Engine. The zero value uses a handoff without a model, which
// changes nothing.
type EngineOptions struct {
	// Window is the context window of the model in tokens; 0 means 128,000.
	Window chat.Tokens
	// ThresholdPercent and SummaryTargetRatio are arguments of builtin.ThresholdsWithin,
	// above 0 and at most 1; 0 means 0.5 and 0.2.
	ThresholdPercent, SummaryTargetRatio float64
	// Main writes summaries; nil means no model. A non-nil Auxiliary is used instead until
	// it fails; then all sessions use Main until UpdateModel. Errors that wrap
	// plan.ErrNoModel are not failures.
	Main, Auxiliary plan.Summarizer
	// New creates the strategy, which must pass the context of Plan to the summarizer. It is
	// called again when the window changes. Nil creates a handoff.
	New func(s plan.Summarizer, sizes builtin.Thresholds) (plan.Strategy, error)
	// Now returns the time; nil means time.Now.
	Now func() time.Time
	// Estimate counts messages roughly; nil means tokens.Rough.
	Estimate func([]chat.Message) chat.Tokens
	// Guard enforces the invariants of a view.
	Guard pipeline.Guard
	// FreeReasoning is that of strategies.Options.
	FreeReasoning bool
	// Compact compacts a conversation with the strategy and reports one step. Nil runs the
	// strategy and Guard.
	Compact func(ctx context.Context, c *strategies.Conversation, s plan.Strategy) (strategies.Report, error)
	// DuringCooldown lets ShouldCompress return true during a cooldown, for strategies that
	// have an effect without a summary.
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
	// auxiliaryFailed reports whether Main has replaced Auxiliary.
	auxiliaryFailed bool
	session         *engineSession
}

// engineSession is the state of a session.
type engineSession struct {
	id                                 string
	prompt, completion                 chat.Tokens
	compressions, ineffective          int
	savings                            float64
	cooldownUntil                      time.Time
	lastError, auxiliaryError, summary string
	// hasSummary reports whether summary is the one to update next, "" for none; otherwise
	// it is the one in the messages.
	hasSummary bool
}

// Usage is the token usage that a provider reported for a call.
type Usage struct{ PromptTokens, CompletionTokens chat.Tokens }

// Status is a snapshot of an engine.
type Status struct {
	Session string
	// LastPromptTokens and LastCompletionTokens are the usage reported last, 0 if none was
	// reported since the last compression.
	LastPromptTokens     chat.Tokens
	LastCompletionTokens chat.Tokens
	// Threshold is the prompt size from which ShouldCompress returns true.
	Threshold chat.Tokens
	Window    chat.Tokens
	// UsagePercent is the last prompt in percent of the window, at most 100.
	UsagePercent float64
	Compressions int
	// Ineffective counts consecutive compressions that saved less than 10 percent; after
	// two ShouldCompress returns false. LastSavings is the last result in percent.
	Ineffective int
	LastSavings float64
	// Cooldown is the time until a model is called again. LastError is the reason for the
	// last missing summary, AuxiliaryError the failure of Auxiliary.
	Cooldown       time.Duration
	LastError      string
	AuxiliaryError string
}

// NewEngine returns an engine without a session. The error lists every option that is out
// of range, or is that of creating the strategy.
func NewEngine(o EngineOptions) (*Engine, error) {
	o.Window = cmp.Or(o.Window, 128_000)
	o.ThresholdPercent = cmp.Or(o.ThresholdPercent, 0.5)
	o.SummaryTargetRatio = cmp.Or(o.SummaryTargetRatio, 0.2)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Estimate == nil {
		o.Estimate = tokens.Rough
	}
	if o.Compact == nil {
		o.Compact = compactWith(pipeline.Pipeline{Guard: o.Guard, FreeReasoning: o.FreeReasoning})
	}
	if o.New == nil {
		o.New = engineHandoff
	}
	share := func(name string, f float64) error {
		if f > 0 && f <= 1 {
			return nil
		}
		return fmt.Errorf("%s %v: want more than 0 and at most 1", name, f)
	}
	if err := errors.Join(
		share("ThresholdPercent", o.ThresholdPercent), share("SummaryTargetRatio", o.SummaryTargetRatio), checkWindow(o.Window),
	); err != nil {
		return nil, fmt.Errorf("engine options: %w", err)
	}
	e := &Engine{options: o, session: &engineSession{}}
	if err := e.UpdateModel(o.Window); err != nil {
		return nil, err
	}
	return e, nil
}

// engineHandoff returns the default strategy of an engine.
func engineHandoff(s plan.Summarizer, sizes builtin.Thresholds) (plan.Strategy, error) {
	r := builtin.Registry()
	r.Summarizer = s
	return r.New("handoff", plan.Params{
		"tail_token_budget": int64(sizes.Tail), "max_summary_tokens": int64(max(sizes.Summary, 1)),
	})
}

// UpdateModel changes the window and the limits derived from it, and uses the auxiliary
// model again. On an error nothing has changed.
func (e *Engine) UpdateModel(window chat.Tokens) error {
	if err := checkWindow(window); err != nil {
		return err
	}
	sizes := builtin.ThresholdsWithin(window, e.options.ThresholdPercent, e.options.SummaryTargetRatio)
	s, err := e.options.New(engineModel{e}, sizes)
	if err != nil {
		return fmt.Errorf("create strategy: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.options.Window, e.strategy, e.sizes, e.auxiliaryFailed = window, s, sizes, false
	return nil
}

func checkWindow(window chat.Tokens) error {
	if window > 0 {
		return nil
	}
	return fmt.Errorf("window of %d tokens: want at least 1", window)
}

// OnSessionStart begins a session and deletes the state of another one. Starting the same
// session again changes nothing; a session without an id is always a new one.
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

// OnSessionReset deletes the state of the session. The next summary does not update an
// earlier one, even if messages contain it.
func (e *Engine) OnSessionReset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session = &engineSession{id: e.session.id, hasSummary: true}
}

// UpdateFromResponse records the usage that a provider reported.
func (e *Engine) UpdateFromResponse(u Usage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session.prompt, e.session.completion = u.PromptTokens, u.CompletionTokens
}

// ShouldCompress reports whether to compress a prompt of that many tokens; 0 means the
// prompt reported last, if any was since the last compression. It returns false after two
// consecutive compressions that saved less than 10 percent, and during a cooldown (but see
// EngineOptions.DuringCooldown).
func (e *Engine) ShouldCompress(tokens chat.Tokens) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if tokens == 0 {
		tokens = e.session.prompt
	}
	if tokens < e.sizes.Compress || e.session.ineffective >= 2 {
		return false
	}
	return e.options.DuringCooldown || !e.options.Now().Before(e.session.cooldownUntil)
}

// Preflight estimates a prompt before it is sent and reports whether to compress it first.
func (e *Engine) Preflight(messages []chat.Message) (tokens chat.Tokens, compress bool) {
	tokens = e.options.Estimate(messages)
	return tokens, tokens > 0 && e.ShouldCompress(tokens)
}

// HasContent reports whether there is anything to compress, or, unless the strategy is a
// ContentHaver, whether there are messages.
func (e *Engine) HasContent(messages []chat.Message) bool {
	e.mu.Lock()
	s := e.strategy
	e.mu.Unlock()
	if h, ok := s.(ContentHaver); ok {
		return h.HasContent(conversation(messages).Transcript())
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
		Cooldown: max(0, s.cooldownUntil.Sub(e.options.Now())), LastError: s.lastError, AuxiliaryError: s.auxiliaryError,
	}
}

// errCooldown is returned during the cooldown after a failure.
var errCooldown = errors.New("no model is called during the cooldown after a failure")

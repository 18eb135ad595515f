package llm

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Complete calls the models of the chain in order until one answers. The error is an
// *Error, with the usage so far. The call ends when ctx ends or the budget is used up.
func (c *Client) Complete(ctx context.Context, call Call) (Answer, error) {
	began := time.Now()
	s := &callState{Client: c, call: call, budget: c.cfg.Budget, retryTimes: map[*model]time.Time{}}
	ctx, cancel := context.WithTimeoutCause(ctx, s.budget.Time, errOutOfTime)
	defer cancel()
	for _, m := range c.models {
		v, ok := s.tryModel(ctx, m)
		if ok {
			a := Answer{
				Text: v.text, Model: m.Name, FinishReason: v.finish, Refusal: v.refusal,
				Usage: s.usage, CostMicros: s.cost, Attempts: s.attempts, Duration: time.Since(began),
			}
			if s.last != nil {
				a.Status, a.Server = s.last.status, s.last.server
			}
			return a, nil
		}
		if ctx.Err() != nil || s.worst != nil && rules[s.worst.class].then == endCall {
			break
		}
	}
	return Answer{}, s.err(ctx)
}

// failure is the failure of one model. asked is false if no request was made.
type failure struct {
	classification

	model *model
	asked bool
}

// callState is the state of one call of Complete.
type callState struct {
	*Client

	call   Call
	budget Budget

	attempts int
	usage    Usage
	cost     int64
	// spentTokens and spentCost are charged to the budget: usage and cost, and for
	// attempts without reported usage their maximum.
	spentTokens int
	spentCost   int64

	last       *failure             // failure of the last attempt
	worst      *failure             // failure to report, by rank
	retryTimes map[*model]time.Time // when a retry of a model makes sense
	tooSmall   int                  // largest window that was too small
	stopped    string               // limit of the budget that ended the call
}

// tryModel calls one model, with retries by the rules of its failures. It records the
// failures in the state. The requests have one span.
func (s *callState) tryModel(ctx context.Context, m *model) (classification, bool) {
	if m.Window <= s.tooSmall {
		return classification{}, false // no larger than a window that was too small
	}
	limit, ok := s.outputLimit(m)
	if !ok {
		s.fail(failure{model: m, classification: classification{class: ContextTooLong}})
		return classification{}, false
	}
	var v classification
	span := modelSpan{requests: -s.attempts, before: s.usage}
	defer func() { span.end(v, span.requests+s.attempts, s.usage) }()
	tries := map[Class]int{}
	grown := false
	for {
		done, ok := s.admit(ctx, m, limit)
		if !ok {
			if s.last != nil && s.last.model == m {
				s.giveUp(ctx, m, s.last.classification)
			}
			return classification{}, false
		}
		span.begin(ctx, m, limit)
		v = s.attempt(ctx, m, limit)
		done(outcome(ctx, v))
		s.charge(m, limit, v)
		if v.class == "" {
			return v, true
		}
		s.last = &failure{model: m, asked: true, classification: v}
		s.fail(*s.last)
		tries[v.class]++
		if more := s.raisedLimit(m, limit); v.exhausted && !grown && more > limit {
			grown, limit = true, more
			s.logFailure(ctx, m, v, 0)
			continue
		}
		pause := v.retryAfter + s.cfg.Retry.delays().Delay(tries[v.class]-1)
		again := !v.exhausted && tries[v.class] < rules[v.class].tries && s.worthWaiting(ctx, v, pause)
		if !again {
			pause = 0
		}
		s.logFailure(ctx, m, v, pause)
		if !again || backoff.Wait(ctx, pause) != nil {
			s.giveUp(ctx, m, v)
			return classification{}, false
		}
	}
}

// outputLimit returns the output limit of an attempt in tokens, and false if the model's
// window is too small for it. A call without MaxTokens gets the tokens that are left in the window.
func (s *callState) outputLimit(m *model) (int, bool) {
	limit := m.MaxOutput // 0 leaves it to the server
	if s.call.MaxTokens > 0 {
		limit = m.bounded(s.call.MaxTokens + m.ReasoningTokens)
	}
	if s.call.InputTokens <= 0 {
		return limit, true
	}
	left := m.Window - s.call.input()
	if s.call.MaxTokens <= 0 {
		return min(limit, left), left > 0
	}
	return limit, limit <= left
}

// raisedLimit returns a larger limit, within the window, for a call that used up its limit
// before any text. It returns at most limit if there is none.
func (s *callState) raisedLimit(m *model, limit int) int {
	if limit == 0 {
		return 0
	}
	more := m.bounded(max(2*limit, limit+m.ReasoningTokens))
	if s.call.InputTokens > 0 {
		more = min(more, m.Window-s.call.InputTokens)
	}
	return more
}

// admit reports whether an attempt is allowed by budget, cooldown, limits per minute, for
// which it waits, and breaker. The caller passes the result of the attempt to done.
func (s *callState) admit(ctx context.Context, m *model, limit int) (done func(Class), ok bool) {
	if ctx.Err() != nil {
		s.fail(failure{model: m, classification: classification{class: contextClass(ctx)}})
		return nil, false
	}
	if !s.affordable(m, limit) {
		s.fail(failure{model: m, classification: classification{class: OverBudget}})
		return nil, false
	}
	if at := s.availableAt(ctx, m, s.call.IgnoreCooldown); at.After(time.Now()) {
		s.skip(m, at)
		return nil, false
	}
	if !s.reserve(ctx, m, limit) {
		return nil, false
	}
	done, ok = m.breaker.allow()
	if !ok { // opened in the meantime, or another call is the trial
		s.skip(m, time.Now().Add(time.Second))
	}
	return done, ok
}

// affordable reports whether the budget allows another attempt.
func (s *callState) affordable(m *model, limit int) bool {
	most := Usage{Input: s.call.input(), Output: limit}
	tokens := s.budget.Tokens
	if tokens == 0 {
		tokens = 4 * (most.Input + most.Output)
	}
	switch {
	case s.attempts >= s.budget.Attempts:
		s.stopped = "attempts"
	case s.spentTokens+most.Input+most.Output > tokens:
		s.stopped = "tokens"
	case s.budget.Cost > 0 && float64(s.spentCost+m.Price.micros(most)) > s.budget.Cost*1e6:
		s.stopped = "cost"
	default:
		return true
	}
	return false
}

// reserve reserves an attempt within the model's limits per minute, and waits if
// necessary.
func (s *callState) reserve(ctx context.Context, m *model, limit int) bool {
	if m.RequestsPerMinute <= 0 && m.TokensPerMinute <= 0 {
		return true
	}
	most := min(s.cfg.Retry.Wait, timeLeft(ctx))
	wait, err := s.limiter.Reserve(ctx, Take{
		Key: m.limitKey, RequestsPerMinute: m.RequestsPerMinute, TokensPerMinute: m.TokensPerMinute,
		Tokens: s.call.input() + limit, MaxWait: most,
	})
	switch {
	case err != nil && ctx.Err() == nil: // servers enforce the limits; ours only avoid refusals
		s.log.WarnContext(ctx, "limits per minute unavailable, calling the model", "model", m.id)
		wait = 0
	case err == nil && wait > most:
		s.fail(failure{model: m, classification: classification{class: RateLimited}})
		s.setRetryTime(m, time.Now().Add(wait))
		return false
	}
	if backoff.Wait(ctx, wait) != nil {
		s.fail(failure{model: m, classification: classification{class: contextClass(ctx)}})
		return false
	}
	return true
}

// attempt makes one request.
func (s *callState) attempt(ctx context.Context, m *model, limit int) classification {
	s.attempts++
	key := m.keys.key()
	attemptCtx, cancel := context.WithTimeout(ctx, s.cfg.Deadline.For(s.call.input()))
	defer cancel()
	r := s.send(attemptCtx, m, key, s.call, limit)
	v := classify(r, m.Name)
	if v.class != "" && ctx.Err() != nil {
		v.class = contextClass(ctx)
	}
	if v.usage.Estimated > 0 {
		count := tokens.ForModel(m.Name).Text
		v.usage.Input = int(count(s.call.System) + count(s.call.User))
		for _, c := range r.answer.Choices {
			v.usage.Output = int(count(c.Message.Content) + count(c.Message.Refusal))
		}
		if v.exhausted {
			v.usage.Output = max(v.usage.Output, limit)
		}
	}
	v.server = v.server.shown(key, s.call.System, s.call.User)
	v.text, v.refusal = withoutKey(v.text, key), withoutKey(v.refusal, key) // a server may repeat it
	v.model = withoutKey(r.answer.Model, key)
	return v
}

// worthWaiting reports whether to retry a model after a pause: not if Retry-After exceeds
// the configured wait, or the pause the end of the call.
func (s *callState) worthWaiting(ctx context.Context, v classification, pause time.Duration) bool {
	return v.retryAfter <= s.cfg.Retry.Wait && pause < timeLeft(ctx)
}

func (s *callState) logFailure(ctx context.Context, m *model, v classification, pause time.Duration) {
	level := slog.LevelWarn
	if rules[v.class].cooldown == noProvider {
		level = slog.LevelError // an operator has to act
	}
	attrs := []slog.Attr{
		slog.String("model", m.id), slog.String("code", string(v.class)),
		slog.Int("attempt", s.attempts), slog.Int64("wait_ms", pause.Milliseconds()),
	}
	if v.status != 0 {
		attrs = append(attrs, slog.Int("status", v.status))
	}
	if v.requestID != "" {
		attrs = append(attrs, slog.String("request_id", v.requestID))
	}
	if text := v.server.String(); text != "" {
		name := "server"
		if v.status == 0 {
			name = "error"
		}
		attrs = append(attrs, slog.String(name, text))
	}
	cmp.Or(s.call.Log, s.log).LogAttrs(ctx, level, "model call failed", attrs...)
}

// charge adds the usage and cost of an attempt.
func (s *callState) charge(m *model, limit int, v classification) {
	took := v.usage
	s.usage = s.usage.plus(took)
	s.cost += m.Price.micros(took)
	if took.Estimated > 0 {
		took = Usage{Input: max(took.Input, s.call.input()), Output: limit}
	}
	s.spentTokens += took.Input + took.Output
	s.spentCost += m.Price.micros(took)
}

// giveUp ends the attempts with a model in this call, and starts the cooldown of the
// failure.
func (s *callState) giveUp(ctx context.Context, m *model, v classification) {
	if ctx.Err() != nil {
		return // the attempt did not have its full time
	}
	until := s.coolDown(ctx, m, v)
	if rules[v.class].cooldown != noCooldown {
		s.setRetryTime(m, until)
	}
}

// skip records that a model is unavailable until a time.
func (s *callState) skip(m *model, at time.Time) {
	s.fail(failure{model: m, classification: classification{class: Unavailable}})
	s.setRetryTime(m, at)
}

// fail records a failure. Of several, the one with the highest rank is reported; of equal
// ranks, failures of requests before those without one, then the last.
func (s *callState) fail(f failure) {
	if rules[f.class].then == largerModel {
		s.tooSmall = max(s.tooSmall, f.model.Window)
	}
	if s.worst == nil || f.rank() > s.worst.rank() || f.rank() == s.worst.rank() && (f.asked || !s.worst.asked) {
		s.worst = &f
	}
}

// rank returns the rank of the rule, except that an unavailable model ranks above
// permanent failures, as it may answer later.
func (f failure) rank() int {
	if f.class == Unavailable && !f.asked {
		return rules[MalformedAnswer].rank
	}
	return rules[f.class].rank
}

// setRetryTime records the time from which a retry of a model makes sense.
func (s *callState) setRetryTime(m *model, at time.Time) {
	if at.After(s.retryTimes[m]) {
		s.retryTimes[m] = at
	}
}

func (s *callState) err(ctx context.Context) *Error {
	f := s.worst
	switch {
	case f == nil: // the time was over before the first request
		f = &failure{classification: classification{class: contextClass(ctx)}}
	case ctx.Err() != nil && contextClass(ctx) == Canceled && f.class != Canceled: // canceled while waiting
		f = &failure{model: f.model, classification: classification{class: Canceled}}
	}
	e := &Error{
		Class: f.class, Status: f.status, Server: f.server, Attempts: s.attempts,
		Usage: s.usage, CostMicros: s.cost, Stopped: s.stopped,
	}
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), errOutOfTime) {
			e.Stopped = "time"
		} else {
			e.cause = ctx.Err()
		}
	}
	if f.model != nil {
		e.Model = f.model.Name
	}
	if len(s.retryTimes) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Values(s.retryTimes)), time.Time.Compare)
		// Rounded up, so that a caller that waits whole milliseconds is not early.
		e.RetryAfter = max(0, time.Until(first)+time.Millisecond-1).Truncate(time.Millisecond)
	}
	return e
}

// outcome returns the class of an attempt for the breaker: Canceled, which says nothing
// about the server, if the call ended first.
func outcome(ctx context.Context, v classification) Class {
	if v.class != "" && ctx.Err() != nil {
		return Canceled
	}
	return v.class
}

// errOutOfTime distinguishes the end of the budget's time from that of the caller's ctx.
var errOutOfTime = errors.New("out of time")

// contextClass returns the class of a call that ended with its context.
func contextClass(ctx context.Context) Class {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Canceled
	}
	return Timeout
}

// timeLeft returns the time until the deadline of a call's context.
func timeLeft(ctx context.Context) time.Duration {
	end, _ := ctx.Deadline() // set by Complete
	return time.Until(end)
}

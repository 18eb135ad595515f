package llm

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// Complete asks the models of the chain until one answers. The error is an *Error.
// A ctx that ends, ends the call, and so does the budget; what was billed until
// then is in the error.
func (c *Client) Complete(ctx context.Context, call Call) (Answer, error) {
	began := time.Now()
	s := &callState{Client: c, call: call, budget: c.cfg.Budget.within(call.Budget), retryTimes: map[*model]time.Time{}}
	ctx, cancel := context.WithTimeoutCause(ctx, s.budget.Time, errOutOfTime)
	defer cancel()
	for _, m := range c.models {
		v, ok := s.tryModel(ctx, m)
		if ok {
			return Answer{
				Text: v.text, Model: m.Name, FinishReason: v.finish, Refusal: v.refusal,
				Usage: s.usage, CostMicros: s.cost, Attempts: s.attempts, Duration: time.Since(began),
			}, nil
		}
		if ctx.Err() != nil || s.worst != nil && rules()[s.worst.class].then == endCall {
			break
		}
	}
	return Answer{}, s.err(ctx)
}

// failure is how one model failed. asked is false for what was foreseen without a
// request.
type failure struct {
	classification

	model *model
	asked bool
}

// callState is what one call of Complete has done so far, and what it has left.
type callState struct {
	*Client

	call   Call
	budget Budget

	attempts int
	usage    Usage
	cost     int64
	// spentTokens and spentCost are what the budget is charged: usage and cost, and
	// for attempts without a report what they were allowed.
	spentTokens int
	spentCost   int64

	last       *failure             // of the last attempt
	worst      *failure             // the one to report, by rank
	retryTimes map[*model]time.Time // when models may be asked again, where that helps
	tooSmall   int                  // the largest window that was not enough
	stopped    string               // the limit that ended it
}

// ask asks one model, as often as its failures are worth. Whatever ends that is
// noted in the state.
func (s *callState) tryModel(ctx context.Context, m *model) (classification, bool) {
	if m.Window <= s.tooSmall {
		return classification{}, false // no larger than one that was too small
	}
	limit, ok := s.outputLimit(m)
	if !ok {
		s.fail(failure{model: m, classification: classification{class: ContextTooLong}})
		return classification{}, false
	}
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
		v := s.attempt(ctx, m, limit)
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
		again := !v.exhausted && tries[v.class] < rules()[v.class].tries && s.worthWaiting(ctx, v, pause)
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

// outputLimit returns how many tokens an attempt may write. It reports false where the
// model's window holds less beside the input; a call that bounds its answer by nothing
// takes what is left.
func (s *callState) outputLimit(m *model) (int, bool) {
	limit := m.outputLimit(s.call.MaxTokens)
	if s.call.InputTokens <= 0 {
		return limit, true
	}
	left := m.Window - s.call.input()
	if s.call.MaxTokens <= 0 {
		return min(limit, left), left > 0
	}
	return limit, limit <= left
}

// raisedLimit returns a larger limit that the window holds; not more than limit if there
// is none.
func (s *callState) raisedLimit(m *model, limit int) int {
	more := m.raisedLimit(limit)
	if s.call.InputTokens > 0 {
		more = min(more, m.Window-s.call.InputTokens)
	}
	return more
}

// admit checks everything that can keep a model from being asked: budget, cooldown,
// limits per minute, for which it waits, and the breaker.
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
	if !ok { // held back meanwhile, or another call is its trial
		s.skip(m, time.Now().Add(time.Second))
	}
	return done, ok
}

// affordable reports whether the budget holds another attempt.
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

// reserve takes the attempt from the model's limits per minute, and waits for them.
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
	case err != nil && ctx.Err() == nil: // limits are the servers' to enforce; ours only save refusals
		s.log.WarnContext(ctx, "limits per minute not known, the model is asked", "model", m.id)
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
	v := classify(s.send(attemptCtx, m, key, m.body(s.call.System, s.call.User, limit)))
	if v.class != "" && ctx.Err() != nil {
		v.class = contextClass(ctx)
	}
	const shortest = 8 // of keys; a shorter text may be part of any word
	// A server that repeats the key is no reason to store it.
	if key := key.Reveal(); len(key) >= shortest {
		v.text = strings.ReplaceAll(v.text, key, "[REDACTED]")
		v.refusal = strings.ReplaceAll(v.refusal, key, "[REDACTED]")
	}
	return v
}

// worthWaiting reports whether a model is asked again after a pause: a server that
// names its time is waited for only so long, and never beyond the end of the call.
func (s *callState) worthWaiting(ctx context.Context, v classification, pause time.Duration) bool {
	return v.retryAfter <= s.cfg.Retry.Wait && pause < timeLeft(ctx)
}

func (s *callState) logFailure(ctx context.Context, m *model, v classification, pause time.Duration) {
	level := slog.LevelWarn
	if rules()[v.class].cooldown == noProvider {
		level = slog.LevelError // an operator has to act
	}
	attrs := []slog.Attr{slog.String("model", m.id), slog.String("code", string(v.class)), slog.Int("attempt", s.attempts), slog.Int64("wait_ms", pause.Milliseconds())}
	if v.status != 0 {
		attrs = append(attrs, slog.Int("status", v.status))
	}
	if v.requestID != "" {
		attrs = append(attrs, slog.String("request_id", v.requestID))
	}
	s.log.LogAttrs(ctx, level, "model call failed", attrs...)
}

// charge counts what an attempt took.
func (s *callState) charge(m *model, limit int, v classification) {
	took := v.usage
	s.usage = s.usage.plus(took)
	s.cost += m.Price.micros(took)
	if took.Unreported > 0 {
		took = Usage{Input: s.call.input(), Output: limit}
	}
	s.spentTokens += took.Input + took.Output
	s.spentCost += m.Price.micros(took)
}

// leave gives a model up for this call, and for others where the failure starts a
// cooldown.
func (s *callState) giveUp(ctx context.Context, m *model, v classification) {
	if ctx.Err() != nil {
		return // it did not have the time that it should have
	}
	until := s.coolDown(ctx, m, v)
	if rules()[v.class].cooldown != noCooldown {
		s.setRetryTime(m, until)
	}
}

// skip notes a model that may not be asked before a time.
func (s *callState) skip(m *model, at time.Time) {
	s.fail(failure{model: m, classification: classification{class: Unavailable}})
	s.setRetryTime(m, at)
}

// fail notes a failure. Of several, the highest rank is reported; of one rank, that
// of a server before one that was foreseen, and else the last.
func (s *callState) fail(f failure) {
	if rules()[f.class].then == largerModel {
		s.tooSmall = max(s.tooSmall, f.model.Window)
	}
	if s.worst == nil || f.rank() > s.worst.rank() || f.rank() == s.worst.rank() && (f.asked || !s.worst.asked) {
		s.worst = &f
	}
}

// rank returns the rule's, but a model that may not be asked now ranks above those that
// refused for good: it may answer later.
func (f failure) rank() int {
	if f.class == Unavailable && !f.asked {
		return rules()[MalformedAnswer].rank
	}
	return rules()[f.class].rank
}

// ready notes that asking a model again makes sense then, not before.
func (s *callState) setRetryTime(m *model, at time.Time) {
	if at.After(s.retryTimes[m]) {
		s.retryTimes[m] = at
	}
}

func (s *callState) err(ctx context.Context) *Error {
	f := s.worst
	switch {
	case f == nil: // the time was over before anything was asked
		f = &failure{classification: classification{class: contextClass(ctx)}}
	case ctx.Err() != nil && contextClass(ctx) == Canceled && f.class != Canceled: // while it was waiting
		f = &failure{model: f.model, classification: classification{class: Canceled}}
	}
	e := &Error{
		Class: f.class, Status: f.status, Attempts: s.attempts,
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

// outcome returns what an attempt tells about a server: nothing where the call was over
// before the server's time was.
func outcome(ctx context.Context, v classification) Class {
	if v.class != "" && ctx.Err() != nil {
		return Canceled
	}
	return v.class
}

// errOutOfTime tells the end of the budget's time from that of the caller's.
var errOutOfTime = errors.New("out of time")

// ended returns the class of a call that its context ended.
func contextClass(ctx context.Context) Class {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Canceled
	}
	return Timeout
}

// untilEnd returns how long a context has left.
func timeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Duration(1<<63 - 1)
	}
	return time.Until(end)
}

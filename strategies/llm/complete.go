package llm

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// Complete asks the models of the chain until one answers. The error is an *Error.
// A ctx that ends, ends the call, and so does the budget; what was billed until
// then is in the error.
func (c *Client) Complete(ctx context.Context, call Call) (Answer, error) {
	began := time.Now()
	r := &course{Client: c, call: call, budget: c.cfg.Budget.within(call.Budget), again: map[*model]time.Time{}}
	ctx, cancel := context.WithTimeoutCause(ctx, r.budget.Time, errOutOfTime)
	defer cancel()
	for _, m := range c.models {
		v, ok := r.ask(ctx, m)
		if ok {
			return Answer{
				Text: v.text, Model: m.Name, FinishReason: v.finish, Refusal: v.refusal,
				Usage: r.usage, CostMicros: r.cost, Attempts: r.attempts, Duration: time.Since(began),
			}, nil
		}
		if ctx.Err() != nil || r.worst != nil && rules()[r.worst.class].then == end {
			break
		}
	}
	return Answer{}, r.err(ctx)
}

// ask asks one model, as often as its failures are worth. Whatever ends that is
// noted in the course.
func (r *course) ask(ctx context.Context, m *model) (verdict, bool) {
	if m.Window <= r.tooSmall {
		return verdict{}, false // no larger than one that was too small
	}
	room, ok := r.room(m)
	if !ok {
		r.fail(failure{model: m, verdict: verdict{class: ContextTooLong}})
		return verdict{}, false
	}
	tries := map[Class]int{}
	grown := false
	for {
		done, ok := r.admit(ctx, m, room)
		if !ok {
			if r.last != nil && r.last.model == m {
				r.leave(ctx, m, r.last.verdict)
			}
			return verdict{}, false
		}
		v := r.attempt(ctx, m, room)
		done(outcome(ctx, v))
		r.charge(m, room, v)
		if v.class == "" {
			return v, true
		}
		r.last = &failure{model: m, asked: true, verdict: v}
		r.fail(*r.last)
		tries[v.class]++
		if more := r.more(m, room); v.starved && !grown && more > room {
			grown, room = true, more
			r.logFailure(ctx, m, v, 0)
			continue
		}
		pause := v.retryAfter + r.cfg.Retry.delays().Delay(tries[v.class]-1)
		again := !v.starved && tries[v.class] < rules()[v.class].tries && r.worthWaiting(ctx, v, pause)
		if !again {
			pause = 0
		}
		r.logFailure(ctx, m, v, pause)
		if !again || backoff.Wait(ctx, pause) != nil {
			r.leave(ctx, m, v)
			return verdict{}, false
		}
	}
}

// outcome is what an attempt tells about a server: nothing where the call was over
// before the server's time was.
func outcome(ctx context.Context, v verdict) Class {
	if v.class != "" && ctx.Err() != nil {
		return Canceled
	}
	return v.class
}

// room is how many tokens an attempt may write. It reports false where the model's
// window holds less beside the input; a call that bounds its answer by nothing takes
// what is left.
func (r *course) room(m *model) (int, bool) {
	room := m.room(r.call.MaxTokens)
	if r.call.InputTokens <= 0 {
		return room, true
	}
	left := m.Window - r.call.input()
	if r.call.MaxTokens <= 0 {
		return min(room, left), left > 0
	}
	return room, room <= left
}

// more is a larger room that the window holds; not more than room if there is none.
func (r *course) more(m *model, room int) int {
	more := m.more(room)
	if r.call.InputTokens > 0 {
		more = min(more, m.Window-r.call.InputTokens)
	}
	return more
}

// admit asks everything that can keep a model from being asked: cooldown, circuit,
// budget and limits. It waits for the limits.
func (r *course) admit(ctx context.Context, m *model, room int) (done func(Class), ok bool) {
	if ctx.Err() != nil {
		r.fail(failure{model: m, verdict: verdict{class: ended(ctx)}})
		return nil, false
	}
	if !r.affordable(m, room) {
		r.fail(failure{model: m, verdict: verdict{class: OverBudget}})
		return nil, false
	}
	if at := r.askableAt(ctx, m, r.call.IgnoreCooldown); at.After(time.Now()) {
		r.skip(m, at)
		return nil, false
	}
	if !r.reserve(ctx, m, room) {
		return nil, false
	}
	done, ok = m.breaker.allow()
	if !ok { // opened meanwhile, or another call is trying whether it may close
		r.skip(m, time.Now().Add(time.Second))
	}
	return done, ok
}

// affordable reports whether the budget holds another attempt.
func (r *course) affordable(m *model, room int) bool {
	most := Usage{Input: r.call.input(), Output: room}
	tokens := r.budget.Tokens
	if tokens == 0 {
		tokens = 4 * (most.Input + most.Output)
	}
	switch {
	case r.attempts >= r.budget.Attempts:
		r.stopped = "attempts"
	case r.spentTokens+most.Input+most.Output > tokens:
		r.stopped = "tokens"
	case r.budget.Cost > 0 && float64(r.spentCost+m.Price.micros(most)) > r.budget.Cost*1e6:
		r.stopped = "cost"
	default:
		return true
	}
	return false
}

// reserve takes the attempt from the model's limits per minute, and waits for them.
func (r *course) reserve(ctx context.Context, m *model, room int) bool {
	if m.RequestsPerMinute <= 0 && m.TokensPerMinute <= 0 {
		return true
	}
	most := min(r.cfg.Retry.Wait, untilEnd(ctx))
	wait, err := r.limiter.Reserve(ctx, Take{
		Key: m.limitKey, RequestsPerMinute: m.RequestsPerMinute, TokensPerMinute: m.TokensPerMinute,
		Tokens: r.call.input() + room, MaxWait: most,
	})
	switch {
	case err != nil && ctx.Err() == nil: // limits are the servers' to enforce; ours only save refusals
		r.log.WarnContext(ctx, "limits per minute not known, the model is asked", "model", m.id)
		wait = 0
	case err == nil && wait > most:
		r.fail(failure{model: m, verdict: verdict{class: RateLimited}})
		r.ready(m, time.Now().Add(wait))
		return false
	}
	if backoff.Wait(ctx, wait) != nil {
		r.fail(failure{model: m, verdict: verdict{class: ended(ctx)}})
		return false
	}
	return true
}

// attempt makes one request.
func (r *course) attempt(ctx context.Context, m *model, room int) verdict {
	r.attempts++
	x := &exchange{key: m.keys.key()}
	attemptCtx, cancel := context.WithTimeout(withExchange(ctx, x), r.cfg.Deadline.For(r.call.input()))
	defer cancel()
	// The answer and the error are in x: the library's error may print a body, and
	// its answer is lost for a field that nobody needs.
	_, _ = m.api.CreateChatCompletion(attemptCtx, m.request(r.call.System, r.call.User, room))
	v := judge(*x)
	switch {
	case v.class != "" && ctx.Err() != nil:
		v.class = ended(ctx)
	case !x.sent && attemptCtx.Err() != nil:
		v.class = Timeout
	case !x.sent:
		v.class = BadRequest // the library refused it
	}
	const shortest = 8 // of keys; a shorter text may be part of any word
	// A server that repeats the key is no reason to store it.
	if key := x.key.Reveal(); len(key) >= shortest {
		v.text = strings.ReplaceAll(v.text, key, "[REDACTED]")
		v.refusal = strings.ReplaceAll(v.refusal, key, "[REDACTED]")
	}
	return v
}

// errOutOfTime tells the end of the budget's time from that of the caller's.
var errOutOfTime = errors.New("out of time")

// ended is the class of a call that its context ended.
func ended(ctx context.Context) Class {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Canceled
	}
	return Timeout
}

// worthWaiting reports whether a model is asked again after a pause: a server that
// names its time is waited for only so long, and never beyond the end of the call.
func (r *course) worthWaiting(ctx context.Context, v verdict, pause time.Duration) bool {
	return v.retryAfter <= r.cfg.Retry.Wait && pause < untilEnd(ctx)
}

func (r *course) logFailure(ctx context.Context, m *model, v verdict, pause time.Duration) {
	level := slog.LevelWarn
	if rules()[v.class].rest == noProvider {
		level = slog.LevelError // somebody has to see to it
	}
	attrs := []slog.Attr{slog.String("model", m.id), slog.String("code", string(v.class)), slog.Int("attempt", r.attempts), slog.Int64("wait_ms", pause.Milliseconds())}
	if v.status != 0 {
		attrs = append(attrs, slog.Int("status", v.status))
	}
	if v.requestID != "" {
		attrs = append(attrs, slog.String("request_id", v.requestID))
	}
	r.log.LogAttrs(ctx, level, "model call failed", attrs...)
}

// untilEnd is how long a context has left.
func untilEnd(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Duration(1<<63 - 1)
	}
	return time.Until(end)
}

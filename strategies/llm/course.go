package llm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// failure is how one model failed.
type failure struct {
	verdict

	model *model
	asked bool
}

// course is one call on its way through the chain.
type course struct {
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

	last     *failure             // of the last attempt
	worst    *failure             // the one to report, by rank
	again    map[*model]time.Time // when models may be asked again, where that helps
	tooSmall int                  // the largest window that was not enough
	stopped  string               // the limit that ended it
}

// charge counts what an attempt took.
func (r *course) charge(m *model, room int, v verdict) {
	took := v.usage
	r.usage = r.usage.plus(took)
	r.cost += m.Price.micros(took)
	if took.Unreported > 0 {
		took = Usage{Input: r.call.input(), Output: room}
	}
	r.spentTokens += took.Input + took.Output
	r.spentCost += m.Price.micros(took)
}

// leave gives a model up for this call, and for others where the failure says so.
func (r *course) leave(ctx context.Context, m *model, v verdict) {
	if ctx.Err() != nil {
		return // it did not have the time that it should have
	}
	until := r.rest(ctx, m, v)
	if rules()[v.class].rest != noRest {
		r.ready(m, until)
	}
}

// skip notes a model that may not be asked before a time.
func (r *course) skip(m *model, at time.Time) {
	r.fail(failure{model: m, verdict: verdict{class: Unavailable}})
	r.ready(m, at)
}

// fail notes a failure. Of several, the highest rank is reported; of one rank, that
// of a server before one that was foreseen, and else the last.
func (r *course) fail(f failure) {
	if rules()[f.class].then == larger {
		r.tooSmall = max(r.tooSmall, f.model.Window)
	}
	if r.worst == nil || f.rank() > r.worst.rank() || f.rank() == r.worst.rank() && (f.asked || !r.worst.asked) {
		r.worst = &f
	}
}

// rank is the rule's. A model that may not be asked now may answer later, which is
// more than one can say of those that refused for good.
func (f failure) rank() int {
	if f.class == Unavailable && !f.asked {
		return rules()[MalformedAnswer].rank
	}
	return rules()[f.class].rank
}

// ready notes that asking a model again makes sense then, not before.
func (r *course) ready(m *model, at time.Time) {
	if at.After(r.again[m]) {
		r.again[m] = at
	}
}

func (r *course) err(ctx context.Context) *Error {
	f := r.worst
	switch {
	case f == nil: // the time was over before anything was asked
		f = &failure{verdict: verdict{class: ended(ctx)}}
	case ctx.Err() != nil && ended(ctx) == Canceled && f.class != Canceled: // while it was waiting
		f = &failure{model: f.model, verdict: verdict{class: Canceled}}
	}
	e := &Error{
		Class: f.class, Status: f.status, Attempts: r.attempts,
		Usage: r.usage, CostMicros: r.cost, Stopped: r.stopped,
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
	if len(r.again) > 0 {
		first := slices.MinFunc(slices.Collect(maps.Values(r.again)), time.Time.Compare)
		e.RetryAfter = max(0, time.Until(first))
	}
	return e
}

package reports

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

// Condition is one of the conditions under which a fleet is well.
type Condition struct {
	// Code names it: held_back, outbox, queue, workers, leader, models or quarantine.
	Code string `json:"code"`
	Met  bool   `json:"met"`
	// Text says how it is, and the expectation where that is not met.
	Text string `json:"text"`
}

// Health is the state of a fleet, or of a tenant's part of it.
type Health struct {
	Met        bool        `json:"met"`
	Conditions []Condition `json:"conditions"`
}

// outboxSlack is how much longer than the debounce of its policy a session may wait for a run in good health.
const outboxSlack = 5 * time.Second

// Overview is the state of a fleet, or of a tenant's part of it, now and lately.
type Overview struct {
	Due      store.TenantDue `json:"due"`
	Fleet    store.Fleet     `json:"fleet"`
	HeldBack []store.Held    `json:"held_back"`
	LastHour store.Activity  `json:"last_hour"`
	Health   Health          `json:"health"`
	Series   store.Series    `json:"series"`
}

// Overviews reads overviews. Safe for concurrent use.
type Overviews struct{ Series store.SeriesReader }

// Read returns the overview of a tenant, or of all with an empty one. It names at most so many tenants; the series has so
// many parts.
func (r *Overviews) Read(ctx context.Context, st *store.Store, cfg config.Config, tenant string, tenants int, within time.Duration, parts int,
) (o Overview, err error) {
	if o.Fleet, err = st.Operator.Fleet(ctx, tenant, tenants); err != nil {
		return o, err
	}
	o.Due = o.Fleet.Due()
	held, err := st.Operator.HeldBack(ctx, tenant)
	if err != nil {
		return o, err
	}
	o.HeldBack = append([]store.Held{}, held...)
	if o.LastHour, err = st.Operator.Activity(ctx, tenant, time.Hour); err != nil {
		return o, err
	}
	if o.Series, err = r.Series.Read(ctx, st, tenant, within, parts); err == nil {
		o.Health = o.health(cfg)
	}
	return o, err
}

// health returns the health that the state is.
func (s *Overview) health(cfg config.Config) (h Health) {
	h.Met = true
	add := func(code string, met bool, text string, args ...any) {
		h.Conditions, h.Met = append(h.Conditions, Condition{code, met, fmt.Sprintf(text, args...)}), h.Met && met
	}
	var held, decided, quarantined int64
	var first store.Held
	for _, r := range s.HeldBack {
		switch {
		case r.Reason == store.StateQuarantined:
			quarantined += r.Sessions
		case r.Decided:
			decided += r.Sessions
		default:
			if held += r.Sessions; r.Sessions > first.Sessions {
				first = r
			}
		}
	}
	if held > 0 {
		add("held_back", false, "%s over the start and held back by a fault. The largest reason, of %s: %s.",
			areSessions(held), term.Plural(first.Sessions, "session", "sessions"), first.Text())
	} else {
		add("held_back", true, "No session is held back by a fault; %s by pauses, limits and policies.", areSessions(decided))
	}
	most := max(cfg.Policy.MaxDelay, cfg.Policy.Debounce) + outboxSlack
	oldest := time.Duration(s.Fleet.OldestOutboxSeconds * float64(time.Second))
	add("outbox", oldest <= most, "%s written to and without a run yet, the oldest for %s. Expected: at most %s.",
		areSessions(s.Fleet.Outbox), term.Duration(oldest), term.Duration(most))
	var queued, running int64
	waits := 0.0
	for _, r := range s.Fleet.Active {
		queued, running, waits = queued+r.Queued, running+r.Running, max(waits, r.OldestQueuedSeconds)
	}
	l := cmp.Or(s.Series.Leads, &store.Leader{})
	add("queue", l.QueueAway == nil, "%s", within(l.QueueAway, s.Series.To, "the scheduler cannot reach Redis",
		fmt.Sprintf("%s queued, the oldest for %s; %s running.", term.Plural(queued, "run", "runs"),
			term.Duration(time.Duration(waits*float64(time.Second))), term.Plural(running, "run", "runs"))))
	add("workers", l.WorkersAway == nil, "%s", within(l.WorkersAway, s.Series.To, "no worker serves the queues", "Workers serve the queues."))
	if s.Series.Leads == nil {
		add("leader", false, "No scheduler leads: nothing is queued. Start `compactor serve` or `compactor scheduler`.")
	} else {
		add("leader", true, "%s leads; it renewed its lease %s ago.", l.Name, term.Duration(s.Series.To.Sub(l.RenewedAt).Round(time.Second)))
	}
	var calls, failed, rejected int64
	for _, m := range s.LastHour.Models {
		calls, failed, rejected = calls+m.Calls, failed+m.Failed, rejected+m.Rejected
	}
	add("models", failed*2 <= calls, "%s in the last hour: %s failed, %s rejected. Expected: at most half failed.",
		term.Plural(calls, "call", "calls"), term.Count(failed), term.Count(rejected))
	add("quarantine", quarantined == 0, "%s", map[bool]string{
		true:  "No session is quarantined.",
		false: areSessions(quarantined) + " quarantined, as what must stay is above the start.",
	}[quarantined == 0])
	return h
}

// areSessions returns a count of sessions with its verb.
func areSessions(n int64) string {
	if n == 1 {
		return "1 session is"
	}
	return term.Count(n) + " sessions are"
}

// within returns a fault since a time, or how it is without one.
func within(since *time.Time, now time.Time, fault, fine string) string {
	if since == nil {
		return fine
	}
	return fmt.Sprintf("For %s %s.", term.Duration(now.Sub(*since).Round(time.Second)), fault)
}

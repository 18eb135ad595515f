package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

type statsCmd struct {
	Tenants int `default:"10" range:"0,1000" help:"Number of tenants to list, those with most to compact first."`
}

// statsJSON is the result of the command stats.
type statsJSON struct {
	store.Stats
	Disk *diskJSON `json:"disk,omitempty"` // with a budget
}

func (c *statsCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	var s statsJSON
	var err error
	if s.Stats, err = st.Operator.Stats(ctx, e.flags["tenant"], c.Tenants); err == nil && s.Tenant == "" {
		s.Disk, err = diskUse(ctx, st, cfg.Scheduler)
	}
	if err != nil {
		return err
	}
	return e.show(s, func() {
		if s.Tenant != "" {
			e.say("tenant %s\n", term.Clean(s.Tenant))
		}
		printHeld(e, s.HeldBack)
		s.printFleet(e)
		printActivity(e, "last hour", s.LastHour)
		printActivity(e, "last day", s.LastDay)
	})
}

// printHeld writes the reasons for which due sessions do not run, and an empty line.
func printHeld(e *Env, held []store.Held) {
	if len(held) == 0 {
		e.say("held back: nothing\n")
		return
	}
	e.say("%s", e.Out.Bold("held back"))
	var pairs []pair
	for _, h := range held {
		style := e.Out.Yellow
		if !h.Decided {
			style = e.Out.Red
		}
		pairs = append(pairs, pair{"  " + h.Reason, term.Styled{Value: plural(h.Sessions, "session") + heldTimes(h), As: style}},
			pair{"", h.Text()})
		pairs = append(pairs, endedBy(h.EndsBy)...)
	}
	e.pairs(pairs...)
	e.say("")
}

// heldTimes says since when and for how long at most, as far as that is known.
func heldTimes(h store.Held) string {
	text := ""
	if h.Since != nil {
		text = ", for " + term.Duration(seconds(h.Seconds))
	}
	if h.SecondsLeft != nil {
		text += fmt.Sprintf(", for %s more at most", term.Duration(seconds(*h.SecondsLeft)))
	}
	return text
}

// endedBy describes the end of a reason that holds sessions back, with the command of a long text in a line of
// its own.
func endedBy(ends string) []pair {
	if before, command, long := strings.Cut(ends, ", or "); long && len(ends) > 50 {
		return []pair{{"", "ended by: " + before + ", or"}, {"", command}}
	}
	return []pair{{"", "ended by: " + ends}}
}

// seconds returns a number of seconds as a duration.
func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// aged returns a count with the age of the oldest, which is left out for 0.
func aged(count string, n int64, age float64) string {
	if n == 0 {
		return count
	}
	return fmt.Sprintf("%s, the oldest for %s", count, term.Duration(seconds(age)))
}

func (s *statsJSON) printFleet(e *Env) {
	due := plural(s.Due.Sessions, "session") + when(s.Due.Cooling > 0, fmt.Sprintf(", %s cooling down", term.Count(s.Due.Cooling))) +
		when(s.Due.Repairs > 0, fmt.Sprintf(", %s to repair", term.Count(s.Due.Repairs)))
	var queued, running int64
	oldest := 0.0
	for _, r := range s.Fleet.Active {
		queued, running, oldest = queued+r.Queued, running+r.Running, max(oldest, r.OldestQueuedSeconds)
	}
	pairs := []pair{
		{"due", aged(due, s.Due.Sessions-s.Due.Cooling, s.Due.OldestSeconds)},
		{"over start", term.Tokens(s.Due.Debt) + " tokens, of all that are due"},
		{"no run yet", aged(plural(s.Fleet.Outbox, "session"), s.Fleet.Outbox, s.Fleet.OldestOutboxSeconds)},
		{"queued", aged(plural(queued, "run"), queued, oldest)},
		{"running", plural(running, "run")},
	}
	for _, w := range s.Fleet.Sweeps {
		pairs = append(pairs, pair{"sweep " + w.Entry, fmt.Sprintf("%s queued, %s to come, for %s",
			plural(w.Queued, "run"), plural(w.Left, "session"), term.Duration(seconds(w.Seconds)))})
	}
	e.pairs(append(pairs, pair{"disk", s.Disk})...)
	if s.Tenant != "" || len(s.Fleet.Tenants) == 0 {
		return
	}
	e.say("")
	columns[store.TenantDue]{
		{"tenant", term.Text("TENANT"), func(d store.TenantDue) any {
			if d.Others {
				return term.Styled{Value: "(others)", As: e.Out.Dim}
			}
			return d.Tenant
		}},
		{"due", term.Num("DUE"), nil},
		{"debt_tokens", term.Num("DEBT"), func(d store.TenantDue) any { return term.Tokens(d.Debt) }},
		{"oldest_seconds", term.Num("OLDEST"), func(d store.TenantDue) any {
			return when(d.Sessions > d.Cooling,
				any(seconds(d.OldestSeconds)))
		}},
	}.write(e, s.Fleet.Tenants)
}

func printActivity(e *Env, title string, a store.Activity) {
	var runs, before, after int64
	for _, o := range a.Outcomes {
		runs, before, after = runs+o.Runs, before+o.TokensBefore, after+o.TokensAfter
	}
	e.say("\n%s: %s, %s tokens saved (%s of %s)", e.Out.Bold(title), plural(runs, "run"),
		term.Tokens(before-after), term.Percent(before-after, before), term.Tokens(before))
	if len(a.Outcomes) > 0 {
		type row = store.OutcomeActivity
		styles := map[string]func(string) string{store.StatusApplied: e.Out.Green, store.StatusFailed: e.Out.Red}
		applied := func(o row, text string) any { return when(o.Status == store.StatusApplied, text) }
		columns[row]{
			{"trigger", term.Text("TRIGGER"), func(o row) any { return triggerName(o.Trigger) }},
			{"outcome", term.Text("OUTCOME"), func(o row) any { return term.Styled{Value: o.Outcome, As: styles[o.Status]} }},
			{"runs", term.Num("RUNS"), nil},
			{"", term.Num("SAVED"), func(o row) any { return applied(o, term.Tokens(o.TokensBefore-o.TokensAfter)) }},
			{"", term.Num("GAIN"), func(o row) any { return applied(o, term.Percent(o.TokensBefore-o.TokensAfter, o.TokensBefore)) }},
			{"p50_seconds", term.Num("P50"), func(o row) any { return seconds(o.P50Seconds) }},
			{"p95_seconds", term.Num("P95"), func(o row) any { return seconds(o.P95Seconds) }},
			{"model_failed", term.Num("MODEL FAILED"), nil},
		}.without(slices.ContainsFunc(a.Outcomes, func(o row) bool { return o.ModelFailed > 0 }), "model_failed").write(e, a.Outcomes)
	}
	if len(a.Models) > 0 {
		type row = store.ModelActivity
		e.say("")
		columns[row]{
			{"model", term.Text("MODEL"), func(m row) any { return cmp.Or(m.Model, "(none)") }},
			{"calls", term.Num("CALLS"), nil},
			{"failed", term.Num("FAILED"), nil},
			{"rejected", term.Num("REJECTED"), nil},
			{"input_tokens", term.Num("IN"), func(m row) any { return term.Tokens(m.InputTokens) }},
			{"output_tokens", term.Num("OUT"), func(m row) any { return term.Tokens(m.OutputTokens) }},
			{"cost_micros", term.Num("COST"), func(m row) any { return cost(m.CostMicros) }},
			{"estimated", term.Num("ESTIMATED"), nil},
		}.without(slices.ContainsFunc(a.Models, func(m row) bool { return m.Estimated > 0 }), "estimated").write(e, a.Models)
	}
}

// cost returns a cost as text, in the unit of the configured prices.
func cost(micros int64) string { return fmt.Sprintf("%.4f", float64(micros)/1e6) }

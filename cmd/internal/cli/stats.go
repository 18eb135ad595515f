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
	Tenants int `default:"10" help:"Number of tenants to list, those with most to compact first."`
}

func (*statsCmd) Help() string {
	return `The first part is why sessions that are due do not run, if anything but their turn keeps them: each reason with the number of sessions, since when and until when, and what ends it ("policy explain" says it of one session). A session may be counted under several. The second is what waits now: sessions that are due, and their debt, the tokens by which they are over their starts; sessions in the outbox, which were written to and have no run yet; queued and running runs; open sweeps; with scheduler.disk_budget, the disk space of the tables beside it. The others are what ended within the last hour and day: runs, the tokens they saved, and calls of models with their cost in the unit of the configured prices. MODEL FAILED counts the runs whose summary no model wrote, as it failed: an extract, say, stands in its place. ESTIMATED counts the calls whose server reported no usage: their tokens are counted here. P50 and P95 are percentiles of the duration of a run. With --tenant all of it is of that tenant, without the disk space.

The same figures, over time, are metrics of serve, worker and scheduler (GET /metrics).

Examples:

    compactor stats
    compactor stats --tenant acme
    compactor stats --json | jq '.held_back[] | select(.decided | not)'
    compactor stats --json | jq '.last_hour.outcomes[] | select(.status == "failed")'`
}

func (c *statsCmd) Validate() error { return inRange("--tenants", c.Tenants, 0, 1000) }

// statsJSON is the result of the command stats.
type statsJSON struct {
	Tenant   string          `json:"tenant,omitempty"` // of --tenant
	HeldBack []store.Held    `json:"held_back"`
	Due      store.TenantDue `json:"due"`
	Fleet    store.Fleet     `json:"fleet"`
	LastHour store.Activity  `json:"last_hour"`
	LastDay  store.Activity  `json:"last_day"`
	Disk     *diskJSON       `json:"disk,omitempty"` // with a budget
}

func (c *statsCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	s := statsJSON{Tenant: e.flags["tenant"]}
	var err error
	if s.Fleet, err = st.Operator.Fleet(ctx, s.Tenant, c.Tenants); err != nil {
		return err
	}
	s.Due = s.Fleet.Due()
	held, err := st.Operator.HeldBack(ctx, s.Tenant)
	if err != nil {
		return err
	}
	s.HeldBack = append([]store.Held{}, held...)
	if s.Tenant == "" {
		if s.Disk, err = diskUse(ctx, st, cfg.Scheduler); err != nil {
			return err
		}
	}
	if s.LastHour, err = st.Operator.Activity(ctx, s.Tenant, time.Hour); err != nil {
		return err
	}
	if s.LastDay, err = st.Operator.Activity(ctx, s.Tenant, 24*time.Hour); err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, s)
	}
	if s.Tenant != "" {
		e.say("tenant %s\n", term.Clean(s.Tenant))
	}
	if err := printHeld(e, s.HeldBack); err != nil {
		return err
	}
	if err := s.printFleet(e); err != nil {
		return err
	}
	if err := printActivity(e, "last hour", s.LastHour); err != nil {
		return err
	}
	return printActivity(e, "last day", s.LastDay)
}

// printHeld writes what holds sessions back, and an empty line.
func printHeld(e *Env, held []store.Held) error {
	if len(held) == 0 {
		e.say("held back: nothing\n")
		return nil
	}
	e.say("%s", e.Out.Bold("held back"))
	var pairs [][2]any
	for _, h := range held {
		style := e.Out.Yellow
		if !h.Decided {
			style = e.Out.Red
		}
		pairs = append(pairs, [2]any{"  " + h.Reason, term.Styled{Value: term.Plural(h.Sessions, "session", "sessions") + heldTimes(h), As: style}}, [2]any{"", h.Text()})
		pairs = append(pairs, endedBy(h.EndsBy)...)
	}
	err := e.Out.Pairs(pairs...)
	e.say("")
	return err
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

// endedBy says what ends what holds sessions back, with the command of a long text in a line of
// its own.
func endedBy(ends string) [][2]any {
	if before, command, long := strings.Cut(ends, ", or "); long && len(ends) > 50 {
		return [][2]any{{"", "ended by: " + before + ", or"}, {"", command}}
	}
	return [][2]any{{"", "ended by: " + ends}}
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

func (s *statsJSON) printFleet(e *Env) error {
	due := term.Plural(s.Due.Sessions, "session", "sessions")
	if s.Due.Cooling > 0 {
		due += fmt.Sprintf(", %s cooling down", term.Count(s.Due.Cooling))
	}
	if s.Due.Repairs > 0 {
		due += fmt.Sprintf(", %s to repair", term.Count(s.Due.Repairs))
	}
	pairs := [][2]any{
		{"due", aged(due, s.Due.Sessions-s.Due.Cooling, s.Due.OldestSeconds)},
		{"debt", term.Tokens(s.Due.Debt) + " tokens over their starts"},
		{"outbox", aged(term.Plural(s.Fleet.Outbox, "session", "sessions"), s.Fleet.Outbox, s.Fleet.OldestOutboxSeconds)},
	}
	var queued, running int64
	oldest := 0.0
	for _, r := range s.Fleet.Active {
		queued, running, oldest = queued+r.Queued, running+r.Running, max(oldest, r.OldestQueuedSeconds)
	}
	pairs = append(pairs, [2]any{"queued", aged(term.Plural(queued, "run", "runs"), queued, oldest)}, [2]any{"running", term.Plural(running, "run", "runs")})
	for _, w := range s.Fleet.Sweeps {
		pairs = append(pairs, [2]any{"sweep " + w.Entry, fmt.Sprintf("%s queued, %s to come, for %s",
			term.Plural(w.Queued, "run", "runs"), term.Plural(w.Left, "session", "sessions"), term.Duration(seconds(w.Seconds)))})
	}
	if s.Disk != nil {
		pairs = append(pairs, [2]any{"disk", s.Disk})
	}
	if err := e.Out.Pairs(pairs...); err != nil || s.Tenant != "" || len(s.Fleet.Tenants) == 0 {
		return err
	}
	e.say("")
	t := e.Out.Table(term.Text("TENANT"), term.Num("DUE"), term.Num("DEBT"), term.Num("OLDEST"))
	for _, d := range s.Fleet.Tenants {
		name := term.Styled{Value: d.Tenant}
		if d.Others {
			name = term.Styled{Value: "(others)", As: e.Out.Dim}
		}
		var oldest any
		if d.Sessions > d.Cooling {
			oldest = seconds(d.OldestSeconds)
		}
		t.Row(name, d.Sessions, term.Tokens(d.Debt), oldest)
	}
	return t.Write()
}

func printActivity(e *Env, title string, a store.Activity) error {
	var runs, before, after int64
	for _, o := range a.Outcomes {
		runs, before, after = runs+o.Runs, before+o.TokensBefore, after+o.TokensAfter
	}
	e.say("\n%s: %s, %s tokens saved (%s of %s)", e.Out.Bold(title), term.Plural(runs, "run", "runs"),
		term.Tokens(before-after), term.Percent(before-after, before), term.Tokens(before))
	if len(a.Outcomes) > 0 {
		columns := []term.Column{term.Text("TRIGGER"), term.Text("OUTCOME"), term.Num("RUNS"), term.Num("SAVED"), term.Num("GAIN"), term.Num("P50"), term.Num("P95")}
		if slices.ContainsFunc(a.Outcomes, func(o store.OutcomeActivity) bool { return o.ModelFailed > 0 }) {
			columns = append(columns, term.Num("MODEL FAILED"))
		}
		t := e.Out.Table(columns...)
		for _, o := range a.Outcomes {
			outcome, saved, gain := term.Styled{Value: o.Outcome}, "", ""
			switch o.Status {
			case store.StatusApplied:
				outcome.As = e.Out.Green
				saved, gain = term.Tokens(o.TokensBefore-o.TokensAfter), term.Percent(o.TokensBefore-o.TokensAfter, o.TokensBefore)
			case store.StatusFailed:
				outcome.As = e.Out.Red
			}
			t.Row(triggerName(o.Trigger), outcome, o.Runs, saved, gain, seconds(o.P50Seconds), seconds(o.P95Seconds), o.ModelFailed)
		}
		if err := t.Write(); err != nil {
			return err
		}
	}
	if len(a.Models) == 0 {
		return nil
	}
	e.say("")
	columns := []term.Column{term.Text("MODEL"), term.Num("CALLS"), term.Num("FAILED"), term.Num("REJECTED"), term.Num("IN"), term.Num("OUT"), term.Num("COST")}
	if slices.ContainsFunc(a.Models, func(m store.ModelActivity) bool { return m.Estimated > 0 }) {
		columns = append(columns, term.Num("ESTIMATED"))
	}
	t := e.Out.Table(columns...)
	for _, m := range a.Models {
		t.Row(cmp.Or(m.Model, "(none)"), m.Calls, m.Failed, m.Rejected, term.Tokens(m.InputTokens), term.Tokens(m.OutputTokens), cost(m.CostMicros), m.Estimated)
	}
	return t.Write()
}

// cost returns a cost as text, in the unit of the configured prices.
func cost(micros int64) string { return fmt.Sprintf("%.4f", float64(micros)/1e6) }

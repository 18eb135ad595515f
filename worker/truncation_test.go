package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// sweepTogether goes over the due sessions of a tenant as the scheduler does, and returns the
// runs that it queues.
func sweepTogether(ctx context.Context, st *store.Store, p *Planner, tenant, worker string) (queued []store.RunID, ended int, err error) {
	sweep, err := st.Operator.StartSweep(ctx, tenant, 0, "", "test")
	if err != nil {
		return nil, 0, err
	}
	rules := []store.Truncation{}
	for {
		page, err := st.Scheduler.SweepTogether(ctx, sweep, 100, time.Minute, rules, worker)
		if err != nil {
			return nil, 0, err
		}
		for _, k := range page.Unknown {
			rule, err := p.Truncation(ctx, st.Worker, k)
			if err != nil {
				return nil, 0, err
			}
			rules = append(rules, rule)
		}
		for _, d := range page.Queued {
			queued = append(queued, d.Run)
		}
		if ended += page.Ended; page.Done {
			return queued, ended, nil
		}
	}
}

// swept returns the latest run of a sweep of a session.
func (f *paged) swept(session string) (run store.RunID) {
	f.t.Helper()
	f.must(f.conn.QueryRow(f.t.Context(), `SELECT max(r.id) FROM compactor.runs r JOIN compactor.sessions s USING (sid) WHERE s.id = $1 AND r.sweep IS NOT NULL`, session).Scan(&run))
	return run
}

// drawn is a session that a property test draws, as a list of what happens to it.
type drawn []func(k store.Key) error

// drawSession draws a session and what makes it another kind than those that the database
// truncates by itself, or does not.
func drawSession(t *rapid.T, f *paged, w *Worker) drawn {
	ctx := f.t.Context()
	model := rapid.SampledFrom([]string{"", "gpt-4o", "claude-sonnet-4-5", "claude-fable-5-1"}).Draw(t, "model")
	n := 0
	message := func(role chat.Role, counter string) store.NewMessage {
		n++
		m := store.NewMessage{Counter: counter, Tokens: chat.Tokens(rapid.IntRange(1, 190).Draw(t, "tokens"))}
		m.ID, m.Role, m.Content = fmt.Sprint("m", n), role, chat.TextContent("said")
		return m
	}
	turns := func(most int) func(store.Key) error {
		var msgs []store.NewMessage
		estimates := rapid.Bool().Draw(t, "estimates")
		for range rapid.IntRange(1, most).Draw(t, "turns") {
			shape := rapid.SampledFrom([]string{"ua", "ua", "ucta", "ucttcta", "uaa", "u", "du", "a", "ucta"}).Draw(t, "turn")
			if rapid.IntRange(0, 60).Draw(t, "odd") == 60 {
				shape = rapid.SampledFrom([]string{"us", "uc", "ut", "ur", "uhcta", "up"}).Draw(t, "odd turn")
			}
			for i, r := range shape {
				counter := "test"
				if estimates && rapid.Bool().Draw(t, "estimated") {
					counter = "o200k_base*1.5"
				}
				role := map[rune]chat.Role{'s': chat.RoleSystem, 'u': chat.RoleUser, 'd': chat.RoleDeveloper, 't': chat.RoleTool}[r]
				if role == "" {
					role = chat.RoleAssistant
				}
				m := message(role, counter)
				switch r {
				case 'c':
					for k := range max(1, strings.Count(shape, "tt")+1) {
						if k == 0 || strings.HasPrefix(shape[i+1:], "tt") {
							m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: fmt.Sprint("call", n, k), Type: "function", Name: "look", Arguments: "{}"})
						}
					}
				case 't':
					m.ToolCallID = answered(msgs)
				case 'r', 'h': // signed, with words or alone
					m.Message = sessiontest.Sign(m.Message, 0, n)
					if r == 'h' {
						m.Content.Parts = m.Content.Parts[:1]
					}
				case 'p':
					m.Reasoning = "it thought"
				}
				msgs = append(msgs, m)
			}
		}
		return func(k store.Key) error {
			_, _, err := f.store.Append(ctx, k, model, msgs)
			return err
		}
	}
	exec := func(query string) func(store.Key) error {
		return func(k store.Key) error {
			_, err := f.conn.Exec(ctx, query, k.Tenant, k.Session)
			return err
		}
	}
	update := func(set string) func(store.Key) error {
		return exec(`UPDATE compactor.sessions SET ` + set + ` WHERE tenant = $1 AND id = $2`)
	}
	var out drawn
	if rapid.Bool().Draw(t, "system") {
		m := message(chat.RoleSystem, "test")
		out = append(out, func(k store.Key) error {
			_, _, err := f.store.Append(ctx, k, model, []store.NewMessage{m})
			return err
		})
	}
	out = append(out, turns(12))
	reported := chat.Tokens(rapid.IntRange(300, 3000).Draw(t, "reported"))
	events := map[string]func(store.Key) error{
		"turns": turns(6),
		"usage": func(k store.Key) error {
			_, err := f.store.ReportUsage(ctx, k, reported, 0)
			return err
		},
		"pin": func(k store.Key) error { return f.store.Pin(ctx, k, "m1") },
		"run": func(k store.Key) error {
			run, err := f.store.Request(ctx, k, store.TriggerOperator, "test", store.Options{From: "view"})
			if err != nil {
				return err
			}
			return w.execute(ctx, run)
		},
		"undo": func(k store.Key) error {
			runs, err := f.store.Operator.Runs(ctx, store.RunFilter{Key: k, Limit: 1})
			if err != nil || len(runs) == 0 || runs[0].Status != store.StatusApplied {
				return err
			}
			if _, err = f.store.Undo(ctx, k, runs[0].ID, false, "test"); errors.Is(err, store.ErrNotApplicable) {
				err = nil
			}
			return err
		},
		"overflow":    exec(`SELECT compactor.report_state($1, $2, '{"overflow": true}')`),
		"closed":      exec(`SELECT compactor.report_state($1, $2, '{"closed": true}')`),
		"low gain":    update(`low_gain_runs = 1`),
		"cooldown":    update(`cooldown_until = now() + interval '1 hour'`),
		"was held":    update(`cooldown_until = now() - interval '1 hour', hold_code = 'min_interval'`),
		"quarantined": update(`state = 'quarantined', quarantine_reason = 'x', due = false`),
		"managed":     exec(`SELECT compactor.set_labels($1, $2, '{"service_managed": "true"}')`),
		"calibrated": func(k store.Key) error {
			_, err := f.conn.Exec(ctx, `INSERT INTO compactor.calibrations (tenant, model, counted, reported, reports, overhead, scale, updated_at)
				VALUES ($1, compactor.model_key($2), '{}', '{}', 20, 117, 1.31, now()) ON CONFLICT DO NOTHING`, k.Tenant, model)
			return err
		},
	}
	names := slices.Sorted(maps.Keys(events))
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "events") {
		out = append(out, events[rapid.SampledFrom(names).Draw(t, "event")])
	}
	if rapid.Bool().Draw(t, "more") {
		out = append(out, turns(4))
	}
	return out
}

// answered returns the id of the first call of a list that has no result.
func answered(msgs []store.NewMessage) string {
	var open []string
	for _, m := range msgs {
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
		open = slices.DeleteFunc(open, func(id string) bool { return id == m.ToolCallID })
	}
	if len(open) == 0 {
		return "none"
	}
	return open[0]
}

// drawTruncation draws a policy that only truncates, or nearly so.
func drawTruncation(t *rapid.T) policy.Policy {
	p := truncatingPolicy()
	p.StartTokens = chat.Tokens(rapid.IntRange(600, 1500).Draw(t, "start"))
	p.TargetTokens = chat.Tokens(rapid.SampledFrom([]int{200, 400, 499, 590}).Draw(t, "target"))
	p.EstimateMargin = rapid.SampledFrom([]float64{0, 0.1, 0.07}).Draw(t, "margin")
	p.MinGainTokens = chat.Tokens(rapid.SampledFrom([]int{1, 20, 150, int(p.StartTokens - p.TargetTokens)}).Draw(t, "least gain"))
	p.Guards.MinGainShare = rapid.SampledFrom([]float64{0, 0.1, 0.2}).Draw(t, "gain share")
	p.Fallback = rapid.Bool().Draw(t, "fallback")
	p.Guards.OpenToolCall = rapid.SampledFrom([]string{policy.GuardWait, policy.GuardCompact}).Draw(t, "open")
	switch rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 8}).Draw(t, "kind of policy") {
	case 1:
		p.Guards.MidTurn = policy.GuardWait
	case 2:
		p.Guards.MaxPerDay = 2
	case 3:
		p.TargetTurns = 3
	case 4:
		p.PreserveSystem = false
	case 5:
		n := rapid.IntRange(2, 12).Draw(t, "messages")
		p.Pipeline[0].Params = map[string]any{"max_n": n, "compact_to": rapid.IntRange(1, n).Draw(t, "left")}
	case 6:
		n := rapid.IntRange(100, 900).Draw(t, "tokens")
		p.Pipeline[0].Params = map[string]any{"metric": "tokens", "max_n": n, "compact_to": rapid.IntRange(50, n).Draw(t, "left")}
	case 7:
		p.Pipeline = append(p.Pipeline, policy.Step{Strategy: "sliding_window", Params: map[string]any{"keep_last_groups": 3}})
	case 8:
		p.Triggers = []policy.Trigger{{Name: "budget", When: "tokens > 900"}}
	}
	return p
}

// Whatever the policy and the sessions, the database and single runs end in the same state,
// in two rounds.
func TestTruncatedSessionsEndAsSingleRunsDoWhateverTheyAre(t *testing.T) {
	t.Parallel()
	f := setupPaged(t, truncatingPolicy(), Config{})
	ctx := t.Context()
	var checks, truncated, alone int
	property := func(rt *rapid.T) {
		checks++
		must := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		p := drawTruncation(rt)
		if p.Validate() != nil { // as max_per_day of another guard
			rt.Skip()
		}
		planner := testPlanner(p)
		planner.BindsReasoning = tokens.BindsReasoning
		bounds := p.Bounds("", tokens.Window)
		must(f.store.Scheduler.SavePolicy(ctx, p.FleetHash(), []byte(`{}`), []store.Threshold{{DueTokens: bounds.Tokens, Counts: store.Counts(bounds.Counts), EstimateMargin: p.EstimateMargin}}))
		w := New(f.store.Worker, planner, Config{Name: "one"})
		single, set := fmt.Sprint("single ", checks), fmt.Sprint("set ", checks)
		sessions := make([]drawn, rapid.IntRange(1, 4).Draw(rt, "sessions"))
		for i := range sessions {
			sessions[i] = drawSession(rt, f, w)
			for _, do := range sessions[i] {
				must(do(store.Key{Tenant: single, Session: fmt.Sprint(i)}))
				must(do(store.Key{Tenant: set, Session: fmt.Sprint(i)}))
			}
		}
		for round := range 2 {
			_, err := f.conn.Exec(ctx, `DELETE FROM compactor.outbox`)
			must(err)
			// Without rules all runs are queued.
			sweep, err := f.store.Operator.StartSweep(ctx, single, 0, "", "test")
			must(err)
			for done := false; !done; {
				var page []store.Delivery
				page, done, err = f.store.Scheduler.SweepPage(ctx, sweep, 100, time.Minute)
				must(err)
				for _, d := range page {
					must(w.execute(ctx, d.Run))
				}
			}
			queued, ended, err := sweepTogether(ctx, f.store, planner, set, "one")
			must(err)
			truncated, alone = truncated+ended, alone+len(queued)
			for _, run := range queued {
				must(w.execute(ctx, run))
			}
			for i := range sessions {
				a, err := sweptOf(ctx, f.conn, single, i)
				must(err)
				b, err := sweptOf(ctx, f.conn, set, i)
				must(err)
				if diff := cmp.Diff(a, b); diff != "" {
					rt.Fatalf("round %d, session %d (-single +set):\n%s", round, i, diff)
				}
				m := store.NewMessage{Tokens: 150, Counter: "test"}
				m.ID, m.Role, m.Content = "later", chat.RoleUser, chat.TextContent("and now?")
				for _, tenant := range []string{single, set} {
					_, _, err := f.store.Append(ctx, store.Key{Tenant: tenant, Session: fmt.Sprint(i)}, "", []store.NewMessage{m})
					must(err)
				}
			}
		}
	}
	// A few draws may lack sessions of one kind: draw until there are both.
	for range 20 {
		rapid.Check(t, property)
		if truncated > 0 && alone > 0 {
			break
		}
	}
	if truncated == 0 || alone == 0 {
		t.Errorf("%d sessions were truncated by the database, %d by workers", truncated, alone)
	}
	t.Logf("%d sessions were truncated by the database, %d by workers", truncated, alone)
}

// sweptOf returns what the latest run of a sweep left of a session, nil without one.
func sweptOf(ctx context.Context, conn *pgx.Conn, tenant string, session int) (map[string]any, error) {
	var run *store.RunID
	const query = `SELECT max(r.id) FROM compactor.runs r JOIN compactor.sessions s USING (sid) WHERE s.tenant = $1 AND s.id = $2::text AND r.sweep IS NOT NULL`
	if err := conn.QueryRow(ctx, query, tenant, fmt.Sprint(session)).Scan(&run); err != nil || run == nil {
		return nil, err
	}
	return endOf(ctx, conn, *run)
}

package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// heldReasons returns the reasons, sorted.
func heldReasons(t fataler, rows []Held) []string {
	t.Helper()
	var out []string
	for _, h := range rows {
		if h.EndsBy == "" || h.Sessions < 1 {
			t.Fatalf("%+v: what ends it?", h)
		}
		if !slices.Contains(out, h.Reason) {
			out = append(out, h.Reason)
		}
	}
	slices.Sort(out)
	return out
}

// holds are the ways in which session s01 is held back, by reason; all others are free.
var holds = map[string]func(t fataler, s *Store){
	HeldNoLeader:   func(t fataler, s *Store) { exec(t, s, `DELETE FROM compactor.leader`) },
	HeldRedisAway:  func(t fataler, s *Store) { exec(t, s, `SELECT compactor.note_processes('a', true, false)`) },
	HeldNoWorker:   func(t fataler, s *Store) { exec(t, s, `SELECT compactor.note_processes('a', false, true)`) },
	HeldWorkerGone: run01(`status = 'running', lease_until = now() - interval '1 second'`),
	HeldModelDown: func(t fataler, s *Store) {
		run01(`status = 'skipped', outcome = 'no_summary', steps = '[{"no_summary": "overloaded"}]', ended_at = now()`)(t, s)
		exec(t, s, `INSERT INTO compactor.model_cooldowns (model, until, code) VALUES ('m', now() + interval '1 minute', 'overloaded')`)
		cool(t, s, "")
	},
	HeldFailed:       run01(`status = 'failed', outcome = 'internal', snapshot_seq = 99, ended_at = now()`),
	HeldPostponed:    run01(`deliver_at = now() + interval '1 minute', waiting_since = now() + interval '1 minute', snoozes = 1, error_code = 'busy'`),
	CodeReadBudget:   run01(`deliver_at = now() + interval '1 minute', waiting_since = now() + interval '1 minute', error_code = 'read_budget'`),
	CodePaused:       func(t fataler, s *Store) { exec(t, s, `SELECT compactor.pause_runs('default', 'm', 'why', 'ada')`) },
	HeldOpenSweep:    func(t fataler, s *Store) { sweep01(t, s, "") },
	HeldPausedSweep:  func(t fataler, s *Store) { sweep01(t, s, "pause") },
	HeldStoppedSweep: func(t fataler, s *Store) { sweep01(t, s, "cancel") },
	CodeRunLimit: func(t fataler, s *Store) {
		exec(t, s, `SELECT compactor.limit_spending('default', NULL, NULL, NULL, p_runs_per_second => 1)`)
		exec(t, s, `INSERT INTO compactor.throttled (sid, tenant, since) SELECT sid, tenant, now() FROM compactor.sessions WHERE id = 's01'`)
	},
	"spending_limit": func(t fataler, s *Store) {
		run01(`status = 'skipped', outcome = 'no_summary', steps = '[{"no_summary": "spending_limit"}]', ended_at = now()`)(t, s)
		exec(t, s, `SELECT compactor.limit_spending('default', NULL, NULL, 0)`)
		cool(t, s, "")
	},
	"cooldown":           func(t fataler, s *Store) { cool(t, s, "") },
	"min_interval":       func(t fataler, s *Store) { cool(t, s, "min_interval") },
	"max_per_hour":       func(t fataler, s *Store) { cool(t, s, "max_per_hour") },
	"max_per_day":        func(t fataler, s *Store) { cool(t, s, "max_per_day") },
	"quarantined":        set01(`state = 'quarantined', quarantine_reason = 'too much', due = false`),
	"service_managed":    set01(`state = 'service_managed', due = false`),
	"open_tool_loop":     set01(`loop_seq = 1, open_calls = '{a}', due = false`),
	"mid_turn":           set01(`loop_seq = 1, awaits_answer = true, due = false`),
	"waiting_after_undo": set01(`hold_seq = last_source_seq, due = false, view_changed_at = now()`),
	"not_triggered": func(t fataler, s *Store) {
		run01(`status = 'skipped', outcome = 'not_triggered', snapshot_seq = 99, ended_at = now()`)(t, s)
		set01(`loop_seq = 1, awaits_answer = true, due = false`)(t, s)
	},
	"unchanged": run01(`status = 'skipped', outcome = 'no_summary', snapshot_seq = 99, ended_at = now()`),
}

func set01(set string) func(t fataler, s *Store) {
	return func(t fataler, s *Store) { exec(t, s, `UPDATE compactor.sessions SET `+set+` WHERE id = 's01'`) }
}

// run01 makes a run of the session, with columns.
func run01(set string) func(t fataler, s *Store) {
	return func(t fataler, s *Store) {
		id := one[int64](t, s, `INSERT INTO compactor.runs (sid, trigger) SELECT sid, 'event' FROM compactor.sessions WHERE id = 's01' RETURNING id`)
		exec(t, s, `UPDATE compactor.runs SET `+set+` WHERE id = $1`, id)
	}
}

func cool(t fataler, s *Store, code string) {
	exec(t, s, `UPDATE compactor.sessions SET cooldown_until = now() + interval '1 hour', hold_code = nullif($1, '') WHERE id = 's01'`, code)
}

func sweep01(t fataler, s *Store, action string) {
	exec(t, s, `SELECT compactor.start_sweep('default')`)
	if action != "" {
		exec(t, s, `SELECT compactor.steer_sweep('', (SELECT max(id) FROM compactor.sweeps), $1, '', 'ada')`, action)
	}
}

// heldStore returns a store with a due session s01 that the reconciler will find, under a leader.
func heldStore(t *testing.T) *Store {
	t.Helper()
	s := open(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	must2(s.Append(t.Context(), Key{Session: "s01"}, "model", []NewMessage{counted(user("m1", "x"), 11)}))(t)
	exec(t, s, `DELETE FROM compactor.outbox`)
	must(s.Scheduler.Lead(t.Context(), "scheduler", "a", time.Minute))(t)
	return s
}

func TestEachReasonIsFound(t *testing.T) {
	t.Parallel()
	for _, r := range HeldReasons {
		t.Run(r.Reason, func(t *testing.T) {
			t.Parallel()
			hold := holds[r.Reason]
			if hold == nil {
				t.Fatal("nothing makes this reason")
			}
			s := heldStore(t)
			if rows := must(s.Operator.HeldBack(t.Context(), ""))(t); len(rows) > 0 {
				t.Fatalf("held back before: %+v", rows)
			}
			hold(t, s)
			all := must(s.Operator.HeldBack(t.Context(), ""))(t)
			equal(t, []string{r.Reason}, heldReasons(t, all), "reasons")
			if diff := cmp.Diff([]string{r.Reason}, heldReasons(t, must(s.Operator.Explain(t.Context(), Key{Session: "s01"}))(t).Held)); diff != "" {
				t.Errorf("of the session (-want +got):\n%s", diff)
			}
			none(t, must(s.Operator.HeldBack(t.Context(), "other"))(t), "another tenant")
			unknown := []string{HeldNoLeader, "cooldown", "quarantined", "service_managed", "open_tool_loop", "mid_turn", "min_interval", "max_per_hour", "max_per_day"}
			if h := all[0]; (h.Since == nil) && !slices.Contains(unknown, r.Reason) { // without a run, here
				t.Errorf("%+v: since when?", h)
			}
		})
	}
	for reason := range holds {
		if heldIndex(reason) < 0 {
			t.Errorf("%s is not listed", reason)
		}
	}
}

// What began a cooldown is the reason, whatever run came to the session since, and the session is
// found again when it is over.
func TestARunThatDecidesNothingHidesNoReason(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]string{
		"none":                "",
		"too soon":            `status = 'skipped', outcome = 'cooldown', snapshot_seq = 99`,
		"paused":              `status = 'skipped', outcome = 'paused', snapshot_seq = 99`,
		"overtaken":           `status = 'skipped', outcome = 'stale', snapshot_seq = 99`,
		"cancelled":           `status = 'skipped', outcome = 'cancelled'`,
		"another one stands":  `status = 'skipped', outcome = 'superseded'`,
		"busy":                `status = 'skipped', outcome = 'busy'`,
		"lost":                `status = 'failed', outcome = 'not_attempted'`,
		"its worker died":     `status = 'failed', outcome = 'lease_expired'`,
		"a dry run":           `status = 'skipped', outcome = 'ineffective', snapshot_seq = 99, trigger = 'operator', options = '{"dry_run": true}'`,
		"of an application":   `status = 'skipped', outcome = 'no_summary', snapshot_seq = 99, trigger = 'application', steps = '[{"no_summary": "no_model"}]'`,
		"of an operator":      `status = 'skipped', outcome = 'no_summary', snapshot_seq = 99, trigger = 'operator', steps = '[{"no_summary": "no_model"}]'`,
		"of a recompaction":   `status = 'skipped', outcome = 'no_summary', snapshot_seq = 99, trigger = 'bulk'`,
		"a second such run":   `status = 'skipped', outcome = 'no_summary', snapshot_seq = 99, steps = '[{"no_summary": "spending_limit"}]'`,
		"a repair by the way": `trigger = 'application', kind = 'repair', status = 'applied', outcome = 'repaired', revision = 1, live_before = '{}', live_after = '{}'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := heldStore(t)
			holds["spending_limit"](t, s)
			exec(t, s, `UPDATE compactor.runs SET snapshot_seq = 99`)
			if run != "" {
				run01(run+`, ended_at = now()`)(t, s)
			}
			held := func(when string, want ...string) {
				t.Helper()
				equal(t, want, heldReasons(t, must(s.Operator.HeldBack(t.Context(), ""))(t)), "%s: reasons", when)
			}
			held("in the cooldown", "spending_limit")
			none(t, must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t), "found in the cooldown")
			exec(t, s, `UPDATE compactor.sessions SET cooldown_until = now()`)
			if name == "none" || name == "a second such run" || name == "a dry run" {
				held("at the limit", "spending_limit")
				none(t, must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t), "found at the limit")
			}
			exec(t, s, `DELETE FROM compactor.spending_limits`)
			held("after it")
			if ds := must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(t); len(ds) != 1 {
				t.Errorf("found after it: %v", ds)
			}
		})
	}
}

// A session whose last run failed is listed whatever run came to it since without looking at it.
func TestARunThatDecidesNothingHidesNoFailure(t *testing.T) {
	t.Parallel()
	s := heldStore(t)
	holds[HeldFailed](t, s)
	for _, run := range []string{`outcome = 'cooldown'`, `outcome = 'cancelled'`, `outcome = 'would_grow', options = '{"dry_run": true}'`} {
		run01(`status = 'skipped', ended_at = now(), `+run)(t, s)
		if rows := must(s.Operator.Errors(t.Context(), "", 9))(t); len(rows) != 1 || rows[0].Code != "internal" {
			t.Errorf("after %s: %+v", run, rows)
		}
	}
	run01(`status = 'skipped', ended_at = now(), outcome = 'unchanged'`)(t, s)
	none(t, must(s.Operator.Errors(t.Context(), "", 9))(t), "after a run that looked at it")
}

// Every reason that keeps due sessions from the relay, the reconciler and the workers is reported.
func TestNothingWaitsInSilence(t *testing.T) {
	t.Parallel()
	s := heldStore(t)
	var names []string
	for name := range holds {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(rt *rapid.T) {
		exec(rt, s, `TRUNCATE compactor.throttled, compactor.outbox, compactor.model_cooldowns, compactor.pauses; DELETE FROM compactor.runs; DELETE FROM compactor.sweep_tenants;
			DELETE FROM compactor.sweeps; DELETE FROM compactor.spending_limits; DELETE FROM compactor.leader; SELECT compactor.take_lead('scheduler', 'a', '1 minute')`)
		exec(rt, s, `UPDATE compactor.sessions s SET state = 'active', quarantine_reason = NULL, due = true, hold_seq = 0, loop_seq = NULL, open_calls = '{}', awaits_answer = false, cooldown_until = NULL, hold_code = NULL`)
		drawn := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID[string]).Draw(rt, "holds")
		// Those with an active run last: a session has one.
		active := func(name string) bool {
			return name == HeldPostponed || name == HeldWorkerGone || name == CodeReadBudget
		}
		slices.SortFunc(drawn, func(a, b string) int { return map[bool]int{true: 1}[active(a)] - map[bool]int{true: 1}[active(b)] })
		swept := false // two sweeps over the same sessions are refused
		for i, name := range drawn {
			sweep := strings.HasSuffix(name, "_sweep")
			if (i == 0 || !active(name) || !active(drawn[i-1])) && (!sweep || !swept) {
				holds[name](rt, s)
			}
			swept = swept || sweep
		}
		ended := rapid.SliceOfN(rapid.SampledFrom([]string{"ineffective", "stale", "paused", "min_interval", "cooldown", "no_summary", "cancelled"}), 0, 2).Draw(rt, "ended")
		for _, outcome := range ended {
			exec(rt, s, `INSERT INTO compactor.runs (sid, trigger, status, outcome, snapshot_seq, ended_at) SELECT sid, 'event', 'skipped', $1, 99, now() FROM compactor.sessions`, outcome)
		}
		if rapid.Bool().Draw(rt, "beyond a limit") {
			exec(rt, s, `UPDATE compactor.runs SET steps = '[{"no_summary": "spending_limit"}]' WHERE outcome = 'no_summary'`)
		}
		if rapid.Bool().Draw(rt, "cooled down") {
			exec(rt, s, `UPDATE compactor.sessions SET cooldown_until = now() WHERE cooldown_until IS NULL`)
		}
		if rapid.Bool().Draw(rt, "written") {
			exec(rt, s, `INSERT INTO compactor.outbox (sid) SELECT sid FROM compactor.sessions ON CONFLICT DO NOTHING`)
		}
		reasons := heldReasons(rt, must(s.Operator.HeldBack(t.Context(), ""))(rt))
		// The work of the scheduler.
		must(s.Scheduler.Relay(t.Context(), 0, 0, 10, time.Minute))(rt)
		must(s.Scheduler.Forgotten(t.Context(), 10, time.Minute))(rt)
		must(s.Scheduler.Deliver(t.Context(), 10, 10, time.Minute))(rt)
		due := one[bool](rt, s, `SELECT due FROM compactor.sessions`)
		delivered := one[bool](rt, s, `SELECT EXISTS (SELECT FROM compactor.runs WHERE status = 'queued' AND delivery > 0 AND deliver_at > waiting_since AND deliver_at < now() + interval '5 minutes')`)
		if due && !delivered && len(reasons) == 0 {
			rt.Fatalf("it waits in silence after %v, %v: %s", drawn, ended, fmt.Sprint(list[string](rt, s, `SELECT to_jsonb(r)::text FROM compactor.runs r`)))
		}
	})
}

// A text that differs between sessions is shown for one of them, by name.
func TestAReasonWithSeveralTextsNamesAnExample(t *testing.T) {
	t.Parallel()
	s := heldStore(t)
	quarantined := func() []string {
		var out []string
		for _, h := range must(s.Operator.HeldBack(t.Context(), ""))(t) {
			if h.Reason == StateQuarantined {
				out = append(out, fmt.Sprintf("%d: %s", h.Sessions, h.Detail))
			}
		}
		return out
	}
	must2(s.Append(t.Context(), Key{Session: "s02"}, "model", []NewMessage{counted(user("m1", "x"), 11)}))(t)
	exec(t, s, `UPDATE compactor.sessions SET state = 'quarantined', quarantine_reason = '2,000 tokens are left', due = false`)
	equal(t, []string{"2: 2,000 tokens are left"}, quarantined(), "of both")
	exec(t, s, `UPDATE compactor.sessions SET quarantine_reason = '1,000 tokens are left' WHERE id = 's02'`)
	equal(t, []string{"2: for example session s01 of tenant default: 2,000 tokens are left"}, quarantined(), "of each")
}

package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each time that is stored is one of these. corrected are those that correct_times moves when the clock of the database was set
// back. For facts nothing waits, or what reads them takes one that is yet to come as past; see the tests of what reads them.
var (
	corrected = strings.Fields(`leader.queue_away_since leader.workers_away_since model_cooldowns.set_at model_cooldowns.until outbox.first_at
	outbox.last_at policy_refresh.reached_at runs.deliver_at runs.waiting_since sessions.cooldown_until
	sessions.created_at sessions.due_since sessions.last_message_at sessions.next_check_at sessions.restored_at
	sessions.view_changed_at spending_minutes.minute sweeps.changed_at sweeps.ended_at sweeps.window_end throttled.since
	used_elsewhere.read_at`)
	facts = strings.Fields(`api_keys.created_at api_keys.expires_at api_keys.last_used_at api_keys.revoked_at
	archive_segments.created_at archive_segments.purged_at attachments.created_at bulk_operations.ended_at bulk_operations.requested_at cache_usage.last_at
	calibrations.updated_at cron_ticks.fired_at cron_ticks.tick disk_passes.moved_at erasures.confirmed_at
	erasures.ended_at erasures.requested_at installed_functions.installed_at leader.expires_at leader.renewed_at
	message_log.created_at operator_actions.done_at pauses.paused_at pauses.resumed_at
	policies.created_at policy_changes.changed_at
	policy_refresh.changed_at policy_versions.created_at runs.ended_at runs.lease_until runs.queued_at runs.started_at
	runs.written_at schedule_pauses.paused_at schedule_pauses.resumed_at compactor_migrations.tstamp
	spending_limits.changed_at spending_limits.full_at strategies.registered_at summary_calls.asked_at
	summary_calls.ended_at sweeps.started_at sweeps.tick`)
)

func TestEachStoredTimeHasADecision(t *testing.T) {
	s := fresh(t)
	columns := list[string](t, s, `SELECT DISTINCT c.table_name || '.' || c.column_name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'compactor' AND c.data_type LIKE 'timestamp%' AND t.table_type = 'BASE TABLE' AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = format('%I.%I', c.table_schema, c.table_name)::regclass)`)
	slices.Sort(columns)
	if diff := cmp.Diff(slices.Sorted(slices.Values(slices.Concat(corrected, facts))), columns); diff != "" {
		t.Errorf("stored times: when the clock was set back, what becomes of them? (-decided +stored):\n%s", diff)
	}
}

// stored makes rows with all times that correct_times moves, and others that a clock may delay.
func stored(t *testing.T, s *Store) {
	t.Helper()
	keys := dueSessions(t, s, 4)
	limitRuns(t, s, "default", 5)
	claim := start(t, s, keys[0])
	noError(t, s.Worker.Heartbeat(t.Context(), claim.Run, claim.Fence, time.Minute))
	request(t, s, keys[1], TriggerOperator)
	sweep := startSweep(t, s, "", time.Hour)
	noError(t, s.Operator.SteerSweep(t.Context(), sweep, SweepCancel, "", "ada", 0))
	exec(t, s, `INSERT INTO compactor.model_cooldowns (model, until, code) VALUES ('m', now() + interval '1 minute', 'timeout');
		INSERT INTO compactor.used_elsewhere (tenant, installation, database, started, calls, tokens, hour, day, read_at) VALUES ('default', 'i', 'd', 0, 0, 0, 0, 0, now());
		INSERT INTO compactor.throttled (sid, tenant, since) SELECT sid, tenant, now() FROM compactor.sessions WHERE id = 's03';
		UPDATE compactor.sessions SET cooldown_until = now() + interval '1 minute', next_check_at = now() + interval '1 minute', restored_at = now(), view_changed_at = now();
		UPDATE compactor.policy_refresh SET reached_at = now();
		UPDATE compactor.spending_limits SET full_at = now() + interval '1 second';
		UPDATE compactor.outbox SET first_at = now(), last_at = now()`)
	must(s.Scheduler.Lead(t.Context(), "scheduler", "a", 15*time.Second))(t)
	noError(t, s.Scheduler.NoteProcesses(t.Context(), "a", true, true))
}

// step moves all stored times, as if the clock had moved in the other direction.
func step(t *testing.T, s *Store, by time.Duration) {
	t.Helper()
	sets := map[string][]string{}
	for _, column := range slices.Concat(corrected, facts) {
		table, name, _ := strings.Cut(column, ".")
		if name != "tick" && name != "minute" && table != "message_log" && table != "compactor_migrations" && table != "archive_segments" && table != "policy_versions" {
			sets[table] = append(sets[table], fmt.Sprintf("%s = %[1]s + $1::interval", name))
		}
	}
	for table, set := range sets {
		exec(t, s, `UPDATE compactor.`+table+` SET `+strings.Join(set, ", "), by)
	}
}

// A day, to and fro: nothing waits longer than a lease.
func TestAStepOfTheClockHoldsNothingBack(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"back": 24 * time.Hour, "forward": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			stored(t, s)
			step(t, s, by)
			if !must(s.Scheduler.Lead(t.Context(), "scheduler", "b", 15*time.Second))(t) {
				t.Error("the lease of who died is not over")
			}
			for range 10 {
				if must(s.Scheduler.CorrectTimes(t.Context(), 1))(t) == 0 {
					break
				}
			}
			for _, column := range corrected {
				table, name, _ := strings.Cut(column, ".")
				const most = `now() + interval '2 minutes'`
				if n := one[int](t, s, `SELECT count(*) FROM compactor.`+table+` WHERE `+name+` > `+map[bool]string{true: `now() + interval '61 minutes'`, false: most}[column == "sweeps.window_end"]); n > 0 {
					t.Errorf("%s: %d of them are yet to come", column, n)
				}
			}
			equal(t, 0, must(s.Scheduler.CorrectTimes(t.Context(), 100))(t), "corrected again, by")
		})
	}
}

// Where a row alone is from another clock, as after a restore, it is not believed.
func TestNoStoredTimeIsBelievedThatNothingCouldHaveSet(t *testing.T) {
	s := fresh(t)
	stored(t, s)
	exec(t, s, `UPDATE compactor.leader SET expires_at = now() + interval '1 day'; UPDATE compactor.spending_limits SET full_at = now() + interval '1 day'; DELETE FROM compactor.used_elsewhere;
		UPDATE compactor.runs SET lease_until = now() + interval '1 day' WHERE status = 'running'; UPDATE compactor.runs SET deliver_at = now() + interval '1 day' WHERE status = 'queued';
		UPDATE compactor.model_cooldowns SET until = until + interval '10 days', set_at = set_at + interval '10 days'; UPDATE compactor.sessions SET cooldown_until = now() + interval '1 year';
		UPDATE compactor.sweeps SET ended_at = ended_at + interval '1 day'; UPDATE compactor.outbox SET first_at = now() + interval '1 day', last_at = now() + interval '1 day'`)
	if !must(s.Scheduler.Lead(t.Context(), "scheduler", "b", 15*time.Second))(t) {
		t.Error("no scheduler leads")
	}
	if n := one[int](t, s, `SELECT count(*) FROM compactor.startable_runs() WHERE most < 0`); n > 0 {
		t.Error("less than nothing may start")
	}
	if at := one[float64](t, s, `SELECT extract(epoch FROM compactor.full_at_of(l) - now()) FROM compactor.spending_limits l`); at > 1 {
		t.Errorf("no run of a tenant starts for %v s", at)
	}
	if n := must(s.Scheduler.BoundTimes(t.Context(), 2*time.Minute))(t); n < 5 {
		t.Errorf("%d rows were bounded", n)
	}
	if ds := must(s.Scheduler.Deliver(t.Context(), 10, 10, time.Minute))(t); len(ds) != 1 {
		t.Errorf("%d runs delivered, want that of the operator", len(ds))
	}
	if ds := must(s.Scheduler.Orphaned(t.Context(), 10, time.Minute))(t); len(ds) != 1 {
		t.Errorf("%d runs of workers that are gone, want 1", len(ds))
	}
	if c := must(s.Worker.Cooldowns().All(t.Context()))(t); len(c) != 0 {
		t.Errorf("models cool down: %v", c)
	}
	if n := one[int](t, s, `SELECT count(*) FROM compactor.holding_sweeps()`); n != 0 {
		t.Error("a sweep that is yet to end holds sessions")
	}
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.sessions WHERE cooldown_until > now()`), "sessions cool down for a year")
}

// While times are corrected, writers and the leader go on.
func TestTimesAreCorrectedBesideWriters(t *testing.T) {
	s := fresh(t)
	keys := dueSessions(t, s, 3)
	must(s.Scheduler.Lead(t.Context(), "scheduler", "a", time.Minute))(t)
	exec(t, s, `UPDATE compactor.leader SET clock_back = '1 day'; UPDATE compactor.outbox SET last_at = now() + interval '1 day'; UPDATE compactor.sessions SET due_since = now() + interval '1 day'`)
	tx := begin(t, s, `SELECT FROM compactor.sessions WHERE id = $1 FOR NO KEY UPDATE`, keys[1].Session)
	ended := make(chan error, 1)
	go func() {
		for {
			if back, err := s.Scheduler.CorrectTimes(t.Context(), 100); err != nil || back == 0 {
				ended <- err
				return
			}
		}
	}()
	waiting(t, s)
	if !must(s.Scheduler.Lead(t.Context(), "scheduler", "a", time.Minute))(t) {
		t.Error("the leader cannot renew its lease")
	}
	if _, err := tx.Exec(t.Context(), `UPDATE compactor.outbox SET gen = gen + 1, last_at = now() WHERE sid = (SELECT sid FROM compactor.sessions WHERE id = $1)`, keys[1].Session); err != nil {
		t.Errorf("the writer: %v", err)
	}
	noError(t, tx.Commit(t.Context()))
	wantError(t, <-ended, nil, "the correction")
	if n := one[int](t, s, `SELECT count(*) FROM compactor.sessions s JOIN compactor.outbox o USING (sid) WHERE greatest(due_since, last_at) > now()`); n > 0 {
		t.Errorf("%d sessions are not corrected", n)
	}
}

// correctAll corrects the times of all sessions.
func correctAll(t *testing.T, s *Store) {
	t.Helper()
	for back := time.Duration(1); back != 0; {
		back = must(s.Scheduler.CorrectTimes(t.Context(), 100))(t)
	}
}

// A worker that lives extends its lease by the new clock before the leader corrects times.
func TestACorrectionTakesNoRunFromALivingWorker(t *testing.T) {
	s := fresh(t)
	stored(t, s)
	exec(t, s, `UPDATE compactor.leader SET clock_back = '1 hour'`)
	correctAll(t, s)
	if ds := must(s.Scheduler.Orphaned(t.Context(), 10, time.Minute))(t); len(ds) != 0 {
		t.Errorf("%d runs of workers that are gone, want none", len(ds))
	}
}

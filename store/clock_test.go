package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What becomes of each stored time when the clock of the database is set back by a day. A column that is not here needs a
// decision.
const (
	fact      = "fact"      // nothing waits for it, or what reads it takes one that is yet to come as past; see the tests of what does
	corrected = "corrected" // correct_times moves it
)

var storedTimes = map[string]string{
	"archive_segments.created_at":      fact, // archived words are purged a day later
	"archive_segments.purged_at":       fact,
	"bulk_operations.ended_at":         fact,
	"bulk_operations.requested_at":     fact,
	"calibrations.updated_at":          fact,
	"cron_ticks.fired_at":              fact,
	"cron_ticks.tick":                  fact, // by the clock of the scheduler, which goes by the clock if it is behind
	"disk_passes.moved_at":             fact,
	"erasures.confirmed_at":            fact,
	"erasures.ended_at":                fact,
	"erasures.requested_at":            fact,
	"installed_functions.installed_at": fact,
	"leader.expires_at":                fact, // take_lead does not believe it
	"leader.queue_away_since":          corrected,
	"leader.renewed_at":                fact,
	"leader.workers_away_since":        corrected,
	"message_log.created_at":           fact, // what was said stays as it is
	"model_cooldowns.set_at":           corrected,
	"model_cooldowns.until":            corrected,
	"outbox.first_at":                  corrected,
	"outbox.last_at":                   corrected,
	"pauses.paused_at":                 fact,
	"pauses.resumed_at":                fact,
	"policies.created_at":              fact,
	"policy_changes.changed_at":        fact,
	"policy_refresh.changed_at":        fact, // awaits_policies does not believe it
	"policy_refresh.reached_at":        corrected,
	"policy_versions.created_at":       fact,
	"runs.deliver_at":                  corrected,
	"runs.ended_at":                    fact, // guards do not count those that are yet to come
	"runs.lease_until":                 fact, // lease_is_over does not believe it, and a living worker extends it
	"runs.queued_at":                   fact,
	"runs.started_at":                  fact,
	"runs.waiting_since":               corrected,
	"runs.written_at":                  fact,
	"schedule_pauses.paused_at":        fact,
	"schedule_pauses.resumed_at":       fact,
	"schema_migrations.tstamp":         fact,
	"sessions.cooldown_until":          corrected,
	"sessions.created_at":              corrected,
	"sessions.due_since":               corrected,
	"sessions.last_message_at":         corrected,
	"sessions.next_check_at":           corrected,
	"sessions.restored_at":             corrected,
	"sessions.view_changed_at":         corrected,
	"spending_limits.changed_at":       fact,
	"spending_limits.full_at":          fact,      // full_at_of does not believe it
	"spending_minutes.minute":          corrected, // deleted, and summed again
	"strategies.registered_at":         fact,
	"summary_calls.asked_at":           fact,
	"summary_calls.ended_at":           fact, // spending, as above
	"sweeps.changed_at":                corrected,
	"sweeps.ended_at":                  corrected,
	"sweeps.started_at":                fact,
	"sweeps.tick":                      fact,
	"sweeps.window_end":                corrected,
	"throttled.since":                  corrected,
	"used_elsewhere.read_at":           corrected,
}

func TestEachStoredTimeHasADecision(t *testing.T) {
	s := fresh(t)
	columns := list[string](t, s, `SELECT DISTINCT c.table_name || '.' || c.column_name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'compactor' AND c.data_type LIKE 'timestamp%' AND t.table_type = 'BASE TABLE' AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = format('%I.%I', c.table_schema, c.table_name)::regclass)`)
	slices.Sort(columns)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(storedTimes)), columns); diff != "" {
		t.Errorf("stored times: when the clock was set back, what becomes of them? (-decided +stored):\n%s", diff)
	}
}

// stored makes rows with all times that correct_times moves, and what else a clock may hold back.
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

// step moves all stored times, which is what a step of the clock in the other direction does.
func step(t *testing.T, s *Store, by time.Duration) {
	t.Helper()
	sets := map[string][]string{}
	for column := range storedTimes {
		table, name, _ := strings.Cut(column, ".")
		if name != "tick" && name != "minute" && table != "message_log" && table != "schema_migrations" && table != "archive_segments" && table != "policy_versions" {
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
			for column, decision := range storedTimes {
				table, name, _ := strings.Cut(column, ".")
				const most = `now() + interval '2 minutes'`
				if n := one[int](t, s, `SELECT count(*) FROM compactor.`+table+` WHERE `+name+` > `+map[bool]string{true: `now() + interval '61 minutes'`, false: most}[column == "sweeps.window_end"]); n > 0 && decision == corrected {
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
	corrected := make(chan error, 1)
	go func() {
		for {
			if back, err := s.Scheduler.CorrectTimes(t.Context(), 100); err != nil || back == 0 {
				corrected <- err
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
	wantError(t, <-corrected, nil, "the correction")
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

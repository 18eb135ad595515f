package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
)

// someSchedules is a variable with three schedules.
const someSchedules = `COMPACTOR_SCHEDULES={
  nightly: {cron: "30 2 * * *", timezone: Europe/Berlin, window: 4h, overlap: skip, catch_up: 6h, jitter: 5m},
  weekly-archive: {every: 12h, tenant: acme, pause_after_failure: true, canary: 0.05},
  hourly: {cron: "@hourly"}}`

func TestSchedulesReadWell(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	env := []string{"DATABASE_URL=" + p.config.Database.URL.Reveal(), "USER=ada", someSchedules}
	for _, sql := range []string{
		`INSERT INTO compactor.sweeps (entry, tick, status, due, queued, started_at, ended_at)
			VALUES ('nightly', '2026-01-31 01:30Z', 'done', 41200, 41188, '2026-01-31 01:30Z', '2026-01-31 02:00Z'),
				('hourly', '2026-01-31 10:00Z', 'open', 300, 20, '2026-01-31 10:00Z', NULL)`,
		`INSERT INTO compactor.cron_ticks (entry, tick, fired_by, outcome, sweep)
			VALUES ('nightly', '2026-01-31 01:30Z', 'host-1', 'fired', 1), ('hourly', '2026-01-31 11:00Z', 'host-1', 'coalesced', 2),
				('weekly-archive', '2026-01-31 00:00Z', 'host-1', 'paused', NULL), ('old-eu', '2025-12-31 00:00Z', 'host-1', 'missed', NULL)`,
		`INSERT INTO compactor.schedule_pauses (schedule, note, requested_by, paused_at)
			VALUES ('weekly-archive', 'sweep 7 stopped: too many runs failed', '', '2026-01-30 12:01Z'), ('old-eu', 'moved', 'cli:bob', '2025-12-31 00:00Z')`,
	} {
		if _, err := p.db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	show := func(args ...string) {
		r := invoke(t, env, append([]string{"schedule"}, args...)...).want(t, 0)
		fmt.Fprintf(&out, "$ compactor schedule %s\n%s%s\n", strings.Join(args, " "), r.stdout, r.stderr)
	}
	show("list")
	show("show", "nightly")
	show("show", "weekly-archive")
	show("show", "hourly")
	golden(t, "schedule", wantWidth(t, out.String()))

	rows := decode[struct{ Schedules []scheduler.ScheduleRow }](t, invoke(t, env, "schedule", "list", "--json").want(t, 0)).Schedules
	if len(rows) != 4 || rows[1].Name != "nightly" || len(rows[1].Next) != 5 || len(rows[1].ClockChanges) != 2 || rows[1].Last.Sweep != 1 ||
		rows[2].Configured || rows[2].PausedBy != "cli:bob" || !rows[3].Configured || rows[3].PausedAt == nil {
		t.Errorf("%+v", rows)
	}
	invoke(t, env, "doctor").want(t, exitFindings, "schedule nightly", "30 2 * * * (Europe/Berlin): Sun 2026-02-01 02:30 CET",
		"2026-03-29 02:30 is skipped", "old-eu is paused since 2025-12-31 00:00:00Z by cli:bob: moved (not configured)")
	invoke(t, env, "schedule", "show", "old-eu").want(t, exitNotFound, `schedule "old-eu" is not configured: want hourly, nightly, weekly-archive`)
	invoke(t, env, "schedule", "resume", "old-eu").want(t, 0, "old-eu is not paused, and not configured")
	invoke(t, env, "schedule", "pause", "missing").want(t, exitNotFound, "is not configured")
}

func TestAnOperatorPausesAndRunsASchedule(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	dsn := p.config.Database.URL.Reveal()
	env := []string{"DATABASE_URL=" + roleLogin(t, dsn, "compactor_operator"), "USER=ada", someSchedules}
	reader := append([]string{"DATABASE_URL=" + roleLogin(t, dsn, "compactor_reader")}, env[1:]...)
	invoke(t, reader, "schedule", "list").want(t, 0, "nightly")
	for _, args := range [][]string{{"pause", "nightly"}, {"run", "nightly"}, {"backfill", "nightly", "--from=72h", "--yes"}} {
		if r := invoke(t, reader, append([]string{"schedule"}, args...)...); r.code == 0 {
			t.Errorf("a reader can %v", args)
		}
	}
	invoke(t, env, "schedule", "pause", "weekly-archive", "--note=provider is down").want(t, 0, "weekly-archive is paused since", "by cli:ada: provider is down")
	fired := func(name string, at time.Time) string {
		t.Helper()
		outcome, _, err := p.store.Scheduler.Fire(t.Context(), store.Tick{Entry: name, At: at})
		if err != nil {
			t.Fatal(err)
		}
		return outcome
	}
	if got := fired("weekly-archive", time.Now()); got != store.TickPaused {
		t.Errorf("a tick of it is %q", got)
	}
	invoke(t, env, "schedule", "run", "weekly-archive").want(t, 0, "sweep 1 is open")
	invoke(t, env, "sweep", "show", "1").want(t, 0, "1 (weekly-archive), tenant acme")
	invoke(t, env, "schedule", "resume", "weekly-archive").want(t, 0, "weekly-archive is in force: next 2026-02-01 00:00 UTC")
	invoke(t, env, "schedule", "resume", "weekly-archive").want(t, exitNotFound, "schedule weekly-archive is not paused", "`compactor schedule list`")
	// It skips while a sweep is open.
	invoke(t, env, "schedule", "run", "nightly").want(t, 0, "sweep 2 is open")
	if _, err := p.db.Exec(t.Context(), `UPDATE compactor.sweeps SET due = 5`); err != nil {
		t.Fatal(err)
	}
	later := &Env{Environ: env, now: func() time.Time { return time.Date(2026, time.January, 31, 12, 1, 0, 0, time.UTC) }}
	invokeWith(t, later, "schedule", "run", "nightly").want(t, exitRefused, "sweep 2 is not done, and overlap of schedule nightly is skip")
	if p.number(`SELECT count(*) FROM compactor.sweeps WHERE window_end = '2026-01-31 16:00Z' AND entry = 'nightly'`) != 1 {
		t.Error("its window is not that of the schedule")
	}
}

func TestABackfillIsOneSweepForManyTicks(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	env := []string{"DATABASE_URL=" + p.config.Database.URL.Reveal(), "USER=ada", someSchedules}
	if _, err := p.db.Exec(t.Context(), `INSERT INTO compactor.cron_ticks (entry, tick, fired_by, outcome) VALUES
		('nightly', '2026-01-29 01:30Z', 'host-1', 'fired'), ('nightly', '2026-01-30 01:30Z', 'host-1', 'paused')`); err != nil {
		t.Fatal(err)
	}
	p.fleet(4, "acme")
	var out strings.Builder
	show := func(code int, stdin string, args ...string) {
		e := &Env{Environ: env, Stdin: strings.NewReader(stdin), asks: true}
		r := invokeWith(t, e, append([]string{"schedule", "backfill"}, args...)...).want(t, code)
		fmt.Fprintf(&out, "$ compactor schedule backfill %s\n%s\n", strings.Join(args, " "), r.stdout)
	}
	show(0, "", "nightly", "--from=2026-01-26", "--dry-run")
	show(0, "n\n", "nightly", "--from=2026-01-26")
	if n := p.number(`SELECT count(*) FROM compactor.sweeps`); n != 0 {
		t.Errorf("%d sweeps before the answer was yes", n)
	}
	show(0, "y\n", "nightly", "--from=2026-01-26")
	show(0, "", "nightly", "--from=2026-01-26")
	golden(t, "schedule_backfill", wantWidth(t, out.String()))
	if n := p.number(`SELECT count(*) FROM compactor.cron_ticks WHERE outcome IN ('fired', 'coalesced')`); n != 6 {
		t.Errorf("%d ticks, want 6", n)
	}
	if n := p.number(`SELECT count(*) FROM compactor.sweeps`); n != 1 {
		t.Errorf("%d sweeps, want one for all", n)
	}
	got := decode[struct{ Fired int }](t, invoke(t, env, "schedule", "backfill", "hourly", "--from=3h", "--to=2026-01-31T11:30:00Z", "--yes", "--json").want(t, 0))
	if got.Fired != 3 { // 9, 10 and 11 o'clock
		t.Errorf("%+v", got)
	}
	invoke(t, env, "schedule", "backfill", "nightly").want(t, exitUsage, "--from")
	invoke(t, env, "schedule", "backfill", "nightly", "--from=2026-02-01").want(t, exitUsage, "want a time in the past, and one behind it up to now")
	invoke(t, env, "schedule", "backfill", "hourly", "--from=2020-01-01").want(t, exitUsage, "more than 10,000 ticks: want a shorter time")
	invoke(t, env, "schedule", "backfill", "nightly", "--from=2025-10-01").want(t, exitUsage, "want a time in the last 90 days")
	invoke(t, env, "schedule", "backfill", "hourly", "--from=12h").want(t, exitUsage, "not confirmed")
}

func TestEveryOutcomeOfATickHasAText(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	var check string
	if err := p.db.QueryRow(t.Context(), `SELECT string_agg(pg_get_constraintdef(oid), '') FROM pg_constraint WHERE conname = 'cron_ticks_outcome_check'`).Scan(&check); err != nil {
		t.Fatal(err)
	}
	outcomes := regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(check, -1)
	for _, m := range outcomes {
		if lastText(store.TickRow{Outcome: m[1]}) == "" {
			t.Errorf("%s has no text", m[1])
		}
	}
	if len(outcomes) != 5 {
		t.Errorf("outcomes are %v", outcomes)
	}
}

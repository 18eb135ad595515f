package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
)

// wantWidth checks that a result fits a terminal.
func wantWidth(t *testing.T, text string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	return text
}

func TestSweepsReadWell(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	env := []string{"DATABASE_URL=" + p.config.Database.URL.Reveal(), "USER=ada"}
	invoke(t, env, "sweep", "list").want(t, 0, "no sweeps")
	p.fleet(400, "acme", "globex")
	// The state of some hours of work, as the scheduler leaves it.
	for _, sql := range []string{
		`INSERT INTO compactor.sweeps (entry, tick, status, due, queued, started_at, ended_at, changed_at, worked, left_out)
			VALUES ('nightly', '2026-01-30 03:00Z', 'done', 41200, 41188, '2026-01-30 03:00Z', '2026-01-30 03:01Z', '2026-01-30 03:01Z', '30 seconds', 12),
				('nightly', '2026-01-31 03:00Z', 'stopped', 300, 200, '2026-01-31 03:00Z', '2026-01-31 05:00Z', now() + interval '1 hour', '20 seconds', 3)`,
		`UPDATE compactor.sweeps SET reason = 'window_ended', window_end = '2026-01-31 05:00Z' WHERE id = 2`,
		`INSERT INTO compactor.sweep_tenants (sweep, tenant, due, seen) VALUES (2, 'acme', 200, 103)`,
		`INSERT INTO compactor.runs (sid, trigger, sweep, status, outcome, tokens_before, tokens_after, ended_at, revision, live_before, live_after)
			SELECT sid, 'nightly', 2, CASE WHEN n % 40 = 0 THEN 'failed' WHEN n % 8 = 0 THEN 'skipped' ELSE 'applied' END,
				CASE WHEN n % 40 = 0 THEN 'timeout' WHEN n % 8 = 0 THEN 'below_threshold' ELSE 'above_target' END, 1300, CASE WHEN n % 8 = 0 THEN 1300 ELSE 300 END, '2026-01-30 03:01Z', 1, '{}', '{}'
			FROM (SELECT sid, row_number() OVER () AS n FROM compactor.sessions ORDER BY sid LIMIT 200) s WHERE n <= 180`,
		`INSERT INTO compactor.runs (sid, trigger, sweep, status) SELECT sid, 'nightly', 2, CASE WHEN sid % 10 = 0 THEN 'running' ELSE 'queued' END
			FROM (SELECT sid, row_number() OVER () AS n FROM compactor.sessions ORDER BY sid LIMIT 200) s WHERE n > 180`,
	} {
		if _, err := p.db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	show := func(args ...string) {
		r := invoke(t, env, append([]string{"sweep"}, args...)...).want(t, 0)
		fmt.Fprintf(&out, "$ compactor sweep %s\n%s%s\n", strings.Join(args, " "), r.stdout, r.stderr)
	}
	show("list")
	show("show", "2")
	show("resume", "2", "--for=1h", "--note=the rest by day")
	show("pause", "2", "--note=the provider is down")
	if _, err := p.db.Exec(t.Context(), `UPDATE compactor.sweeps SET worked = '20 seconds', changed_at = now() + interval '1 hour' WHERE id = 2`); err != nil {
		t.Fatal(err)
	}
	show("show", "2")
	show("cancel", "2")
	show("start", "--all-tenants", "--dry-run")
	if err := p.store.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "acme"}, "", ""); err != nil {
		t.Fatal(err)
	}
	// The first sweep gets runs, of which some called a model.
	if _, err := p.db.Exec(t.Context(), `WITH r AS (UPDATE compactor.runs SET sweep = 1 WHERE id <= 60 RETURNING id, sid)
		INSERT INTO compactor.summary_calls (key, sid, run, fence, state, prompt_hash, cost_micros, ended_at)
		SELECT 'k' || id, sid, id, 1, 'answered', '', 20000, now() FROM r WHERE id <= 30`); err != nil {
		t.Fatal(err)
	}
	show("start", "--all-tenants", "--dry-run")
	if err := p.store.Operator.ResumeRuns(t.Context(), store.PauseScope{Tenant: "acme"}, ""); err != nil {
		t.Fatal(err)
	}
	show("start", "--tenant=acme", "--note=after the import")
	show("show", "3")
	text := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`).ReplaceAllStringFunc(out.String(), func(s string) string {
		if strings.HasPrefix(s, "2026-01-3") {
			return s
		}
		return "TIME"
	})
	golden(t, "sweep", wantWidth(t, text))

	got := decode[store.SweepReport](t, invoke(t, env, "sweep", "show", "1", "--json").want(t, 0))
	if got.ID != 1 || *got.Due != 41200 || got.LeftOut != 12 || got.SecondsLeft == nil || *got.SecondsLeft != 0 {
		t.Errorf("%+v", got)
	}
	if got := decode[struct{ Sweeps []store.SweepReport }](t, invoke(t, env, "sweep", "list", "--limit=2", "--json").want(t, 0)).Sweeps; len(got) != 2 || got[0].Note != "after the import" {
		t.Errorf("%+v", got)
	}
	invoke(t, env, "sweep", "show", "9").want(t, exitNotFound, "sweep 9")
	invoke(t, env, "sweep", "pause", "9").want(t, exitNotFound, "sweep 9 does not exist")
	invoke(t, env, "sweep", "resume", "1").want(t, exitRefused, "sweep 1 is done: resume is for one that is paused or stopped")
	invoke(t, env, "sweep", "show", "0").want(t, exitUsage, "want the number of a sweep")
	invoke(t, env, "sweep", "start", "--stop-at=2").want(t, exitUsage, "--stop-at: 2: want a share above 0, up to 1")
	invoke(t, env, "sweep", "start", "--canary=2").want(t, exitUsage, "--canary: 2: want a share up to 1, or 0 for none")
	invoke(t, env, "sweep", "start", "--for=-1s").want(t, exitUsage, "--for: -1s: want 1s to 8760h")
}

func TestACancelledSweepSaysWhatItHolds(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	env := []string{"DATABASE_URL=" + p.config.Database.URL.Reveal(), "USER=ada"}
	p.fleet(20, "acme", "globex")
	if _, err := p.db.Exec(t.Context(), `DELETE FROM compactor.outbox`); err != nil {
		t.Fatal(err)
	}
	invoke(t, env, "sweep", "start", "--all-tenants").want(t, 0)
	invoke(t, env, "sweep", "release", "1").want(t, exitRefused, "sweep 1 is open: release is for one that is stopped or cancelled")
	invoke(t, env, "sweep", "cancel", "1").want(t, 0, "20 sessions that were due wait until ", "to have them run now:\n`compactor sweep release 1`")
	invoke(t, env, "stats").want(t, 0, "stopped_sweep", "sweep 1 is cancelled by cli:ada", "ended by: compactor sweep release 1")
	invoke(t, env, "sweep", "show", "1").want(t, 0, "holds back", "compactor sweep release 1")
	if got := decode[store.SweepReport](t, invoke(t, env, "sweep", "show", "1", "--json").want(t, 0)); got.HeldBack == nil || got.HeldBack.Sessions != 20 {
		t.Errorf("%+v", got)
	}
	invoke(t, env, "sweep", "release", "1").want(t, 0, "it holds nothing back")
	if out := invoke(t, env, "stats").want(t, 0).stdout; strings.Contains(out, "stopped_sweep") {
		t.Errorf("released:\n%s", out)
	}
}

func TestAnOperatorsSweepIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	env := []string{"DATABASE_URL=" + p.config.Database.URL.Reveal(), "USER=ada"}
	p.fleet(60, "acme", "globex")
	p.start(schedules, works)
	id := decode[store.SweepReport](t, invoke(t, env, "sweep", "start", "--tenant=acme", "--canary=0.05", "--json").want(t, 0)).ID
	invoke(t, env, "sweep", "show", fmt.Sprint(id)).want(t, 0, "canary")
	r := invoke(t, env, "sweep", "watch", fmt.Sprint(id), "--interval=20ms").want(t, 0, "done", "applied", "tenant acme")
	if !strings.Contains(r.stdout, "30 due, 0 to go") {
		t.Errorf("it ends with:\n%s", r.stdout)
	}
	p.await("the others are found", func() bool {
		return p.number(`SELECT count(*) FROM compactor.sessions WHERE due`) == 0
	})
	runs, err := p.store.Operator.Runs(t.Context(), store.RunFilter{Sweep: id, Limit: 100})
	if err != nil || len(runs) != 30 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	for _, r := range runs {
		if r.Tenant != "acme" || r.TokensAfter > 300 {
			t.Errorf("%+v", r)
		}
	}
}

package cli

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
)

func TestStats(t *testing.T) {
	t.Parallel()
	db := database(t)
	invoke(t, db, "stats").want(t, 0, "held back: nothing\n", "due         0 sessions\n", "last day: 0 runs")
	for _, tenant := range []string{"acme", "globex", "initech"} {
		invoke(t, db, "import", file(t, "s.jsonl", conversation("chat", 8)), "--tenant", tenant).want(t, 0)
	}
	conn, err := pgx.Connect(t.Context(), strings.TrimPrefix(db[0], "DATABASE_URL="))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, statement := range []string{
		`UPDATE compactor.sessions SET due = true, live_tokens = 1000 * sid, due_tokens = 600, created_at = now() - interval '3 hours 10 minutes 40 seconds',
			last_message_at = now() - interval '1 day'`,
		`UPDATE compactor.sessions SET cooldown_until = now() + interval '1 hour 20 seconds' WHERE tenant = 'initech'`,
		`UPDATE compactor.sessions SET due_since = now() - interval '2 hours 10 minutes 40 seconds'`,
		`INSERT INTO compactor.outbox (sid, first_at) SELECT sid, now() - interval '2 hours 20 minutes 40 seconds' FROM compactor.sessions WHERE tenant = 'acme'`,
		`INSERT INTO compactor.sweeps (entry, tick, started_at, queued, due)
			VALUES ('nightly', now(), now() - interval '1 hour 5 minutes 40 seconds', 1200, 1203)`,
		`INSERT INTO compactor.sweep_tenants (sweep, tenant, due, seen) SELECT id, 'acme', 1203, 1200 FROM compactor.sweeps`,
		`INSERT INTO compactor.runs (sid, trigger, queued_at) SELECT sid, 'event', now() - interval '1 hour 5 minutes 40 seconds' FROM compactor.sessions`,
		`INSERT INTO compactor.runs (sid, trigger, status, outcome, ended_at, tokens_before, tokens_after, total_us, revision, live_before, live_after)
			SELECT sid, trigger, status, outcome, now() - ago::interval, before, after, took, 1, '{}', '{}'
			FROM compactor.sessions, (VALUES ('event', 'applied', 'applied', '1 minute', 48000, 21000, 3500), ('nightly', 'skipped', 'below_threshold', '2 hours', 900, 900, 800),
				('nightly', 'applied', 'floor_above_trigger', '2 hours', 128000, 100000, 41000000), ('operator', 'failed', 'strategy_panicked', '2 hours', 900, 900, 300)
			) r (trigger, status, outcome, ago, before, after, took)`,
		`INSERT INTO compactor.summary_calls (key, sid, run, fence, state, code, prompt_hash, model, input_tokens, output_tokens, cost_micros, ended_at)
			SELECT id || state, sid, id, 1, state, 'code', '', model, input, 1200, cost, now() - interval '1 minute'
			FROM compactor.runs, (VALUES ('answered', 'gpt-5-mini', 40000, 12345), ('rejected', 'gpt-5-mini', 40000, 12345), ('failed', NULL, 0, 0)) c (state, model, input, cost)
			WHERE outcome = 'applied'`,
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	out := invoke(t, db, "stats", "--tenants=2").want(t, 0).stdout
	golden(t, "stats", out)
	for line := range strings.Lines(out) {
		if len([]rune(line)) > 81 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
	invoke(t, db, "runs", "--all-tenants", "--outcome=applied").want(t, 0, "COST  CALLS  MODEL", "0.0247      3  gpt-5-mini")
	got := decode[statsJSON](t, invoke(t, db, "stats", "--tenants=2", "--json").want(t, 0))
	if got.Due.Sessions != 3 || got.Due.Debt != 4200 || len(got.Fleet.Tenants) != 3 || got.Fleet.Active[0].Queued != 3 ||
		len(got.LastHour.Outcomes) != 1 || len(got.LastDay.Outcomes) != 4 || got.LastDay.Models[0].CostMicros != 6*12345 {
		t.Errorf("%+v", got)
	}
	if got.HeldBack[0].Reason != store.HeldNoLeader || got.HeldBack[0].Decided || got.HeldBack[1].Reason != "cooldown" || !got.HeldBack[1].Decided {
		t.Errorf("held back: %+v", got.HeldBack)
	}
	// Of one tenant, nothing of another counts.
	invoke(t, db, "stats", "--tenant=acme").want(t, 0, "tenant acme\n", "no_leader  1 session", "due            1 session, the oldest", "over start     400 tokens",
		"no run yet     1 session", "queued         1 run,", "sweep nightly  0 runs queued, 3 sessions to come", "last hour: 1 run,", "last day: 4 runs", "gpt-5-mini      2")
	for _, tenant := range []string{"globex", "unknown"} {
		of := decode[statsJSON](t, invoke(t, db, "stats", "--tenant="+tenant, "--json").want(t, 0))
		n := map[string]int64{"globex": 1}[tenant]
		if of.Tenant != tenant || of.Due.Sessions != n || of.Fleet.Outbox != 0 || int64(len(of.Fleet.Active)) != n || int64(len(of.LastHour.Outcomes)) != n ||
			of.Fleet.Sweeps[0].Queued+of.Fleet.Sweeps[0].Left != 0 || int64(len(of.HeldBack)) != n || int64(len(of.LastDay.Models)) != 2*n {
			t.Errorf("tenant %s: %+v", tenant, of)
		}
	}
	invoke(t, db, "doctor").want(t, exitFindings, "✗ held back: no_leader: 3 sessions", "! held back: cooldown: 1 session")
	invoke(t, db, "stats", "--tenants=-1").want(t, exitUsage, "--tenants: -1: want 0 to 1000")
	reader := []string{"DATABASE_URL=" + roleLogin(t, db[0][len("DATABASE_URL="):], "compactor_reader")}
	if r := invoke(t, reader, "stats", "--tenants=2"); r.code != 0 || r.stdout != out {
		t.Errorf("as a reader: %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/chat"
)

func TestMigratingAtOnceOrAgainIsMigratingOnce(t *testing.T) {
	t.Parallel()
	for name, pooled := range map[string]bool{"directly": false, "through PgBouncer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := storetest.DB(t, "", nil)
			if pooled {
				dsn = storetest.PgBouncer(t, dsn)
			}
			before := must(migrations.Status(t.Context(), dsn, migrations.DefaultSchema))(t)
			for _, m := range before {
				if !m.AppliedAt.IsZero() {
					t.Errorf("%s is applied in an empty database", m.Name)
				}
			}
			var group sync.WaitGroup
			var applied atomic.Int64
			for range 6 { // more than the pooler has connections
				group.Go(func() {
					done, err := migrations.Up(context.Background(), dsn, migrations.DefaultSchema)
					if err != nil {
						t.Error(err)
					}
					applied.Add(int64(len(done)))
				})
			}
			group.Wait()
			equal(t, int64(len(before)), applied.Load(), "migrations that were applied")
			if again := must(migrations.Up(t.Context(), dsn, migrations.DefaultSchema))(t); len(again) != 0 {
				t.Errorf("applied %v again", again)
			}
			for i, m := range must(migrations.Status(t.Context(), dsn, migrations.DefaultSchema))(t) {
				if want := int64(i+1) % int64(len(before)); m.AppliedAt.IsZero() || m.Version != want { // the functions are last
					t.Errorf("status of %s: version %d, applied at %v", m.Name, m.Version, m.AppliedAt)
				}
			}
		})
	}
}

func TestASchemaFromBeforeTheFirstReleaseIsRefused(t *testing.T) {
	t.Parallel()
	dsn := storetest.DB(t, "", nil)
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	defer conn.Close(context.WithoutCancel(t.Context()))
	must(conn.Exec(t.Context(), `CREATE SCHEMA compactor; CREATE TABLE compactor.schema_version (version_id bigint); CREATE TABLE compactor.installed_functions (hash text, installed_at timestamptz); INSERT INTO compactor.schema_version VALUES (0), (44)`))(t)
	if done, err := migrations.Up(t.Context(), dsn, migrations.DefaultSchema); len(done) > 0 || err == nil ||
		!strings.Contains(err.Error(), "schema compactor was made before the first release (version 44") || !strings.Contains(err.Error(), "compactor export") {
		t.Errorf("migrate up: %v, %v", done, err)
	}
	for _, m := range must(migrations.Status(t.Context(), dsn, migrations.DefaultSchema))(t) {
		if !m.AppliedAt.IsZero() {
			t.Errorf("%s is applied", m.Name)
		}
	}
	s := must(Open(t.Context(), Config{URL: dsn}))(t)
	t.Cleanup(s.Close)
	wantError(t, s.CheckSchema(t.Context()), ErrNotMigrated, "check")
	must(conn.Exec(t.Context(), `CREATE SCHEMA another; CREATE TABLE another.schema_version (of text); CREATE TABLE another.schema_migrations (of text)`))(t)
	must(migrations.Up(t.Context(), dsn, "another"))(t) // beside the tables of other programs
}

func TestEverythingWorksInASchemaOfAnotherName(t *testing.T) {
	t.Parallel()
	dsn := storetest.DB(t, "", nil)
	const schema = "my_sessions2"
	must(migrations.Up(t.Context(), dsn, schema))(t)
	s := must(Open(t.Context(), Config{URL: dsn, Schema: schema}))(t)
	t.Cleanup(s.Close)
	if n := one[int](t, s, `SELECT count(*) FROM pg_namespace WHERE nspname = 'compactor'`); n != 0 {
		t.Fatal("there is a schema compactor too")
	}
	thresholds(t, s, Threshold{"", 5, 0, false, Counts{}})
	k := Key{Session: "s"}
	add(t, s, k, append(talk("m", 6), call("c", "x"), result("r", "x", "y"))...)
	must2(s.Import(t.Context(), k, "", talk("n", 2)))(t)
	must2(s.AppendOnce(t.Context(), k, "", "key", []NewMessage{user("", "x")}))(t)
	must2(s.AppendFormat(t.Context(), k, "", "anthropic", "key2", []byte(`{"role":"user","content":"x"}`)))(t)
	noError(t, s.SetModel(t.Context(), k, "gpt-4o"))
	noError(t, s.Worker.RegisterStrategies(t.Context(), map[string][]string{"truncation": {}}))
	must(s.ReportUsage(t.Context(), k, 50, 0))(t)
	noError(t, errors.Join(s.Pin(t.Context(), k, "m1"), s.Unpin(t.Context(), k, "m1"), s.Worker.EnsurePolicy(t.Context(), "p", "", 1)))
	policy := "p"
	c := start(t, s, k)
	must(s.Worker.Log(t.Context(), c.Session.SID, 9))(t)
	must(s.Worker.Messages(t.Context(), c.Session.SID, []chat.Seq{1}))(t)
	noError(t, s.Worker.Heartbeat(t.Context(), c.Run, c.Fence, time.Minute))
	ch := Change{
		Plan: summarize(span(1, 2), "x"), SnapshotSeq: c.Session.LastSeq, Revision: c.Session.Revision,
		Delta:  Delta{-2, -int64(c.View[0].Tokens + c.View[1].Tokens), -int64(c.View[0].Tokens + c.View[1].Tokens)},
		Ledger: Ledger{Kind: "compact", Outcome: "applied", PolicyHash: &policy}, PostRunState: PostRunState{DueTokens: 1},
	}
	must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
	undo := must(s.Undo(t.Context(), k, c.Run, false, ""))(t)
	must(s.Undo(t.Context(), k, undo, false, ""))(t)
	view, revision := must2(s.View(t.Context(), k))(t)
	must(s.Replace(t.Context(), k, revision, []NewMessage{{Message: view[0].Message}, user("z", "z")}, ""))(t)
	exec(t, s, `SELECT my_sessions2.replace_view(NULL, 's', revision, messages, '', seen) FROM my_sessions2.view_with_revision(NULL, 's')`)
	exec(t, s, `SELECT my_sessions2.wait_run(NULL, 's', $1)`, c.Run)
	must(s.WaitRun(t.Context(), c.Run))(t)
	must(s.All(t.Context(), k))(t)
	must(s.Operator.ViewMetas(t.Context(), c.Session.SID))(t)
	run := request(t, s, k, TriggerApplication)
	c = must(s.Worker.Claim(t.Context(), run, "w", time.Minute))(t)
	noError(t, s.Worker.Requeue(t.Context(), run, c.Fence, 0, true, "x", "y"))
	must(s.Worker.Snooze(t.Context(), run, 0, "x"))(t)
	must(s.Scheduler.Undelivered(t.Context(), 9, time.Minute))(t)
	must(s.Scheduler.Orphaned(t.Context(), 9, time.Minute))(t)
	c = must(s.Worker.Claim(t.Context(), run, "w", time.Minute))(t)
	noError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "x"}, &PostRunState{}))
	must(s.Scheduler.Relay(t.Context(), 0, 0, 9, time.Minute))(t)
	must(s.Scheduler.Forgotten(t.Context(), 9, time.Minute))(t)
	must(s.Scheduler.FireTick(t.Context(), "e", time.Now(), "x"))(t)
	noError(t, s.Operator.PauseSchedule(t.Context(), "e", "", ""))
	must(s.Operator.Schedules(t.Context(), []string{"e"}))(t)
	noError(t, s.Operator.ResumeSchedule(t.Context(), "e", ""))
	must(s.Operator.FiredTicks(t.Context(), "e", time.Now(), time.Now()))(t)
	must2(s.Scheduler.SweepPage(t.Context(), 1, 9, time.Minute))(t)
	noError(t, s.Operator.SteerSweep(t.Context(), 1, SweepCancel, "", "", 0))
	noError(t, s.Operator.SteerSweep(t.Context(), must(s.Operator.StartSweep(t.Context(), "", time.Hour, "", ""))(t), SweepCancel, "", "", 0))
	must(s.Operator.Sweeps(t.Context(), 9))(t)
	must(s.Operator.SweepOutcomes(t.Context(), 1))(t)
	noError(t, s.Operator.PauseRuns(t.Context(), PauseScope{"other", "gpt", "default"}, "", ""))
	must(s.Operator.PausesOf(t.Context(), k))(t)
	noError(t, s.Operator.ResumeRuns(t.Context(), PauseScope{"other", "gpt", "default"}, ""))
	bulk := must(s.Operator.StartBulkCompact(t.Context(), "", RunMatch{Outcome: "x"}, Options{From: "view"}, 0, "", ""))(t)
	must2(s.Scheduler.BulkCompactPage(t.Context(), bulk, 9, time.Minute))(t)
	must(s.Operator.BulkOutcomes(t.Context(), bulk))(t)
	must(s.Scheduler.RedeliverAll(t.Context()))(t)
	must(s.Scheduler.Lead(t.Context(), "r", "h", time.Minute))(t)
	thresholds(t, s, Threshold{"", 6, 0, false, Counts{}})
	must2(s.Scheduler.RefreshSessions(t.Context(), 9))(t)
	must(s.Operator.ChangePolicies(t.Context(), []PolicyChange{{Name: "p", Hash: "h", FleetHash: "h", Spec: []byte(`{}`), Thresholds: []Threshold{{DueTokens: 7}}}}, "x"))(t)
	must(s.Operator.PreviewPolicies(t.Context(), []PolicyChange{{Name: "p", Expect: 1}}))(t)
	noError(t, errors.Join(s.Scheduler.SaveThresholds(t.Context(), "p", 1, "h", []Threshold{{DueTokens: 8}}), s.SetPolicy(t.Context(), k, "p"), s.SetLabels(t.Context(), k, map[string]string{"a": "b"}), s.SetParent(t.Context(), Key{Session: "child"}, "s")))
	must(s.Fork(t.Context(), k, "fork", ""))(t)
	must(s.Operator.Explain(t.Context(), Key{Session: "child"}))(t)
	must(s.Operator.Sample(t.Context(), DefaultTenant, map[string]string{"a": "b"}, 9))(t)
	must(s.Policy(t.Context(), "p", 0))(t)
	must(s.Policies(t.Context(), ""))(t)
	must(s.Operator.PolicyHistory(t.Context(), "p"))(t)
	must(s.Operator.PolicySwitches(t.Context(), "p"))(t)
	must(s.Operator.DefaultPolicy(t.Context()))(t)
	must(s.PolicyProgress(t.Context()))(t)
	errs := []error{s.Worker.Abandon(t.Context(), run, "x"), s.Scheduler.Resign(t.Context(), "r", "h"), s.Ping(t.Context())}
	_, err1 := s.Scheduler.Backlog(t.Context())
	_, err2 := s.Admin.Settings(t.Context())
	_, err3 := s.Operator.Outcomes(t.Context(), 0)
	_, err4 := s.Operator.Runs(t.Context(), RunFilter{Limit: 9})
	_, _, err5 := s.Operator.Sessions(t.Context(), SessionFilter{Limit: 9})
	_, _, err6 := s.Admin.Checksum(t.Context(), session(t, s, k).SID, chat.Open-1)
	_, err7 := s.Scheduler.LastTick(t.Context(), "e")
	_, err8 := s.Scheduler.OpenSweeps(t.Context())
	noError(t, errors.Join(append(errs, err1, err2, err3, err4, err5, err6, err7, err8)...))
	for _, f := range must(s.Admin.Audit(t.Context()))(t) {
		t.Errorf("audit: not true that %s: %s", f.Check, f)
	}
}

func TestABadSchemaNameIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Compactor", "a b", "1a", "a-b", `a"b`, "a;drop", "é", strings.Repeat("a", 64)} {
		if _, err := migrations.Up(t.Context(), "postgres://nowhere", name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("migrate into %q: %v, want it refused by name", name, err)
		}
		if _, err := Open(t.Context(), Config{URL: "postgres://nowhere", Schema: name}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("open %q: %v, want it refused by name", name, err)
		}
	}
}

func TestADatabaseWithoutTheSchemaSaysSo(t *testing.T) {
	t.Parallel()
	s := must(Open(t.Context(), Config{URL: storetest.DB(t, "", nil)}))(t)
	t.Cleanup(s.Close)
	_, _, err := s.Append(t.Context(), Key{Session: "s"}, "", talk("m", 1))
	if !errors.Is(err, ErrNotMigrated) {
		t.Errorf("append: %v, want not migrated", err)
	}
	wantError(t, third(s.Operator.Sessions(t.Context(), SessionFilter{})), ErrNotMigrated, "list")
}

func TestNoErrorTellsThePassword(t *testing.T) {
	t.Parallel()
	good := must(url.Parse(storetest.DB(t, "", nil)))(t)
	const secret = "hunter2secret"
	missing := *good
	missing.User, missing.Path = url.UserPassword(good.User.Username(), secret), "/no_such_database"
	nobody := *good
	nobody.User = url.UserPassword("nobody_of_that_name", secret)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, dsn := range []string{
		missing.String(), nobody.String(),
		"postgres://u:" + secret + "@127.0.0.1:1/db", "postgres://u:" + secret + "@[::1", "postgres://u:" + secret + "@host:port/db",
		"host=127.0.0.1 port=1 user=u password=" + secret, "host=127.0.0.1 port=x password=" + secret, "postgres://u:" + secret + "@no-such-host.invalid/db",
		"host=127.0.0.1 password='" + secret, "postgres://u:" + secret + "@127.0.0.1/db?sslmode=perhaps",
	} {
		s, err := Open(ctx, Config{URL: dsn})
		if err == nil {
			s.Close()
			t.Errorf("open of a bad DSN succeeded")
			continue
		}
		_, up := migrations.Up(ctx, dsn, migrations.DefaultSchema)
		_, status := migrations.Status(ctx, dsn, migrations.DefaultSchema)
		for what, err := range map[string]error{"open": err, "up": up, "status": status} {
			if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

func TestNoErrorTellsContent(t *testing.T) {
	s := fresh(t)
	const secret = "the secret of the message"
	for _, raw := range []string{
		`{"role":"user","content":"` + secret + `","token_count":"` + secret + `"}`,
		`{"role":"user","content":"` + secret + `",}`,
		`{"role":"user","content":{"x":"` + secret + `"}}`,
		`["` + secret + `"]`,
	} {
		_, err := appendSQL(s, Key{Session: "s"}, raw)
		if !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), secret) {
			t.Errorf("%v", err)
		}
	}
	err := execute(t.Context(), s, "x", `SELECT $1::json`, map[string]any{secret: math.Inf(1)})
	if !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
}

func TestALockThatIsNotToBeHadIsBusy(t *testing.T) {
	t.Parallel()
	first, dsn := openDSN(t)
	s := must(Open(t.Context(), Config{URL: dsn, LockTimeout: 50 * time.Millisecond}))(t)
	t.Cleanup(s.Close)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 2)...)
	c := start(t, s, k)
	ch := must(c.change(s, exclude(span(1, 1))))(t)
	tx := begin(t, first, `SELECT FROM compactor.sessions FOR UPDATE`)
	wantError(t, second(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch)), ErrBusy, "apply beside a writer")
	noError(t, tx.Rollback(t.Context()))
	must(s.Worker.Apply(t.Context(), c.Run, c.Fence, ch))(t)
}

func TestErrorsOfTheDatabaseAreSorted(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]error{
		"P0002": ErrNotFound, "22023": ErrInvalid, "22P02": ErrInvalid, "54001": ErrInvalid, "55006": ErrInUse, "55000": ErrNotApplicable,
		"55P03": ErrBusy, "40P01": ErrBusy, "40001": ErrBusy, "3F000": ErrNotMigrated, "42P01": ErrNotMigrated, "42883": ErrNotMigrated,
		"57P01": ErrUnavailable, "08006": ErrUnavailable, "53300": ErrUnavailable, "XX000": errInternal,
	} {
		wantError(t, mapError(fmt.Errorf("x: %w", &pgconn.PgError{Code: code, Message: "m"})), want, "%s", code)
	}
	wantError(t, mapError(context.DeadlineExceeded), context.DeadlineExceeded, "a deadline became")
	wantError(t, mapError(errors.New("connection reset")), ErrUnavailable, "a broken connection became")
}

func TestSettingsAreLookedAt(t *testing.T) {
	s := fresh(t)
	names := map[string]bool{}
	for _, x := range must(s.Admin.Settings(t.Context()))(t) {
		names[x.Name] = x.OK
	}
	for _, name := range []string{"server version", "autovacuum", "max_connections", "message_log autovacuum_vacuum_insert_threshold", "message_log all-visible pages"} {
		if ok, found := names[name]; !ok || !found {
			t.Errorf("%s: found %v, ok %v", name, found, ok)
		}
	}
	if ok, found := names["jit"]; !found || ok != (storetest.Partitions() == 0 || one[string](t, s, `SHOW jit`) == "off") {
		t.Errorf("jit: found %v, ok %v: only plans over partitions cost", found, ok)
	}
}

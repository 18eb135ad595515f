package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sessionstore/compactor/store/storetest"
)

// theirs is in every text of the other tenant: its name, the ids, the content.
const theirs = "theirs"

// twoTenants fills a database with a session each of the tenants ours and theirs, with rows
// in every table, and returns the other tenant's run.
func twoTenants(t *testing.T, s *Store) (theirRun RunID) {
	t.Helper()
	thresholds(t, s, Threshold{"", 1, 0, false, Counts{}})
	for _, tenant := range []string{"ours", theirs} {
		k := Key{Tenant: tenant, Session: tenant + "-session"}
		msgs := talk(tenant, 6)
		msgs[4].Content.Text = "said by " + tenant
		add(t, s, k, msgs...)
		theirRun = apply(t, s, k, summarize(span(1, 4), "a summary of "+tenant))
		add(t, s, k, talk(tenant+"-later", 1)...)
		exec(t, s, `INSERT INTO compactor.summary_calls (key, sid, run, fence, state, prompt_hash, answer, ended_at)
			SELECT $1, sid, $2, 1, 'answered', $1, 'an answer to ' || $1, now() FROM compactor.sessions WHERE tenant = $1`, tenant, theirRun)
		must(s.ReportCache(t.Context(), k, Usage{PromptTokens: session(t, s, k).LiveTokens, MissReason: tenant}))(t)
		exec(t, s, `INSERT INTO compactor.summary_calls (key, tenant, fence, state, prompt_hash, answer, ended_at)
			VALUES ($1 || ' alone', $1, 0, 'answered', $1, 'an answer to ' || $1, now())`, tenant)
		must2(s.Scheduler.SweepPage(t.Context(), must(s.Operator.StartSweep(t.Context(), tenant, 0, tenant, tenant))(t), 0, time.Minute))(t)
		must(s.Request(t.Context(), k, TriggerApplication, tenant, Options{Focus: tenant}))(t)
		noError(t, s.Operator.PauseRuns(t.Context(), PauseScope{Tenant: tenant, Model: "no-such-model"}, tenant, tenant))
		calls := int64(1000)
		noError(t, s.Operator.LimitSpending(t.Context(), SpendingLimit{Tenant: tenant, CallsPerHour: &calls, Note: tenant}))
		exec(t, s, `INSERT INTO compactor.spending_minutes (tenant, minute, calls, tokens, micros) VALUES ($1, now(), 1, 2, 3)`, tenant)
		exec(t, s, `INSERT INTO compactor.throttled (sid, tenant, since) SELECT sid, tenant, now() FROM compactor.sessions WHERE tenant = $1`, tenant)
		noError(t, s.Scheduler.CountElsewhere(t.Context(), "elsewhere", "west", []LimitedUse{{Tenant: tenant}}))
		put(t, s, PolicyChange{Name: tenant + "-policy", Match: map[string]string{"tenant": tenant}, Note: "for " + tenant, Thresholds: []Threshold{{DueTokens: 1}}})
		exec(t, s, `INSERT INTO compactor.closed_children (parent, sid) SELECT sid, sid FROM compactor.sessions WHERE tenant = $1`, tenant)
		noError(t, s.Worker.EnsurePolicy(t.Context(), "hash of "+tenant, tenant, tenant))
		must(s.Admin.RequestErasure(t.Context(), tenant, tenant, tenant))(t)
		_, _, err := s.Admin.CreateKey(t.Context(), NewKey{Name: "a-key", Scope: ScopeRead, Tenant: tenant, Note: tenant}, tenant)
		noError(t, err)
		bulk := must(s.Operator.StartBulkUndo(t.Context(), tenant, RunMatch{Trigger: TriggerNightly}, false, tenant, tenant))(t)
		exec(t, s, `INSERT INTO compactor.bulk_refusals (bulk, run, sid, code) SELECT $1, id, sid, 'locked' FROM compactor.runs WHERE id = $2`, bulk, theirRun)
		exec(t, s, `INSERT INTO compactor.bulk_undo_runs (bulk, run, sid) SELECT $1, id, sid FROM compactor.runs WHERE id = $2`, bulk, theirRun)
		must(s.Admin.ArchiveSession(t.Context(), k, 0))(t)
		must2(s.Admin.CreateKey(t.Context(), NewKey{Name: tenant, Scope: ScopeAdmin, Tenant: tenant, Note: tenant}, tenant))(t)
		exec(t, s, `INSERT INTO compactor.forked_from SELECT sid, sid, '{[1,2)}' FROM compactor.sessions WHERE tenant = $1`, tenant)
	}
	refresh(t, s, 9)
	return theirRun
}

// fingerprint returns all rows of the other tenant, as text.
func fingerprint(t *testing.T, s *Store) string {
	t.Helper()
	var out []string
	for _, table := range list[string](t, s, `
		SELECT attrelid::regclass || ' x WHERE ' || CASE WHEN relname = 'summary_calls' THEN 'tenant = $1 OR sid IN (SELECT sid FROM compactor.sessions WHERE tenant = $1)'
			WHEN max(attname::text) = 'tenant' THEN 'tenant = $1' ELSE 'sid IN (SELECT sid FROM compactor.sessions WHERE tenant = $1)' END
		FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
		WHERE relnamespace = 'compactor'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND attname IN ('sid', 'tenant') AND relname <> 'tenant_bindings' GROUP BY attrelid, relname ORDER BY 1`) {
		rows := list[string](t, s, `SELECT to_jsonb(x)::text FROM `+table+` ORDER BY 1`, theirs)
		if len(rows) == 0 {
			t.Fatalf("the other tenant has no row in %s: what should be protected there?", table)
		}
		out = append(out, append([]string{table}, rows...)...)
	}
	return strings.Join(out, "\n")
}

// argument returns a value for an argument of a function of the schema, by its name or its type.
func argument(name, typ string, session string, run RunID) string {
	byName := map[string]string{
		"p_tenant": theirs, "p_session": session, "p_message": theirs + "1", "p_messages": `[{"role": "user", "content": "x"}]`, "p_run": fmt.Sprint(run),
		"p_trigger": TriggerApplication, "p_positions": "{1}", "p_action": SweepPause, "p_sid": "2", "p_segment": "2", "p_old": "2", "p_erasure": "2",
	}
	byType := map[string]string{
		"text": "x", "bigint": "1", "integer": "1", "smallint": "1", "boolean": "true", "json": "{}", "jsonb": "{}", "interval": "1 second",
		"text[]": "{}", "bigint[]": "{}", "integer[]": "{}", "int8multirange": "{}", "int8multirange[]": "{}",
	}
	value, ok := byName[name]
	if !ok || strings.HasSuffix(typ, "[]") && byType[typ] != "" {
		value, ok = byType[typ]
	}
	if !ok {
		return "NULL::" + typ
	}
	return "'" + value + "'::" + typ
}

type routine struct {
	Name, Kind string
	Allowed    bool
	Pure       bool     // it reads its arguments alone
	Args       []string // "name type"
}

// call returns a call of the routine with the other tenant's ids.
func (r routine) call(session string, run RunID) string {
	args := make([]string, len(r.Args))
	for i, a := range r.Args {
		name, typ, _ := strings.Cut(a, " ")
		args[i] = argument(name, typ, session, run)
	}
	verb := "SELECT to_jsonb(f)::text FROM "
	if r.Kind == "p" {
		return fmt.Sprintf("CALL compactor.%s(%s)", r.Name, strings.Join(args, ", "))
	}
	return fmt.Sprintf("%scompactor.%s(%s) f", verb, r.Name, strings.Join(args, ", "))
}

const queryRoutines = `
	SELECT proname::text, prokind::text, has_function_privilege(p.oid, 'EXECUTE'), provolatile = 'i',
		ARRAY(SELECT coalesce(proargnames[i], '') || ' ' || format_type(proargtypes[i - 1], NULL) FROM generate_series(1, pronargs) i)
	FROM pg_proc p WHERE pronamespace = 'compactor'::regnamespace AND prorettype <> 'trigger'::regtype ORDER BY 1`

func TestABoundConnectionReachesNoOtherTenant(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"application", "reader", "operator"} {
		for _, how := range []string{"by its login", "by a setting"} {
			t.Run(role+" "+how, func(t *testing.T) {
				t.Parallel()
				s, dsn := openRoles(t)
				run := twoTenants(t, s)
				login, own := storetest.Login(t, dsn, "compactor_"+role)
				settings := map[string]string{}
				if how == "by its login" {
					exec(t, s, `INSERT INTO compactor.tenant_bindings (role, tenant) VALUES ($1, 'ours')`, login)
					settings["compactor.tenant"] = theirs // a setting of the client does not count then
				} else {
					settings["compactor.tenant"] = "ours"
				}
				conn := connect(t, own, settings)
				if got := texts(t, conn, `SELECT count(*)::text FROM compactor.messages`); got[0] != "8" {
					t.Errorf("sees %s messages, want the 8 of its own tenant", got[0])
				}
				before := fingerprint(t, s)
				tryRelations(t, conn)
				tryFunctions(t, conn, run)
				noDiff(t, cmp.Diff(before, fingerprint(t, s)), "the other tenant's rows have changed")
			})
		}
	}
}

// texts returns the single column of a query.
func texts(t *testing.T, conn *pgx.Conn, query string) []string {
	t.Helper()
	out, err := tryTexts(t, conn, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

func tryTexts(t *testing.T, conn *pgx.Conn, query string) ([]string, error) {
	t.Helper()
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// tryRelations reads every table and view, also by a condition that raises the values that it sees.
func tryRelations(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), `CREATE FUNCTION pg_temp.tells(x text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$
		BEGIN IF x LIKE '%theirs%' THEN RAISE EXCEPTION 'shown: %', x; END IF; RETURN true; END $$`); err != nil {
		t.Fatal(err)
	}
	queries := texts(t, conn, `
		SELECT query FROM pg_class c, LATERAL (
			SELECT format('SELECT to_jsonb(x)::text FROM %s x WHERE to_jsonb(x)::text LIKE ''%%theirs%%''', c.oid::regclass)
			UNION ALL SELECT format('SELECT ''a row'' FROM %s WHERE pg_temp.tells(%I::text) AND random() > 2', c.oid::regclass, attname)
				FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
			UNION ALL SELECT format('SELECT ''a row'' FROM %s x WHERE NOT EXISTS (SELECT FROM compactor.sessions s WHERE s.sid = x.sid) AND to_jsonb(x)->>''tenant'' IS DISTINCT FROM ''ours''', c.oid::regclass)
				FROM pg_attribute WHERE attrelid = c.oid AND attname = 'sid') q(query)
		WHERE relnamespace = 'compactor'::regnamespace AND relkind IN ('r', 'v', 'm', 'p')`)
	read := 0
	for _, query := range queries {
		rows, err := tryTexts(t, conn, query)
		pg, _ := errors.AsType[*pgconn.PgError](err)
		switch {
		case err == nil && len(rows) > 0:
			t.Errorf("%s: shows %v", query, rows)
		case err == nil:
			read++
		case pg == nil || pg.Code != "42501":
			t.Errorf("%s: %v", query, err)
		}
	}
	if read == 0 {
		t.Error("nothing could be read: the test tests nothing")
	}
	if _, err := conn.Exec(t.Context(), `DROP FUNCTION pg_temp.tells`); err != nil { // or the login could not be dropped
		t.Error(err)
	}
}

// tryFunctions calls every function, those too that the role may not call.
func tryFunctions(t *testing.T, conn *pgx.Conn, run RunID) {
	t.Helper()
	rows := must(conn.Query(t.Context(), queryRoutines))(t)
	routines, err := pgx.CollectRows(rows, pgx.RowToStructByPos[routine])
	if err != nil || len(routines) < 20 {
		t.Fatalf("%d functions, %v", len(routines), err)
	}
	for _, r := range routines {
		// Of catalogs that every login reads; and by a secret.
		if r.Allowed && r.Pure || slices.Contains([]string{"rights_amiss", "fences_amiss", "use_key"}, r.Name) {
			continue
		}
		got, err := tryTexts(t, conn, r.call(theirs+"-session", run))
		_, unknown := tryTexts(t, conn, r.call("no-such-session", run))
		pg, _ := errors.AsType[*pgconn.PgError](err)
		if r.Name == "bound_tenant" {
			if err != nil || got[0] != `"ours"` {
				t.Errorf("bound to %v, %v", got, err)
			}
			continue
		}
		if pg == nil || pg.Code != "42501" {
			t.Errorf("%s: %v, %v, want it refused", r.Name, got, err)
			continue
		}
		if r.Allowed && !strings.Contains(pg.Message, "bound to tenant ours") {
			t.Errorf("%s is refused for another reason than the tenant: %v", r.Name, err)
		}
		if err.Error() != fmt.Sprint(unknown) {
			t.Errorf("%s tells whether the session exists: %v, but %v", r.Name, err, unknown)
		}
	}
}

func TestAnEmptyTenantIsTheConnections(t *testing.T) {
	t.Parallel()
	s, dsn := openRoles(t)
	twoTenants(t, s)
	login, own := storetest.Login(t, dsn, "compactor_application")
	exec(t, s, `INSERT INTO compactor.tenant_bindings (role, tenant) VALUES ($1, 'ours')`, login)
	conn := connect(t, own, nil)
	if got := texts(t, conn, `SELECT message->>'content' FROM compactor.view('', 'ours-session')`); len(got) != 4 {
		t.Errorf("%v", got)
	}
	// A setting or another role changes nothing about a login that is bound.
	for _, try := range []string{`SET compactor.tenant = 'theirs'`, `SET ROLE compactor_application`, `RESET ALL`} {
		must(conn.Exec(t.Context(), try))(t)
		if _, err := tryTexts(t, conn, `SELECT id FROM compactor.view('theirs', 'theirs-session')`); err == nil {
			t.Errorf("after %s another tenant's view can be read", try)
		}
	}
	app := must(Open(t.Context(), Config{URL: own}))(t)
	t.Cleanup(app.Close)
	if _, _, err := app.Append(t.Context(), Key{Tenant: theirs, Session: "x"}, "", talk("m", 1)); !errors.Is(err, ErrForbidden) {
		t.Errorf("append for another tenant: %v, want forbidden", err)
	}
}

func TestUndoNamesTheSessionOfTheRun(t *testing.T) {
	s := fresh(t)
	run := twoTenants(t, s)
	_, err := s.Undo(t.Context(), Key{Tenant: "ours", Session: "ours-session"}, run, true, "")
	if !errors.Is(err, ErrNotFound) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("session ours-session has no run %d", run)) {
		t.Errorf("undo of another session's run: %v, want not found", err)
	}
	must(s.Undo(t.Context(), Key{Tenant: theirs, Session: theirs + "-session"}, run, true, ""))(t)
}

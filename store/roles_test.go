package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
)

// openRoles is openDSN with the schema's roles.
func openRoles(t *testing.T) (*Store, string) {
	t.Helper()
	s, dsn := openDSN(t)
	createRoles(t, dsn, migrations.DefaultSchema)
	return s, dsn
}

func createRoles(t *testing.T, dsn, schema string) {
	t.Helper()
	must2(migrations.CreateRoles(t.Context(), dsn, schema))(t)
	must(migrations.Up(t.Context(), dsn, schema))(t)
}

// connect returns a connection of a login that is a member of a role, with settings.
func connect(t *testing.T, dsn string, settings map[string]string) *pgx.Conn {
	t.Helper()
	cfg := must(pgx.ParseConfig(dsn))(t)
	maps.Copy(cfg.RuntimeParams, settings)
	conn := must(pgx.ConnectConfig(t.Context(), cfg))(t)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func TestEveryFunctionHasItsCallersListed(t *testing.T) {
	s := fresh(t)
	grants := string(must(os.ReadFile("../migrations/functions/zz_grants.sql"))(t))
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^ +\('(\w+)', +'\{`).FindAllStringSubmatch(grants, -1) {
		listed = append(listed, m[1])
	}
	functions := list[string](t, s, `SELECT DISTINCT proname::text COLLATE "C" FROM pg_proc WHERE pronamespace = 'compactor'::regnamespace ORDER BY 1`)
	equal(t, functions, listed, "functions/zz_grants.sql lists other functions than there are, or in another order, -there +listed")
}

func TestFunctionsOfRolesRunWithTheOwnersRightsAndAFixedPath(t *testing.T) {
	t.Parallel()
	s, _ := openRoles(t)
	bad := list[string](t, s, `
		SELECT p.proname || ': ' || what FROM pg_proc p, LATERAL (
			SELECT 'PUBLIC may execute it' WHERE has_function_privilege('public', p.oid, 'EXECUTE')
			UNION ALL SELECT 'a role executes it with its own rights' WHERE NOT prosecdef
				AND EXISTS (SELECT FROM unnest($1::text[]) r WHERE has_function_privilege(r, p.oid, 'EXECUTE'))
			UNION ALL SELECT 'its search_path is the caller''s' WHERE prosecdef AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY(proconfig), false)
		) x(what) WHERE pronamespace = 'compactor'::regnamespace`, migrations.Roles(migrations.DefaultSchema))
	if len(bad) > 0 {
		t.Error(strings.Join(bad, "\n"))
	}
	for _, inner := range []string{"append_one", "lock_session", "is_due", "fence_tables"} {
		if got := list[string](t, s, `SELECT r FROM unnest($1::text[]) r, pg_proc p WHERE p.proname = $2 AND has_function_privilege(r, p.oid, 'EXECUTE')`,
			migrations.Roles(migrations.DefaultSchema), inner); len(got) > 0 {
			t.Errorf("%v may execute %s", got, inner)
		}
	}
}

func TestOnlyTheWorkerWritesAndWhatWasSaidNotEvenIt(t *testing.T) {
	t.Parallel()
	s, _ := openRoles(t)
	got := list[string](t, s, `
		SELECT replace(r, 'compactor_', '') || ' ' || c.relname || '.' || a.attname FROM unnest($1::text[]) r
		CROSS JOIN pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped
		WHERE c.relnamespace = 'compactor'::regnamespace AND c.relkind IN ('r', 'p', 'v')
			AND (has_column_privilege(r, c.oid, attnum, 'INSERT, UPDATE') OR has_table_privilege(r, c.oid, 'DELETE, TRUNCATE'))
			AND (r <> 'compactor_worker' OR c.relname ~ '^message_(log|body)' OR c.relname IN ('exclusions', 'messages', 'tenant_bindings', 'compactor_migrations')
				OR (c.relname, a.attname) IN (('runs', 'live_before'), ('sessions', 'live')))
		ORDER BY 1`, migrations.Roles(migrations.DefaultSchema))
	equal(t, []string{"worker runs.live_before", "worker sessions.live"}, got, "who writes what")
	if got := list[string](t, s, `SELECT relname::text FROM pg_class WHERE relnamespace = 'compactor'::regnamespace AND relkind IN ('r', 'v', 'S')
		AND has_table_privilege('compactor_application', oid, 'SELECT')`); !slices.Equal(got, []string{"messages"}) {
		t.Errorf("an application reads %v, want the view messages alone", got)
	}
}

func TestTheRolesOfTwoSchemasHaveNothingInCommon(t *testing.T) {
	t.Parallel()
	_, dsn := openRoles(t)
	const other = "my_sessions2"
	createRoles(t, dsn, other)
	for schema, foreign := range map[string]string{migrations.DefaultSchema: other, other: migrations.DefaultSchema} {
		_, login := storetest.Login(t, dsn, schema+"_worker")
		conn := connect(t, login, nil)
		for name, denied := range map[string]bool{schema: false, foreign: true} {
			_, err := conn.Exec(t.Context(), `SELECT * FROM `+name+`.view('default', 's')`)
			if (err != nil) != denied {
				t.Errorf("a login of %s calls %s.view: %v", schema, name, err)
			}
		}
	}
}

func TestRolesThatMayNotBeCreatedArePrintedAndGrantedLater(t *testing.T) {
	t.Parallel()
	dsn := storetest.DB(t, "", nil)
	const schema = "limited_owner"
	name, limited := storetest.Login(t, dsn, "")
	owner := connect(t, dsn, nil)
	if _, err := owner.Exec(t.Context(), fmt.Sprintf(`CREATE SCHEMA %[1]s AUTHORIZATION %[2]s; GRANT CREATE ON DATABASE %[3]s TO %[2]s`,
		schema, name, pgx.Identifier{owner.Config().Database}.Sanitize())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		roles := strings.Join(append(migrations.Roles(schema), name), ", ")
		if _, err := owner.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+roles+` CASCADE; DROP ROLE `+strings.TrimSuffix(roles, ", "+name)); err != nil {
			t.Error(err)
		}
	})
	created, missing := must2(migrations.CreateRoles(t.Context(), limited, schema))(t)
	want := []string{
		"CREATE ROLE limited_owner_application NOLOGIN", "CREATE ROLE limited_owner_reader NOLOGIN",
		"CREATE ROLE limited_owner_operator NOLOGIN", "CREATE ROLE limited_owner_worker NOLOGIN",
	}
	if diff := cmp.Diff(want, missing); diff != "" || len(created) > 0 {
		t.Fatalf("created %v, printed (-want +got):\n%s", created, diff)
	}
	must(migrations.Up(t.Context(), limited, schema))(t)
	must(owner.Exec(t.Context(), strings.Join(missing, ";")))(t)
	none(t, must(migrations.Up(t.Context(), limited, schema))(t), "applied again")
	_, login := storetest.Login(t, dsn, schema+"_worker")
	s := must(Open(t.Context(), Config{URL: login, Schema: schema}))(t)
	defer s.Close()
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 3)...)
	start(t, s, k)
}

func TestAnApplicationNeedsNoRightsOnTables(t *testing.T) {
	t.Parallel()
	_, dsn := openRoles(t)
	_, login := storetest.Login(t, dsn, "compactor_application")
	s := must(Open(t.Context(), Config{URL: login}))(t)
	t.Cleanup(s.Close)
	k := Key{Tenant: "any", Session: "s"}
	add(t, s, k, talk("m", 3)...)
	must2(s.Import(t.Context(), k, "", talk("n", 2)))(t)
	view, revision := must2(s.View(t.Context(), k))(t)
	must(s.Replace(t.Context(), k, revision, []NewMessage{{Message: view[0].Message}, user("z", "z")}, ""))(t)
	if view, revision = must2(s.View(t.Context(), k))(t); len(view) != 2 || revision != 1 {
		t.Errorf("%d messages at revision %d", len(view), revision)
	}
	must(s.ReportUsage(t.Context(), k, 50, 0))(t)
	request(t, s, k, TriggerApplication)
	noError(t, errors.Join(s.Pin(t.Context(), k, "m1"), s.Unpin(t.Context(), k, "m1")))
	if all := must(s.All(t.Context(), k))(t); len(all) != 6 {
		t.Errorf("%d messages", len(all))
	}
	wantError(t, third(s.Operator.Sessions(t.Context(), SessionFilter{Limit: 1})), ErrForbidden, "a list of all sessions")
}

// No pause (force) and no limit holds the requests of an operator.
func TestOnlyOperatorsRequestRunsAsOperators(t *testing.T) {
	t.Parallel()
	s, dsn := openRoles(t)
	k := Key{Session: "s"}
	add(t, s, k, talk("m", 4)...)
	for role, may := range map[string]bool{"application": false, "operator": true, "worker": true} {
		_, login := storetest.Login(t, dsn, "compactor_"+role)
		own := must(Open(t.Context(), Config{URL: login}))(t)
		t.Cleanup(own.Close)
		if _, err := own.Request(t.Context(), k, TriggerOperator, "test", Options{Force: true}); may != (err == nil) || !may && !errors.Is(err, ErrForbidden) {
			t.Errorf("a request of the role %s as an operator: %v", role, err)
		}
		wantError(t, second(own.Request(t.Context(), k, TriggerApplication, "test", Options{})), nil, "a request of the role %s", role)
	}
	must(s.Request(t.Context(), k, TriggerOperator, "the owner", Options{Force: true}))(t)
}

// A reader reads the columns that deploy/docs/tables.md names, and another tenant's rows
// only if it is bound to none (see tryRelations).
func TestRelationsOfReadersAreAsDocumented(t *testing.T) {
	t.Parallel()
	_, dsn := openRoles(t)
	_, login := storetest.Login(t, dsn, "compactor_reader")
	conn := connect(t, login, nil)
	doc := string(must(os.ReadFile("../deploy/docs/tables.md"))(t))
	relations := 0
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)`[^|]*\\|[^|]*\\| (`.*`) \\|$").FindAllStringSubmatch(doc, -1) {
		relations++
		wantError(t, second(conn.Exec(t.Context(), `SELECT `+strings.ReplaceAll(m[2], "`", "")+` FROM compactor.`+m[1])), nil, "%s", m[1])
	}
	for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(doc, -1) {
		wantError(t, second(conn.Exec(t.Context(), m[1], pgx.QueryExecModeSimpleProtocol)), nil, "%s", m[1])
	}
	if relations < 8 {
		t.Errorf("%d relations are documented", relations)
	}
}

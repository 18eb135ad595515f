package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store/storetest"
)

func TestEveryPartitionRejectsChangesOfWhatWasSaid(t *testing.T) {
	t.Parallel()
	s, _ := openPartitioned(t, 16)
	for i := range 60 {
		k := Key{Session: fmt.Sprint(i)}
		add(t, s, k, talk("m", 6)...)
		apply(t, s, k, summarize(span(1, 3), "a summary"))
	}
	wantConsistent(t, s)
	parts := list[string](t, s, `SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent IN ('compactor.message_log'::regclass, 'compactor.message_body'::regclass)`)
	if len(parts) != 32 {
		t.Fatalf("%d partitions, want 16 of each table", len(parts))
	}
	for _, part := range parts {
		if one[int](t, s, `SELECT count(*) FROM `+part) == 0 {
			t.Errorf("%s is empty: the test shows nothing", part)
		}
		for _, sql := range []string{`UPDATE %s SET seq = seq`, `DELETE FROM %s`, `DELETE FROM %s WHERE seq = 2`, `TRUNCATE %s CASCADE`, `SET compactor.fix = 'on'; UPDATE %s SET seq = seq`} {
			_, err := s.pool.Exec(t.Context(), fmt.Sprintf(sql, part), pgx.QueryExecModeSimpleProtocol)
			pg, _ := errors.AsType[*pgconn.PgError](err)
			if pg == nil || pg.Code != "23001" || !strings.Contains(pg.Message, "append-only") {
				t.Errorf(sql+": %v, want it refused", part, err)
			}
		}
	}
	exec(t, s, `ALTER TABLE compactor.message_body_p7 DISABLE TRIGGER append_only`)
	if got := must(s.Admin.AuditDatabase(t.Context()))(t); len(got) != 1 || !strings.Contains(got[0].String(), "append_only of message_body_p7") {
		t.Errorf("with a partition that is not protected: %v", got)
	}
}

func TestAnInstallationKeepsItsPartitions(t *testing.T) {
	t.Parallel()
	ctx, whole := t.Context(), storetest.DB(t, "empty", nil)
	must(migrations.Up(ctx, whole, migrations.DefaultSchema))(t)
	must(migrations.UpPartitioned(ctx, whole, migrations.DefaultSchema, 3))(t) // without a session, it is new
	s := must(Open(ctx, Config{URL: whole}))(t)
	defer s.Close()
	const vacuumed = `SELECT count(*) FROM pg_class WHERE relname LIKE 'message_body_p_' AND 'autovacuum_vacuum_scale_factor=0.02' = ANY (reloptions)`
	equal(t, 3, one[int](t, s, vacuumed), "partitions are vacuumed for the disk budget")
	add(t, s, Key{Session: "s"}, talk("m", 3)...)
	exec(t, s, `DELETE FROM compactor.installed_functions`)
	if done := must(migrations.Up(ctx, whole, migrations.DefaultSchema))(t); len(done) != 1 {
		t.Errorf("without functions, it did %v", done)
	}
	wantConsistent(t, s)
	for _, same := range []int{0, 3} {
		none(t, must(migrations.UpPartitioned(ctx, whole, migrations.DefaultSchema, same))(t), "asked for %d partitions of 3, it did", same)
	}
	if _, err := migrations.UpPartitioned(ctx, whole, migrations.DefaultSchema, 4); err == nil || !strings.Contains(err.Error(), "is 3 partitions") {
		t.Errorf("asked for another number: %v", err)
	}
	if _, err := migrations.UpPartitioned(ctx, whole, migrations.DefaultSchema, migrations.MaxPartitions+1); err == nil || !strings.Contains(err.Error(), "want 1 to 1000") {
		t.Errorf("asked for too many: %v", err)
	}
	single := storetest.DB(t, "empty", nil)
	must(migrations.Up(ctx, single, migrations.DefaultSchema))(t)
	o := must(Open(ctx, Config{URL: single}))(t)
	defer o.Close()
	add(t, o, Key{Session: "s"}, talk("m", 3)...)
	if _, err := migrations.UpPartitioned(ctx, single, migrations.DefaultSchema, 16); err == nil || !strings.Contains(err.Error(), "is one table") {
		t.Errorf("asked for partitions of a table with messages: %v", err)
	}
}

// Functions of a session read and write its own partitions alone, with a plan that any
// session shares, too.
func TestAStatementTouchesThePartitionsOfItsSession(t *testing.T) {
	t.Parallel()
	s, _ := openPartitioned(t, 16)
	for i := range 40 {
		add(t, s, Key{Session: fmt.Sprint(i)}, talk("m", 4)...)
	}
	k := Key{Session: "7"}
	sid := session(t, s, k).SID
	run := must(s.Request(t.Context(), k, TriggerOperator, "test", Options{}))(t)
	for name, call := range map[string]func(tx pgx.Tx) error{
		"append one": func(tx pgx.Tx) error {
			return touch(tx, `SELECT compactor.append('default', '7', '{"role": "user", "content": "x", "id": "x"}')`)
		},
		"append many": func(tx pgx.Tx) error {
			return touch(tx, `SELECT compactor.append('default', '7', '[{"role": "user", "content": "x", "id": "x"}, {"role": "user", "content": "y"}]')`)
		},
		"view": func(tx pgx.Tx) error { return touch(tx, `SELECT count(*) FROM compactor.view('default', '7')`) },
		"View": func(tx pgx.Tx) error { return touch(tx, s.q(queryView), "default", "7") },
		"messages": func(tx pgx.Tx) error {
			return touch(tx, `SELECT seq, message FROM compactor.messages WHERE tenant = 'default' AND session = '7'`)
		},
		"Claim":     func(tx pgx.Tx) error { return touch(tx, s.q(queryClaimView), run) },
		"ViewMetas": func(tx pgx.Tx) error { return touch(tx, s.q(queryViewMetas), sid) },
		"Audit":     func(tx pgx.Tx) error { return touch(tx, `SELECT * FROM compactor.audit_session('default', '7')`) },
		"end_run": func(tx pgx.Tx) error {
			c, err := s.Worker.Claim(t.Context(), run, "worker", time.Minute)
			if err != nil {
				return err
			}
			return touch(tx, `SELECT code FROM compactor.end_run($1, $2, 'applied', 0, 4, '{x}', '{"{[1,2)}"}', '{NULL}', '{[1,2)}', '{}', NULL,
				'{"outcome": "applied", "d_messages": -1, "d_tokens": -1, "d_estimated": 0, "due_tokens": 1, "estimate_margin": 0, "fleet_hash": ""}')`, c.Run, c.Fence)
		},
	} {
		for _, mode := range []string{"auto", "force_generic_plan"} {
			err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), `SET LOCAL plan_cache_mode = `+mode); err != nil {
					return err
				}
				const scans = `CREATE TEMP TABLE scans ON COMMIT DROP AS SELECT relname::text AS part, coalesce(seq_scan, 0) + coalesce(idx_scan, 0) + n_tup_ins AS n
					FROM pg_stat_xact_user_tables WHERE schemaname = 'compactor' AND relname ~ '^message_.*_p[0-9]+$'`
				if _, err := tx.Exec(t.Context(), scans); err != nil {
					return err
				}
				if err := call(tx); err != nil {
					return err
				}
				var parts []string
				const query = `SELECT coalesce(array_agg(part ORDER BY part), '{}') FROM pg_stat_xact_user_tables JOIN scans ON part = relname
					WHERE schemaname = 'compactor' AND coalesce(seq_scan, 0) + coalesce(idx_scan, 0) + n_tup_ins > n`
				if err := tx.QueryRow(t.Context(), query).Scan(&parts); err != nil {
					return err
				}
				if len(parts) == 0 && name != "end_run" || len(parts) > 2 || len(parts) == 2 && strings.ReplaceAll(parts[0], "body", "log") != parts[1] {
					t.Errorf("%s, %s: touches %v, want one partition of each table", name, mode, parts)
				}
				if mode == "auto" {
					return nil
				}
				return tx.Rollback(t.Context())
			})
			if err != nil && !errors.Is(err, pgx.ErrTxClosed) && name != "end_run" {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
		}
	}
}

// touch executes a statement without a look at its rows.
func touch(tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(context.Background(), sql, append([]any{pgx.QueryExecModeCacheStatement}, args...)...)
	return err
}

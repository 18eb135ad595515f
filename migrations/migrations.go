// Package migrations embeds the SQL of the schema: numbered files, which goose applies
// once, and in functions/ the functions, views and grants, which are replaced as a whole
// whenever a file changed. So each function has one definition, that of its file; a
// migration only drops one whose arguments change. In the files, @schema@ stands for the
// name of the schema.
package migrations

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql functions/*.sql
var files embed.FS

// functionFiles are replaced as a whole.
const functionFiles = "functions/*.sql"

// DefaultSchema is the schema of all objects if none is configured.
const DefaultSchema = "compactor"

// Fingerprint returns a hash of all files: which functions are installed, and the key of
// template databases in tests.
func Fingerprint() string { return hashOf("*.sql") + hashOf(functionFiles) }

// hashOf returns a hash of the files that match a pattern.
func hashOf(pattern string) string {
	h := sha256.New()
	names, _ := fs.Glob(files, pattern)
	for _, name := range names {
		raw, _ := files.ReadFile(name)
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Migration is one numbered file, or all of functions/ with Version 0, and the time at
// which it was applied, zero if it is not.
type Migration struct {
	Version   int64     `json:"version,omitempty"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

// Newest returns the version of the last numbered file.
func Newest() (version int64) {
	names, _ := fs.Glob(files, "*.sql")
	for _, name := range names {
		n, _ := goose.NumericComponent(name) // goose would refuse another name
		version = max(version, n)
	}
	return version
}

// CheckSchema returns an error unless name is a lower-case identifier, which needs no
// quoting.
func CheckSchema(name string) error {
	if !schemaName.MatchString(name) {
		return fmt.Errorf("schema %q: want a lower-case identifier of letters, digits and _", name)
	}
	return nil
}

// functionsName is the Name of the Migration that stands for the files in functions/.
const functionsName = "functions"

// Up applies the pending migrations, installs the functions if they have changed, and
// returns what it did. Concurrent calls, also from other processes, wait for each other.
func Up(ctx context.Context, dsn, schema string) ([]Migration, error) {
	return UpPartitioned(ctx, dsn, schema, 0)
}

func up(ctx context.Context, dsn, schema string, partitions int) (done []Migration, err error) {
	cfg, err := parse(dsn, schema)
	if err != nil {
		return nil, err
	}
	err = locked(ctx, cfg, func() error {
		done, err = upLocked(ctx, cfg, schema, partitions)
		return err
	})
	return done, err
}

// lockPoll is the interval between attempts to take the lock of migrations.
const lockPoll = 200 * time.Millisecond

// locked calls f while no other process migrates this database. The lock is held by a
// transaction: behind a pooler, that of a session would stay with a server connection. Who
// waits has no transaction, and so no server connection.
func locked(ctx context.Context, cfg *pgx.ConnConfig, f func() error) error {
	conn, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for {
		var held bool
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", lock.DefaultLockID).Scan(&held)
			if err != nil || !held {
				return err
			}
			// A migration may take long.
			if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
				return err
			}
			return f()
		})
		if err != nil || held {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

func upLocked(ctx context.Context, cfg *pgx.ConnConfig, schema string, partitions int) (done []Migration, err error) {
	db := stdlib.OpenDB(*cfg)
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema); err != nil {
		return nil, err
	}
	versions, err := database.NewStore(goose.DialectPostgres, schema+".schema_version")
	if err != nil {
		return nil, err
	}
	inSchema, err := filesIn(schema, "*.sql")
	if err != nil {
		return nil, err
	}
	p, err := goose.NewProvider("", db, inSchema, goose.WithStore(versions), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, err
	}
	results, err := p.Up(ctx)
	for _, r := range results {
		done = append(done, Migration{Version: r.Source.Version, Name: r.Source.Path})
	}
	if err != nil {
		return done, err
	}
	if err := partition(ctx, cfg, schema, partitions); err != nil {
		return done, err
	}
	installed, err := installFunctions(ctx, cfg, schema)
	if installed {
		done = append(done, Migration{Name: functionsName})
	}
	return done, err
}

// installFunctions executes all files in functions/ in one transaction, unless these
// very files are installed: then only that with the grants, if a role has other rights.
// Then it puts tables under row-level security that are not. installed is whether the
// files had changed.
func installFunctions(ctx context.Context, cfg *pgx.ConnConfig, schema string) (installed bool, err error) {
	inSchema, err := filesIn(schema, functionFiles)
	if err != nil {
		return false, err
	}
	conn, err := connect(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Functions call each other, whatever the order of their files.
		if _, err := tx.Exec(ctx, "SET LOCAL check_function_bodies = off"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "LOCK TABLE "+schema+".installed_functions"); err != nil {
			return err
		}
		const record = ` AS f (hash) VALUES ($1)
			ON CONFLICT (only_row) DO UPDATE SET hash = excluded.hash, installed_at = now() WHERE f.hash <> excluded.hash`
		tag, err := tx.Exec(ctx, "INSERT INTO "+schema+".installed_functions"+record, Fingerprint())
		if err != nil {
			return err
		}
		// By name: the grants are last, and view.sql before them, as a view needs the functions that it calls.
		names := slices.Sorted(maps.Keys(inSchema))
		if installed = tag.RowsAffected() > 0; !installed {
			var amiss bool
			if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+schema+".rights_amiss(true))").Scan(&amiss); err != nil || !amiss {
				return err
			}
			names = names[len(names)-1:]
		}
		for _, name := range names {
			// Without arguments, so that a file may hold several statements.
			if _, err := tx.Exec(ctx, string(inSchema[name].Data)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	_, err = conn.Exec(ctx, "CALL "+schema+".fence_tables()")
	return installed, err
}

// Amiss names what of the rights of roles (rights) and of row-level security (fences) is not as
// the installed functions have it, such as after a restore without roles. Up sets it. Both are
// empty where other functions are installed, with which Up sets all of them.
func Amiss(ctx context.Context, dsn, schema string) (rights, fences []string, err error) {
	all, err := Status(ctx, dsn, schema)
	if err != nil || all[len(all)-1].AppliedAt.IsZero() {
		return nil, nil, err
	}
	cfg, err := parse(dsn, schema)
	if err != nil {
		return nil, nil, err
	}
	conn, err := connect(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	read := func(function string) []string {
		rows, _ := conn.Query(ctx, "SELECT object FROM "+schema+"."+function+" WHERE statement IS NOT NULL") // rows hold the error
		objects, failed := pgx.CollectRows(rows, pgx.RowTo[string])
		err = cmp.Or(err, failed)
		return objects
	}
	return read("rights_amiss(true)"), read("fences_amiss(true)"), err
}

// Status returns all migrations in order, with the pending ones, and the functions as the
// last. It creates nothing.
func Status(ctx context.Context, dsn, schema string) ([]Migration, error) {
	all, err := status(ctx, dsn, schema)
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	return all, nil
}

func status(ctx context.Context, dsn, schema string) ([]Migration, error) {
	cfg, err := parse(dsn, schema)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	conn, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// read calls f for each row of a query of one of the schema's tables, if it exists.
	read := func(table, query string, scans []any, f func() error) error {
		var exists bool
		if err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, schema+"."+table).Scan(&exists); err != nil || !exists {
			return err
		}
		rows, _ := conn.Query(ctx, query+" FROM "+schema+"."+table) // rows hold the error
		_, err := pgx.ForEachRow(rows, scans, f)
		return err
	}
	var version int64
	var hash string
	var at time.Time
	applied := map[int64]time.Time{}
	err = read("schema_version", `SELECT version_id, tstamp::timestamptz`, []any{&version, &at}, func() error {
		applied[version] = at.UTC()
		return nil
	})
	functions := Migration{Name: functionsName}
	err = cmp.Or(err, read("installed_functions", `SELECT hash, installed_at`, []any{&hash, &at}, func() error {
		if hash == Fingerprint() {
			functions.AppliedAt = at.UTC()
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	var all []Migration
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		all = append(all, Migration{Version: version, Name: name, AppliedAt: applied[version]})
	}
	return append(all, functions), nil
}

func parse(dsn, schema string) (*pgx.ConnConfig, error) {
	if err := CheckSchema(schema); err != nil {
		return nil, err
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	// Behind a pooler, prepared statements would be those of another connection.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	return cfg, nil
}

// filesIn returns the files that match a pattern, with the name of the schema in place of
// @schema@.
func filesIn(schema, pattern string) (fstest.MapFS, error) {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, err
	}
	out := fstest.MapFS{}
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out[name] = &fstest.MapFile{Data: bytes.ReplaceAll(raw, []byte("@schema@"), []byte(schema))}
	}
	return out, nil
}

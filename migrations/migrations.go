// Package migrations embeds the SQL of the schema: numbered files, which goose applies
// once, and in functions/ the functions, views, triggers and grants, which are replaced as a
// whole whenever a file changed. So each function has one definition, that of its file; a
// numbered file only drops one whose arguments change. In the files, @schema@ stands for the
// name of the schema.
package migrations

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
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

// functionsName is the Name of the Migration that stands for these files.
const functionsName = "functions"

// DefaultSchema is the schema of all objects if none is configured.
const DefaultSchema = "compactor"

// filesIn returns the files that match a pattern, with the name of the schema in place of
// @schema@.
func filesIn(schema, pattern string) fstest.MapFS {
	out := fstest.MapFS{}
	names, _ := fs.Glob(files, pattern) // the pattern is valid, and the files are in the program
	for _, name := range names {
		raw, _ := files.ReadFile(name)
		out[name] = &fstest.MapFile{Data: bytes.ReplaceAll(raw, []byte("@schema@"), []byte(schema))}
	}
	return out
}

// Fingerprint returns a hash of all files. It identifies the installed functions, and
// template databases in tests.
func Fingerprint() string {
	h := sha256.New()
	for _, pattern := range []string{"*.sql", functionFiles} {
		all := filesIn("", pattern)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			h.Write(all[name].Data)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Migration is one numbered file, or all of functions/ with Version 0, and the time at
// which it was applied, zero if it is not.
type Migration struct {
	Version   int64     `json:"version,omitempty"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

// numbered returns the numbered files in order.
func numbered() (all []Migration) {
	for _, name := range slices.Sorted(maps.Keys(filesIn("", "*.sql"))) {
		version, _ := goose.NumericComponent(name) // goose would refuse another name
		all = append(all, Migration{Version: version, Name: name})
	}
	return all
}

// Newest returns the version of the last numbered file.
func Newest() int64 {
	all := numbered()
	return all[len(all)-1].Version
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// CheckSchema returns an error unless name is a lower-case identifier, which needs no
// quoting.
func CheckSchema(name string) error {
	if !schemaName.MatchString(name) {
		return fmt.Errorf("schema %q: want a lower-case identifier of letters, digits and _", name)
	}
	return nil
}

// versionTable is the table of goose in the schema.
const versionTable = "compactor_migrations"

// Up applies the pending migrations, installs the functions if they have changed, and
// returns both. Concurrent calls, also from other processes, wait for each other. A schema of
// a later program is left as it is: see Later.
func Up(ctx context.Context, dsn, schema string) ([]Migration, error) {
	return UpPartitioned(ctx, dsn, schema, 0)
}

// UpPartitioned is Up for an installation whose log is hash-partitioned by session. Tables
// without rows are made anew; later another number than there is is an error. Without
// partitions, an installation keeps the tables that it has.
func UpPartitioned(ctx context.Context, dsn, schema string, partitions int) (done []Migration, err error) {
	if partitions < 0 || partitions > MaxPartitions {
		return nil, fmt.Errorf("migrate up: %d partitions: want 1 to %d, or 0 for tables as they are", partitions, MaxPartitions)
	}
	err = locked(ctx, dsn, schema, func() error {
		done, err = up(ctx, dsn, schema, partitions)
		return err
	})
	if err != nil {
		return done, fmt.Errorf("migrate up: %w", err)
	}
	return done, nil
}

// lockPoll is the interval between attempts to take the lock of migrations.
const lockPoll = 200 * time.Millisecond

// locked calls f while no other process migrates this database. The lock is held by a
// transaction: behind a pooler, that of a session would stay with a server connection. A
// process that waits has no transaction, and so no server connection.
func locked(ctx context.Context, dsn, schema string, f func() error) error {
	conn, err := connect(ctx, dsn, schema)
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

// up does the work of Up under the lock.
func up(ctx context.Context, dsn, schema string, partitions int) (done []Migration, err error) {
	conn, err := connect(ctx, dsn, schema)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := refuseUnreleased(ctx, conn, schema); err != nil {
		return nil, err
	}
	if version, err := schemaVersion(ctx, conn, schema); err != nil || version > Newest() {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema); err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*conn.Config())
	defer db.Close()
	versions, err := database.NewStore(goose.DialectPostgres, schema+"."+versionTable)
	if err != nil {
		return nil, err
	}
	p, err := goose.NewProvider("", db, filesIn(schema, "*.sql"), goose.WithStore(versions), goose.WithDisableGlobalRegistry(true))
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
	if err := partition(ctx, conn, schema, partitions); err != nil {
		return done, err
	}
	installed, err := installFunctions(ctx, conn, schema)
	if installed {
		done = append(done, Migration{Name: functionsName})
	}
	return done, err
}

// Later returns the version of a schema that a later program has migrated, 0 for any other. The
// program before goes on with it, and its functions stay: during an upgrade, and for a way back.
func Later(ctx context.Context, dsn, schema string) (int64, error) {
	conn, err := connect(ctx, dsn, schema)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	version, err := schemaVersion(ctx, conn, schema)
	if version <= Newest() {
		version = 0
	}
	return version, err
}

// schemaVersion returns the last numbered file that was applied, 0 for none.
func schemaVersion(ctx context.Context, conn *pgx.Conn, schema string) (version int64, err error) {
	var exists bool
	err = conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", schema+"."+versionTable).Scan(&exists)
	if err == nil && exists {
		err = conn.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+schema+"."+versionTable).Scan(&version)
	}
	return version, err
}

// refuseUnreleased returns an error for a schema of a program from before the first release,
// whose table of versions had another name. No numbered file continues its tables.
func refuseUnreleased(ctx context.Context, conn *pgx.Conn, schema string) error {
	var found bool // schema_version alone may be of another program
	const query = "SELECT to_regclass($1 || '.schema_version') IS NOT NULL AND to_regclass($1 || '.installed_functions') IS NOT NULL AND to_regclass($1 || '.' || $2) IS NULL"
	if err := conn.QueryRow(ctx, query, schema, versionTable).Scan(&found); err != nil || !found {
		return err
	}
	var version int64
	if err := conn.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+schema+".schema_version").Scan(&version); err != nil {
		return err
	}
	return fmt.Errorf("schema %s was made before the first release (version %d in %[1]s.schema_version) and cannot be upgraded: "+
		"migrate an empty database or another database.schema, "+
		"and move the sessions there with `compactor export` of the program that made it and `compactor import`", schema, version)
}

// installFunctions executes all files in functions/ in one transaction, unless these
// very files are installed: then only that with the grants, if a role has other rights.
// Then it puts tables under row-level security that are not. installed is whether the
// files had changed.
func installFunctions(ctx context.Context, conn *pgx.Conn, schema string) (installed bool, err error) {
	inSchema := filesIn(schema, functionFiles)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Functions call each other, whatever the order of their files.
		if _, err := tx.Exec(ctx, "SET LOCAL check_function_bodies = off"); err != nil {
			return err
		}
		const record = ` AS f (hash) VALUES ($1)
			ON CONFLICT (only_row) DO UPDATE SET hash = excluded.hash, installed_at = now() WHERE f.hash <> excluded.hash`
		tag, err := tx.Exec(ctx, "INSERT INTO "+schema+".installed_functions"+record, Fingerprint())
		if err != nil {
			return err
		}
		// By name: the grants are last, the triggers before them, and views after the functions that they call.
		names := slices.Sorted(maps.Keys(inSchema))
		if installed = tag.RowsAffected() > 0; !installed {
			var amiss bool
			err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+schema+".rights_amiss(true))").Scan(&amiss)
			if err != nil || !amiss {
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

// Amiss names the rights of roles and the fences of row-level security that are not as the
// installed functions have them, such as after a restore without roles. Up sets them. Both are
// empty where other functions are installed, with which Up sets all of them.
func Amiss(ctx context.Context, dsn, schema string) (rights, fences []string, err error) {
	all, err := Status(ctx, dsn, schema)
	if err != nil || all[len(all)-1].AppliedAt.IsZero() {
		return nil, nil, err
	}
	conn, err := connect(ctx, dsn, schema)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	const query = `SELECT array(SELECT object FROM @schema@.rights_amiss(true) WHERE statement IS NOT NULL),
		array(SELECT object FROM @schema@.fences_amiss(true) WHERE statement IS NOT NULL)`
	err = conn.QueryRow(ctx, inSchema(query, schema)).Scan(&rights, &fences)
	return rights, fences, err
}

// Status returns all migrations in order, with the pending ones, and the functions as the
// last, which those of a later program count as. It creates nothing.
func Status(ctx context.Context, dsn, schema string) ([]Migration, error) {
	all, err := status(ctx, dsn, schema)
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	return all, nil
}

func status(ctx context.Context, dsn, schema string) ([]Migration, error) {
	conn, err := connect(ctx, dsn, schema)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	applied := map[string]time.Time{} // by version or hash
	// read adds the rows of a table, if it exists.
	read := func(table, columns string) error {
		var exists bool
		err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, schema+"."+table).Scan(&exists)
		if err != nil || !exists {
			return err
		}
		var key string
		var at time.Time
		rows, _ := conn.Query(ctx, "SELECT "+columns+" FROM "+schema+"."+table) // rows hold the error
		_, err = pgx.ForEachRow(rows, []any{&key, &at}, func() error {
			applied[key] = at.UTC()
			return nil
		})
		return err
	}
	if err := read(versionTable, "version_id::text, tstamp::timestamptz"); err != nil {
		return nil, err
	}
	if err := read("installed_functions", "hash, installed_at"); err != nil {
		return nil, err
	}
	all, functions := numbered(), Migration{Name: functionsName, AppliedAt: applied[Fingerprint()]}
	for i := range all {
		all[i].AppliedAt = applied[strconv.FormatInt(all[i].Version, 10)]
	}
	version, err := schemaVersion(ctx, conn, schema)
	if version > Newest() {
		at := applied[strconv.FormatInt(version, 10)]
		all = append(all, Migration{Version: version, Name: fmt.Sprintf("%05d, of a later version", version), AppliedAt: at})
		functions.AppliedAt = at
	}
	return append(all, functions), err
}

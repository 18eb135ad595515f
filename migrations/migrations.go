// Package migrations embeds the numbered SQL files of the schema and applies them with
// goose. In the files, @schema@ stands for the name of the schema.
package migrations

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// DefaultSchema is the schema of all objects if none is configured.
const DefaultSchema = "compactor"

// Fingerprint returns a hash of all migrations, as a key of template databases in tests.
func Fingerprint() string {
	h := sha256.New()
	names, _ := fs.Glob(files, "*.sql")
	for _, name := range names {
		raw, _ := files.ReadFile(name)
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Migration is one numbered file and the time at which it was applied, zero if it is not.
type Migration struct {
	Version   int64     `json:"version"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

// CheckSchema returns an error unless name is a lower-case identifier, which needs no
// quoting.
func CheckSchema(name string) error {
	if !schemaName.MatchString(name) {
		return fmt.Errorf("schema %q: want a lower-case identifier of letters, digits and _", name)
	}
	return nil
}

// Up applies the pending migrations and returns them. Concurrent calls, also from other
// processes, wait for each other.
func Up(ctx context.Context, dsn, schema string) ([]Migration, error) {
	var done []Migration
	err := with(ctx, dsn, schema, func(p *goose.Provider) error {
		results, err := p.Up(ctx)
		for _, r := range results {
			done = append(done, Migration{Version: r.Source.Version, Name: r.Source.Path})
		}
		return err
	})
	if err != nil {
		return done, fmt.Errorf("migrate up: %w", err)
	}
	return done, nil
}

// Status returns all migrations in order, with the pending ones.
func Status(ctx context.Context, dsn, schema string) ([]Migration, error) {
	var all []Migration
	err := with(ctx, dsn, schema, func(p *goose.Provider) error {
		states, err := p.Status(ctx)
		for _, s := range states {
			all = append(all, Migration{Version: s.Source.Version, Name: s.Source.Path, AppliedAt: s.AppliedAt.UTC()})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	return all, nil
}

func with(ctx context.Context, dsn, schema string, do func(*goose.Provider) error) error {
	if err := CheckSchema(schema); err != nil {
		return err
	}
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("database url: %w", err)
	}
	db := stdlib.OpenDB(*cfg)
	defer db.Close()
	if err := ensureSchema(ctx, db, schema); err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	versions, err := database.NewStore(goose.DialectPostgres, schema+".schema_version")
	if err != nil {
		return err
	}
	inSchema, err := migrationsIn(schema)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider("", db, inSchema,
		goose.WithStore(versions), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return do(p)
}

// migrationsIn returns the files with the name of the schema in place of @schema@.
func migrationsIn(schema string) (fs.FS, error) {
	names, err := fs.Glob(files, "*.sql")
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

// ensureSchema creates the schema. CREATE SCHEMA IF NOT EXISTS can fail if it runs
// concurrently, so it is tried twice.
func ensureSchema(ctx context.Context, db *sql.DB, schema string) error {
	var err error
	for range 2 {
		if _, err = db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema); err == nil {
			return nil
		}
	}
	return err
}

// Package migrations holds the numbered SQL of the schema, embedded, and runs it
// with goose. It knows nothing of sessions or runs beyond the files.
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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// DefaultSchema is where the objects live unless the configuration says otherwise.
const DefaultSchema = "compactor"

// Fingerprint changes whenever a migration does. Tests key their templates by it.
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

// Migration is one numbered file and when it was applied (zero: not yet).
type Migration struct {
	Version   int64     `json:"version"`
	Name      string    `json:"name"`
	AppliedAt time.Time `json:"applied_at,omitzero"`
}

// CheckSchema says whether name can be used as the schema: a plain lower-case
// identifier, so that it needs no quoting anywhere.
func CheckSchema(name string) error {
	if !schemaName.MatchString(name) {
		return fmt.Errorf("schema %q: want a lower-case identifier of letters, digits and _", name)
	}
	return nil
}

// Up applies what is missing and returns it. Several processes may call it at
// once: a session lock in Postgres lets one of them work.
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

// Status lists every migration, applied or not, in order.
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
	p, err := goose.NewProvider("", db, inSchema{files, schema},
		goose.WithStore(versions), goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return do(p)
}

// ensureSchema makes the schema. CREATE SCHEMA IF NOT EXISTS can collide with
// itself, so a second try tells a race from a refusal.
func ensureSchema(ctx context.Context, db *sql.DB, schema string) error {
	var err error
	for range 2 {
		if _, err = db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema); err == nil {
			return nil
		}
	}
	return err
}

// inSchema shows the files with the schema's name filled in.
type inSchema struct {
	fs.FS
	schema string
}

func (f inSchema) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || info.IsDir() {
		return file, err
	}
	defer file.Close()
	raw, err := fs.ReadFile(f.FS, name)
	if err != nil {
		return nil, err
	}
	text := bytes.ReplaceAll(raw, []byte("@schema@"), []byte(f.schema))
	return &sqlFile{Reader: *bytes.NewReader(text), info: sqlInfo{info, int64(len(text))}}, nil
}

type sqlFile struct {
	bytes.Reader
	info sqlInfo
}

func (f *sqlFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *sqlFile) Close() error               { return nil }

type sqlInfo struct {
	fs.FileInfo
	size int64
}

func (i sqlInfo) Size() int64 { return i.size }

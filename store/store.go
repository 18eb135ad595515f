// Package store keeps sessions, messages and the ledger of runs in Postgres. It
// is the truth of the system: whatever another part loses, this has.
//
// It knows the schema and nothing of strategies, policies, queues or the clock
// (times come from the database). Everything that changes a session goes through
// the SQL functions that applications use too. Besides migrations, it is the
// only package that imports pgx.
package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sessionstore/compactor/migrations"
)

// Config says where the store is.
type Config struct {
	// URL is a Postgres DSN, as URL or key=value.
	URL string
	// Schema holds all objects. Defaults to "compactor".
	Schema string
	// MaxConns bounds the pool, at most MostConns. Defaults to DefaultConns.
	MaxConns int
	// StatementTimeout bounds each statement. Defaults to 60 s.
	StatementTimeout time.Duration
	// LockTimeout bounds the wait for a writer's lock on a session. Defaults to 5 s.
	LockTimeout time.Duration
}

// Sizes of the pool. Runs share round trips, so more of them need no more connections.
const (
	DefaultConns = 20
	MostConns    = 10_000
)

func (c Config) withDefaults() Config {
	if c.Schema == "" {
		c.Schema = migrations.DefaultSchema
	}
	if c.MaxConns == 0 {
		c.MaxConns = DefaultConns
	}
	if c.StatementTimeout == 0 {
		c.StatementTimeout = 60 * time.Second
	}
	if c.LockTimeout == 0 {
		c.LockTimeout = 5 * time.Second
	}
	return c
}

// Store is a pool of connections to one schema. Safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	schema string

	loads *batcher[RunID, *Claim]
	ends  *batcher[endRunArgs, endRunResult]
}

// Open connects and pings once. The caller closes the store.
func Open(ctx context.Context, c Config) (*Store, error) {
	c = c.withDefaults()
	if err := migrations.CheckSchema(c.Schema); err != nil {
		return nil, err
	}
	if c.MaxConns < 0 || c.MaxConns > MostConns {
		return nil, fmt.Errorf("%w: %d connections: want 1 to %d", ErrInvalid, c.MaxConns, MostConns)
	}
	cfg, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errors.New("database url: not a valid Postgres DSN") // pgx's text may quote the password
	}
	cfg.MaxConns = int32(c.MaxConns) //nolint:gosec // a small configured number
	cfg.ConnConfig.RuntimeParams["application_name"] = "compactor"
	cfg.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(c.StatementTimeout.Milliseconds(), 10)
	cfg.ConnConfig.RuntimeParams["lock_timeout"] = strconv.FormatInt(c.LockTimeout.Milliseconds(), 10)
	cfg.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "60000"
	// Every query is short: compiling one costs more than running it.
	cfg.ConnConfig.RuntimeParams["jit"] = "off"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", scrub(err))
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to database at %s: %w", host(cfg.ConnConfig), scrub(err))
	}
	s := &Store{pool: pool, schema: c.Schema}
	// Under load a few connections do the work of many, with a fraction of the commits.
	s.loads = newBatcher(maxBatches, maxBatchSize, s.loadBatch)
	s.ends = newBatcher(maxBatches, maxBatchSize, s.endBatch)
	return s, nil
}

// How many runs are loaded, or ended, in one round trip at the most, and how many
// such round trips are under way at a time. Ending holds the lock on each session
// until all are done, which has to be a moment.
const (
	maxBatchSize = 16
	maxBatches   = 4
)

// Close waits for connections in use and closes the pool.
func (s *Store) Close() { s.pool.Close() }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return mapError(s.pool.Ping(ctx)) }

// q puts the configured schema into a query written for the default one.
func (s *Store) q(sql string) string {
	if s.schema == migrations.DefaultSchema {
		return sql
	}
	return strings.ReplaceAll(sql, migrations.DefaultSchema+".", s.schema+".")
}

func host(c *pgx.ConnConfig) string { return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))) }

// The kinds of error a caller can act on; match them with errors.Is.
var (
	// ErrNotFound: the session, run or message does not exist.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: an argument is out of range or a message is not one.
	ErrInvalid = errors.New("invalid")
	// ErrConflict: the id is there already with other content.
	ErrConflict = errors.New("conflict")
	// ErrStale: the session has moved on since it was read.
	ErrStale = errors.New("stale")
	// ErrInUse: something else stands in the way; the message names it.
	ErrInUse = errors.New("in use")
	// ErrNotApplicable: the run's state does not allow it.
	ErrNotApplicable = errors.New("not applicable")
	// ErrBusy: a lock was not to be had in time; try again later.
	ErrBusy = errors.New("busy")
	// ErrUnavailable: the database could not be reached or is restarting.
	ErrUnavailable = errors.New("database unavailable")
	// ErrNotMigrated: the schema or part of it is missing.
	ErrNotMigrated = errors.New("schema is missing or old: run `compactor migrate up`")
)

// Error is a refusal by the database in words for the user. It unwraps to one of
// the sentinels above.
type Error struct {
	Kind    error
	Message string
	Hint    string
}

func (e *Error) Error() string {
	if e.Hint != "" {
		return e.Message + " (" + e.Hint + ")"
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Kind }

// mapError turns driver errors into the kinds above. Texts of the database that
// could hold content are not passed on.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		// Raised by our own functions: their texts are made for users.
		raised := func(kind error) error { return &Error{Kind: kind, Message: pg.Message, Hint: pg.Hint} }
		switch {
		case pg.Code == "P0002":
			return raised(ErrNotFound)
		case pg.Code == "22023":
			return raised(ErrInvalid)
		case pg.Code == "23505" && pg.ConstraintName == "":
			return raised(ErrConflict)
		case pg.Code == "40001" && pg.Hint == "" && strings.Contains(pg.Message, "is at revision"):
			return raised(ErrStale)
		case pg.Code == "55006":
			return raised(ErrInUse)
		case pg.Code == "55000":
			return raised(ErrNotApplicable)
		case pg.Code == "55P03", pg.Code == "40P01", pg.Code == "40001", pg.Code == "23505":
			return &Error{Kind: ErrBusy, Message: "database: " + pg.Message}
		case pg.Code == "3F000", pg.Code == "42P01", pg.Code == "42883":
			return ErrNotMigrated
		case strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "57"), strings.HasPrefix(pg.Code, "53"):
			return &Error{Kind: ErrUnavailable, Message: "database: " + pg.Message + " (" + pg.Code + ")"}
		case strings.HasPrefix(pg.Code, "54"): // nested too deeply, an id too long to index
			return &Error{Kind: ErrInvalid, Message: "database refused a value: " + pg.Message}
		case strings.HasPrefix(pg.Code, "22"):
			return &Error{Kind: ErrInvalid, Message: "database refused a value: " + pg.Code}
		}
		return &Error{Kind: errInternal, Message: "database: " + pg.Message + " (" + pg.Code + ")"}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Kind: ErrUnavailable, Message: "database: " + scrub(err).Error()}
}

var errInternal = errors.New("database error")

// scrub keeps connection errors from quoting a DSN.
func scrub(err error) error {
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return connect.Unwrap()
	}
	return err
}

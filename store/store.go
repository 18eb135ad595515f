package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sessionstore/compactor/migrations"
)

// Config configures a Store.
type Config struct {
	// URL is a Postgres DSN, as URL or key=value.
	URL string
	// Schema holds all objects. Defaults to "compactor".
	Schema string
	// MaxConns bounds the pool, at most MostConns. Defaults to DefaultConns.
	MaxConns int
	// StatementTimeout bounds each statement. Defaults to 60 s.
	StatementTimeout time.Duration
	// LockTimeout bounds the wait for the lock of a session. Defaults to 5 s.
	LockTimeout time.Duration
	// By names who changes something through this store, for the audit log: see Store.By.
	By string
	// Observe is called after each round trip, for metrics. It may be nil.
	Observe ObserveFunc
}

// Sizes of the pool. Concurrent runs share round trips, so more runs need no more
// connections.
const (
	DefaultConns = 20
	MostConns    = 10_000
)

func (c Config) withDefaults() Config {
	c.Schema = cmp.Or(c.Schema, migrations.DefaultSchema)
	c.MaxConns = cmp.Or(c.MaxConns, DefaultConns)
	c.StatementTimeout = cmp.Or(c.StatementTimeout, 60*time.Second)
	c.LockTimeout = cmp.Or(c.LockTimeout, 5*time.Second)
	return c
}

// Store is a pool of connections to one schema, with the methods of applications. Worker,
// Scheduler, Operator, Admin and Reader have the methods of the other callers, on the same
// connections. Safe for concurrent use.
type Store struct {
	Worker    Worker
	Scheduler Scheduler
	Operator  Operator
	Admin     Admin
	Reader    Reader

	pool   *pool
	schema string

	loads    *batcher[RunID, *Claim]
	ends     *batcher[endRunArgs, endRunResult]
	lateEnds *batcher[endRunArgs, endRunResult] // one at a time, waiting for its lock

	ended notifier
	relay sleeper
	turns queueTurns
}

// Worker adds the protocol of runs to a Store.
type Worker struct{ *Store }

// Scheduler adds deliveries, sweeps, and the upkeep of times, thresholds and the archive to a Store.
type Scheduler struct{ *Store }

// Operator adds reads of the fleet and its control to a Store.
type Operator struct{ *Store }

// Admin adds audits and repairs, the archive, and erasure to a Store.
type Admin struct{ *Store }

// Reader adds reads of the view and the history of a session, of the changes and summaries that runs
// made, and of events, to a Store.
type Reader struct{ *Store }

// Open connects to the database, also through a pooler in transaction mode. The caller must
// Close the store.
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
	if c.Observe != nil {
		cfg.ConnConfig.Tracer = tracer{c.Observe}
	}
	settings := map[string]string{
		"statement_timeout":                   strconv.FormatInt(c.StatementTimeout.Milliseconds(), 10),
		"lock_timeout":                        strconv.FormatInt(c.LockTimeout.Milliseconds(), 10),
		"idle_in_transaction_session_timeout": "60000",
		// Every query is short: compiling one costs more than running it.
		"jit": "off",
	}
	if c.By != "" {
		settings["compactor.by"] = c.By
	}
	pool, err := openPool(ctx, cfg, settings)
	if err != nil {
		return nil, err
	}
	s := &Store{pool: pool, schema: c.Schema}
	s.Worker, s.Scheduler, s.Operator, s.Admin, s.Reader = Worker{s}, Scheduler{s}, Operator{s}, Admin{s}, Reader{s}
	// Batches need fewer connections and fewer commits under load.
	s.loads = newBatcher(maxBatches, maxBatchSize, s.Worker.loadBatch)
	s.ends = newBatcher(maxBatches, maxBatchSize, s.endBatch)
	// Half of the connections may wait for the lock of a session.
	s.lateEnds = newBatcher(max(1, c.MaxConns/2), 1, s.endBatch)
	s.ended.send = func(ended []RunID) { s.notify(ctx, ended) }
	s.relay.hangUp = func(conn *pgx.Conn) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}
	return s, nil
}

// Bounds of the batches of Load and of Apply and Finish: calls in a batch, and batches in
// flight. A batch of ends locks its sessions until it commits, so it is kept small.
const (
	maxBatchSize = 16
	maxBatches   = 4
)

// Bound returns the store for the methods of applications, Operator and Admin, of which no
// statement reaches another tenant: each runs as on a connection that is bound to the tenant, and
// with the rights of the role operator, under row-level security, if asOperator is set (see
// MayBeOperator). It shares the connections and must not be closed.
func (s *Store) Bound(tenant string, asOperator bool) *Store {
	role := ""
	if asOperator {
		role = migrations.Roles(s.schema)[2]
	}
	return withPool(s, s.pool.bound(tenant, role))
}

// By returns the store for the methods of applications, Operator and Admin under the name of who calls
// them. Changes of single sessions by a name (pins, and the model, labels, parent and policy of a
// session) are in the audit log with it; those without one are an application's, and are not. It shares
// the connections and must not be closed.
func (s *Store) By(name string) *Store { return withPool(s, s.pool.by(name)) }

// withPool returns a store with its statements on another pool of the same connections.
func withPool(s *Store, p *pool) *Store {
	b := &Store{pool: p, schema: s.schema}
	b.Worker, b.Scheduler, b.Operator, b.Admin, b.Reader = Worker{b}, Scheduler{b}, Operator{b}, Admin{b}, Reader{b}
	b.ended.send = s.ended.send
	return b
}

// MayBeOperator reports whether the login may take the role operator, which `compactor migrate up`
// creates, in this schema.
func (s *Store) MayBeOperator(ctx context.Context) (bool, error) {
	const query = `SELECT coalesce((SELECT pg_has_role(oid, 'MEMBER') AND has_schema_privilege(oid, $2, 'USAGE') FROM pg_roles WHERE rolname = $1), false)`
	return queryRow(ctx, s, "role operator", pgx.RowTo[bool], query, migrations.Roles(s.schema)[2], s.schema)
}

// Close sends the last notifications, waits for connections in use and closes the pool.
func (s *Store) Close() {
	s.ended.flush()
	s.relay.mu.Lock()
	s.relay.close()
	s.relay.mu.Unlock()
	s.pool.Close()
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return mapError(s.pool.Ping(ctx)) }

// CheckSchema returns an ErrNotMigrated unless the schema has all migrations that this
// program has. Those of later versions do no harm.
func (s *Store) CheckSchema(ctx context.Context) error {
	const query = `SELECT coalesce(max(version_id), 0) FROM compactor.compactor_migrations`
	version, err := queryRow(ctx, s, "schema version", pgx.RowTo[int64], query)
	if newest := migrations.Newest(); err == nil && version < newest {
		err = fmt.Errorf("schema %s is at version %d, this program needs %d: %w", s.schema, version, newest, ErrNotMigrated)
	}
	return err
}

// Schema returns the schema of all objects of a store. It is for packages below this one, as the next two functions are.
func Schema(s *Store) string { return s.schema }

// InTx calls f with a transaction on the connections of a store, with its settings, and commits it unless f returns
// an error. op prefixes errors, of which those of the database are as those of methods.
func InTx(ctx context.Context, s *Store, op string, f func(tx pgx.Tx) error) error {
	return wrap(op, pgx.BeginFunc(ctx, s.pool, f))
}

// MapError returns an error of the driver as the methods of a Store return it.
func MapError(err error) error { return mapError(err) }

// Pooled reports whether the connections lead through a pooler.
func (s *Store) Pooled() bool { return s.pool.pooled }

// q replaces the default schema in a query with the configured one.
func (s *Store) q(sql string) string {
	if s.schema == migrations.DefaultSchema {
		return sql
	}
	return strings.ReplaceAll(sql, migrations.DefaultSchema+".", s.schema+".")
}

// queryRows returns the rows of a query, read by read. op prefixes errors.
func queryRows[T any](ctx context.Context, s *Store, op string, read pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	out, err := collectRows(ctx, s, s.pool, read, query, args...)
	return out, wrap(op, err)
}

// collectRows returns the rows of a query on a pool or a transaction, read by read.
func collectRows[T any](ctx context.Context, s *Store, db querier, read pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, _ := db.Query(ctx, s.q(query), args...) // rows hold the error
	return pgx.CollectRows(rows, read)
}

// queryRow returns the single row of a query, read by read. op prefixes errors.
// ErrNotFound: there is no row.
func queryRow[T any](ctx context.Context, s *Store, op string, read pgx.RowToFunc[T], query string, args ...any) (T, error) {
	rows, _ := s.pool.Query(ctx, s.q(query), args...) // rows hold the error
	out, err := pgx.CollectExactlyOneRow(rows, read)
	return out, wrap(op, err)
}

// execute executes a statement. op prefixes errors.
func execute(ctx context.Context, s *Store, op, query string, args ...any) error {
	_, err := affected(ctx, s, op, query, args...)
	return err
}

// affected executes a statement and returns the number of rows that it affected. op prefixes
// errors.
func affected(ctx context.Context, s *Store, op, query string, args ...any) (int64, error) {
	tag, err := s.pool.Exec(ctx, s.q(query), args...)
	return tag.RowsAffected(), wrap(op, err)
}

func host(c *pgx.ConnConfig) string { return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))) }

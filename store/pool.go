package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pool is a pgxpool.Pool whose statements run with given settings.
//
// Direct connections get the settings as runtime parameters. A pooler in transaction mode, such
// as PgBouncer, refuses these, and a later SET would stay with a server connection that other
// clients use next. So through a pooler each transaction begins with the settings, in the round
// trip of its first statement. Statements that were prepared on one server connection are not
// known on another, so pgx then caches their descriptions only.
//
// A pool that is bound to a tenant begins each transaction in the same way, with more settings.
type pool struct {
	*pgxpool.Pool
	pooled  bool
	set     string // the statement that begins each transaction, with setArgs; "" for none
	setArgs []any
}

// bound returns a pool of the same connections whose transactions are bound to a tenant, with the
// rights of a role unless that is empty.
func (p *pool) bound(tenant, role string) *pool {
	set := cmp.Or(p.set, "SELECT ''") + ", set_config('compactor.tenant', $1, true)"
	if role != "" { // last, as it may not have the right to set the others
		set += ", set_config('role', '" + role + "', true)"
	}
	return &pool{Pool: p.Pool, pooled: p.pooled, set: set, setArgs: []any{tenant}}
}

// by returns a pool of the same connections whose transactions name who changes something.
func (p *pool) by(name string) *pool {
	args := append(slices.Clone(p.setArgs), any(name))
	set := fmt.Sprintf("%s, set_config('compactor.by', $%d, true)", cmp.Or(p.set, "SELECT ''"), len(args))
	return &pool{Pool: p.Pool, pooled: p.pooled, set: set, setArgs: args}
}

// openPool connects once, to find out whether there is a pooler.
func openPool(ctx context.Context, cfg *pgxpool.Config, settings map[string]string) (*pool, error) {
	pooled, err := behindPooler(ctx, cfg.ConnConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to database at %s: %w", host(cfg.ConnConfig), scrub(err))
	}
	p := &pool{pooled: pooled}
	if pooled {
		var set []string
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			set = append(set, fmt.Sprintf("set_config('%s', '%s', true)", name, strings.ReplaceAll(settings[name], "'", "''")))
		}
		p.set = "SELECT " + strings.Join(set, ", ")
	} else {
		maps.Copy(cfg.ConnConfig.RuntimeParams, settings)
	}
	switch mode := &cfg.ConnConfig.DefaultQueryExecMode; {
	case *mode == pgx.QueryExecModeExec, *mode == pgx.QueryExecModeSimpleProtocol, // which know no types of arguments
		pooled && *mode == pgx.QueryExecModeCacheStatement:
		*mode = pgx.QueryExecModeCacheDescribe
	}
	if p.Pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open database: %w", scrub(err))
	}
	return p, nil
}

// behindPooler reports whether the connection is one to a pooler: a pooler reports process ids
// that are not those of the server.
func behindPooler(ctx context.Context, cfg *pgx.ConnConfig) (bool, error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var pid uint32
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	return pid != conn.PgConn().PID(), err
}

// SendBatch sends a batch, which is one transaction.
func (p *pool) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if p.set == "" {
		return p.Pool.SendBatch(ctx, b)
	}
	var all pgx.Batch
	all.Queue(p.set, p.setArgs...)
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	results := p.Pool.SendBatch(ctx, &all)
	_, _ = results.Exec() // the next results have the error as well
	return results
}

// Exec executes a statement in a transaction of its own.
func (p *pool) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if p.set == "" {
		return p.Pool.Exec(ctx, sql, args...)
	}
	var b pgx.Batch
	b.Queue(sql, args...)
	results := p.SendBatch(ctx, &b)
	tag, err := results.Exec()
	return tag, cmp.Or(err, results.Close())
}

// Query executes a query in a transaction of its own, which ends when the rows are closed.
func (p *pool) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if p.set == "" {
		return p.Pool.Query(ctx, sql, args...)
	}
	var b pgx.Batch
	b.Queue(sql, args...)
	results := p.SendBatch(ctx, &b)
	rows, err := results.Query()
	all := &onlyRows{Rows: rows, results: results}
	if err != nil {
		all.Close()
	}
	return all, err
}

// QueryRow executes a query in a transaction of its own and returns its first row.
func (p *pool) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if p.set == "" {
		return p.Pool.QueryRow(ctx, sql, args...)
	}
	rows, _ := p.Query(ctx, sql, args...) // rows hold the error
	return firstRow{rows}
}

// Begin begins a transaction.
func (p *pool) Begin(ctx context.Context) (pgx.Tx, error) { return p.BeginTx(ctx, pgx.TxOptions{}) }

// BeginTx begins a transaction.
func (p *pool) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	tx, err := p.Pool.BeginTx(ctx, o)
	if err != nil || p.set == "" {
		return tx, err
	}
	if _, err := tx.Exec(ctx, p.set, p.setArgs...); err != nil {
		_ = tx.Rollback(ctx)
		return nil, err
	}
	return tx, nil
}

// onlyRows are the rows of a batch of one query.
type onlyRows struct {
	pgx.Rows
	results pgx.BatchResults
	err     error // of the end of the transaction
}

// Next implements pgx.Rows.
func (r *onlyRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

// Close implements pgx.Rows.
func (r *onlyRows) Close() {
	r.Rows.Close()
	r.err = r.results.Close()
}

// Err implements pgx.Rows.
func (r *onlyRows) Err() error { return cmp.Or(r.Rows.Err(), r.err) }

// firstRow is the first of some rows.
type firstRow struct{ rows pgx.Rows }

// Scan implements pgx.Row.
func (r firstRow) Scan(dest ...any) error {
	defer r.rows.Close()
	if !r.rows.Next() {
		return cmp.Or(r.rows.Err(), pgx.ErrNoRows)
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

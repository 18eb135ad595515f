package bench

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// database runs the statements of benchmarks on the schema of st.
type database struct {
	pool *pgxpool.Pool
	st   *store.Store
}

// openDatabase opens a pool of conns connections with the settings of the store's.
func openDatabase(ctx context.Context, url string, conns int, st *store.Store) (*database, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("database url: %w", err)
	}
	if conns > 0 {
		cfg.MaxConns = int32(min(conns, store.MostConns)) //nolint:gosec // bounded
	}
	cfg.ConnConfig.RuntimeParams["jit"] = "off"
	cfg.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{Schema}.Sanitize()
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &database{pool, st}, nil
}

// baseline performs the minimal work of one compaction: it loads the view by an
// index-only scan and writes ranges, an exclusion and a ledger row in one transaction,
// without queue, claim or planning. It drops the oldest messages after the first until
// at most target tokens are left.
func (d *database) baseline(ctx context.Context, sid int64, target chat.Tokens) error {
	metas, err := d.st.Operator.ViewMetas(ctx, sid)
	if err != nil {
		return err
	}
	var total, freed chat.Tokens
	for _, m := range metas {
		total += m.Tokens
	}
	cut := 1
	for cut < len(metas) && total-freed > target {
		freed += metas[cut].Tokens
		cut++
	}
	out := chat.Ranges{{Lo: metas[1].Seq, Hi: metas[cut-1].Seq + 1}}.String()
	const query = `
		WITH s AS (SELECT * FROM sessions WHERE sid = $1 FOR NO KEY UPDATE),
		r AS (INSERT INTO runs (sid, trigger, status, outcome, in_force, revision, base_run, snapshot_seq, applied_seq,
				live_before, live_after, appended, messages_before, messages_after, tokens_before, tokens_after, started_at, ended_at)
			SELECT sid, 'application', 'applied', 'applied', true, revision + 1, head_run, last_seq, last_seq, live, live - $2::int8multirange,
				'{}', live_messages, live_messages - $3, live_tokens, live_tokens - $4, now(), now() FROM s RETURNING id, live_after),
		e AS (INSERT INTO exclusions (run, sid, reason, seqs) SELECT id, $1, 'truncation', $2 FROM r)
		UPDATE sessions t SET live = r.live_after, revision = t.revision + 1, head_run = r.id,
			live_messages = t.live_messages - $3, live_tokens = t.live_tokens - $4, due = false
		FROM r WHERE t.sid = $1`
	if _, err = d.pool.Exec(ctx, query, sid, out, cut-1, int64(freed)); err != nil {
		return fmt.Errorf("baseline: %w", err)
	}
	return nil
}

// walPosition returns the bytes of write-ahead log written since initdb.
func (d *database) walPosition(ctx context.Context) (n int64, err error) {
	err = d.pool.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint`).Scan(&n)
	return n, err
}

// vacuum does the maintenance after filling, so that no round pays for it. The first change of a page after a checkpoint
// writes all of it to the log: locking the sessions does that for theirs, as the log is counted without checkpoints.
func (d *database) vacuum(ctx context.Context) error {
	const first = `SELECT count(*) FROM (SELECT FROM sessions FOR KEY SHARE) s`
	for _, sql := range []string{`VACUUM (ANALYZE) message_log`, `VACUUM (ANALYZE) message_body`, `VACUUM (ANALYZE) sessions`, `CHECKPOINT`, first} {
		if _, err := d.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("vacuum: %w", err)
		}
	}
	return nil
}

// sweepTimes returns the seconds between the first run of a sweep being queued and its
// last one ending, and the numbers of ended and of applied runs.
func (d *database) sweepTimes(ctx context.Context, sweep int64) (seconds float64, ended, applied int64, err error) {
	const query = `
		SELECT coalesce(extract(epoch FROM max(ended_at) - min(queued_at)), 0)::float8, count(ended_at),
			count(*) FILTER (WHERE status = 'applied')
		FROM runs WHERE sweep = $1`
	err = d.pool.QueryRow(ctx, query, sweep).Scan(&seconds, &ended, &applied)
	return seconds, ended, applied, err
}

// runs returns the mean tokens of the views after all applied runs, and the median and the 95th percentile
// of their times in milliseconds, from the start to the end.
func (d *database) runs(ctx context.Context) (after int64, p50, p95 float64, err error) {
	const query = `
		SELECT coalesce(avg(tokens_after), 0)::bigint,
			coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY ms), 0), coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY ms), 0)
		FROM (SELECT tokens_after, (1000 * extract(epoch FROM ended_at - started_at))::float8 AS ms FROM runs WHERE status = 'applied') x`
	err = d.pool.QueryRow(ctx, query).Scan(&after, &p50, &p95)
	return after, p50, p95, err
}

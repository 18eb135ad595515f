package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sweep is one pass over the sessions that are due.
type Sweep struct {
	ID     int64
	Entry  string
	Tick   time.Time
	Queued int64
}

// FireTick is FireTickWithin without a window.
func (s *Store) FireTick(ctx context.Context, entry string, tick time.Time, by string) (bool, error) {
	return s.FireTickWithin(ctx, entry, tick, by, 0)
}

// FireTickWithin starts the sweep of a cron tick. It returns false if that tick was fired
// before: of several schedulers one fires. The sweep stops when window has passed since
// the tick, unless it is 0; the next tick of the entry then opens it again before its own.
// A sweep that has not begun stands for that of a later tick.
func (s *Store) FireTickWithin(ctx context.Context, entry string, tick time.Time, by string, window time.Duration) (bool, error) {
	const query = `
		WITH fired AS (INSERT INTO compactor.cron_ticks (entry, tick, fired_by) VALUES ($1, $2, $3)
			ON CONFLICT DO NOTHING RETURNING $2::timestamptz + nullif($4::interval, '0') AS window_end),
		reopened AS (UPDATE compactor.sweeps w SET status = 'open', reason = '', changed_by = '', changed_at = now(), ended_at = NULL, window_end = fired.window_end
			FROM fired WHERE w.entry = $1 AND w.status = 'stopped' AND w.reason = 'window_ended'),
		sweep AS (INSERT INTO compactor.sweeps (entry, tick, window_end) SELECT $1, $2, window_end FROM fired
			WHERE NOT EXISTS (SELECT FROM compactor.sweeps WHERE entry = $1 AND due IS NULL AND status IN ('open', 'stopped')) ON CONFLICT DO NOTHING)
		SELECT count(*) = 1 FROM fired`
	return queryRow(ctx, s, "fire tick", pgx.RowTo[bool], query, entry, tick, by, window)
}

// LastTick returns the latest fired tick of an entry; the zero time if there is none.
func (s *Store) LastTick(ctx context.Context, entry string) (time.Time, error) {
	const query = `SELECT max(tick) FROM compactor.cron_ticks WHERE entry = $1`
	tick, err := queryRow(ctx, s, "last tick", pgx.RowTo[*time.Time], query, entry)
	if err != nil || tick == nil {
		return time.Time{}, err
	}
	return *tick, nil
}

// OpenSweeps returns the sweeps to take pages of: of those of an entry and tenant, the
// oldest that is open.
func (s *Store) OpenSweeps(ctx context.Context) ([]Sweep, error) {
	const query = `
		SELECT DISTINCT ON (entry, tenant) id, entry, tick, queued FROM compactor.sweeps
		WHERE ended_at IS NULL AND status = 'open' ORDER BY entry, tenant, id`
	return queryRows(ctx, s, "open sweeps", pgx.RowToStructByPos[Sweep], query)
}

// SweepPage queues runs for up to limit due sessions of an open sweep and advances it, in
// one transaction. Tenants take turns. A run that is under way, or queued for another
// reason, stands for that of the sweep, unless it only plans. The caller enqueues the runs;
// Undelivered returns those that no worker picked up, after grace. done reports that the
// sweep is not open, or not any more: it has passed all sessions, its window has ended, or
// an operator has paused or cancelled it.
func (s *Store) SweepPage(ctx context.Context, sweep int64, limit int, grace time.Duration) (page []Delivery, done bool, err error) {
	const query = `SELECT runs, status IS DISTINCT FROM 'open' FROM compactor.sweep_page($1, $2, $3)`
	var runs []RunID
	if err := s.pool.QueryRow(ctx, s.q(query), sweep, limit, grace).Scan(&runs, &done); err != nil {
		return nil, false, wrap("sweep", err)
	}
	for _, run := range runs {
		page = append(page, Delivery{Run: run, Attempt: 1, Trigger: TriggerNightly})
	}
	return page, done, nil
}

package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sweep is one pass over the sessions that are due.
type Sweep struct {
	ID     int64
	Entry  string
	Tick   time.Time
	Queued int64
	// Waits reports that it begins when the sessions have the policies of the last change.
	Waits bool
}

// Tick is a tick of a schedule, with the options of its sweep.
type Tick struct {
	Entry string // the name of the schedule
	At    time.Time
	By    string
	// Source is one of the constants below; "" is SourceSchedule.
	Source string
	Tenant string // the only one that its sweep goes over; empty for all
	// WindowEnd is when its sweep stops; zero is never.
	WindowEnd time.Time
	// Overlap is buffer_one, skip or cancel_other, as in policy.Schedule; "" is buffer_one.
	Overlap string
	// Canary is the share of the sessions that its sweep runs first, as in SweepOptions; 0 is none.
	Canary float64
	// PauseSchedule pauses the schedule if the sweep stops for its failures.
	PauseSchedule bool
	// Missed records the tick as too old, and starts nothing.
	Missed bool
}

// The sources of ticks.
const (
	SourceSchedule = "schedule"
	SourceOperator = "operator" // a sweep that an operator starts now
	SourceBackfill = "backfill" // an operator's, for a tick that started nothing at its time
)

// The outcomes of ticks, empty for one that was fired before.
const (
	TickFired     = "fired"     // it started a sweep
	TickCoalesced = "coalesced" // a sweep that has not begun stands for its own
	TickOverlap   = "overlap"   // an earlier sweep was not done, and the schedule skips then
	TickPaused    = "paused"    // the schedule was paused
	TickMissed    = "missed"    // it was found too late
)

// Fire fires a tick and returns its outcome, "" if it was fired before: of several schedulers
// one fires. A sweep that was stopped at the end of its window continues, unless the tick
// cancels it, and one that has not begun replaces that of the tick. A backfill also fires ticks
// that ended as TickOverlap, TickPaused or TickMissed. Fire returns the sweep that was started
// or replaces the tick's, 0 for none.
func (s Scheduler) Fire(ctx context.Context, t Tick) (outcome string, sweep int64, err error) {
	const query = `SELECT coalesce(outcome, ''), coalesce(sweep, 0) FROM compactor.fire_tick($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	var end *time.Time
	if !t.WindowEnd.IsZero() {
		end = &t.WindowEnd
	}
	err = s.pool.QueryRow(ctx, s.q(query), t.Entry, t.At, t.By, cmp.Or(t.Source, SourceSchedule), t.Tenant, end,
		cmp.Or(t.Overlap, "buffer_one"), t.PauseSchedule, t.Missed, t.Canary).Scan(&outcome, &sweep)
	return outcome, sweep, wrap("fire tick", err)
}

// FireTick calls Fire for a sweep over all tenants without a window. It returns false if that
// tick was fired before.
func (s Scheduler) FireTick(ctx context.Context, entry string, tick time.Time, by string) (bool, error) {
	outcome, _, err := s.Fire(ctx, Tick{Entry: entry, At: tick, By: by})
	return outcome != "", err
}

// LastTick returns the latest tick of an entry that is decided, leaving out sweeps that
// operators wanted; the zero time if there is none.
func (s Scheduler) LastTick(ctx context.Context, entry string) (time.Time, error) {
	const query = `SELECT max(tick) FROM compactor.cron_ticks WHERE entry = $1 AND source <> 'operator'`
	tick, err := queryRow(ctx, s.Store, "last tick", pgx.RowTo[*time.Time], query, entry)
	if err != nil || tick == nil {
		return time.Time{}, err
	}
	return *tick, nil
}

// KeepTicks is the time for which ticks are kept.
const KeepTicks = 90 * 24 * time.Hour

// PurgeTicks deletes up to limit ticks older than age, except the latest of each entry, which
// LastTick returns, and returns their number. A deleted tick could be fired again.
func (s Scheduler) PurgeTicks(ctx context.Context, age time.Duration, limit int) (int64, error) {
	const query = `
		DELETE FROM compactor.cron_ticks WHERE (entry, tick) IN (
			SELECT entry, tick FROM compactor.cron_ticks t
			WHERE tick < now() - $1::interval AND (source = 'operator' OR tick < (
				SELECT max(tick) FROM compactor.cron_ticks l WHERE l.entry = t.entry AND l.source <> 'operator'))
			LIMIT $2)`
	return affected(ctx, s.Store, "purge ticks", query, age, limit)
}

// RunMark is a place in the order in which PurgeRuns reads runs; its zero value is the beginning.
type RunMark struct {
	EndedAt time.Time
	Run     RunID
}

// PurgeRuns reads up to limit runs after from that ended longer than age ago, and deletes those
// that changed nothing. It returns the last run it read, and the number that it read. Runs with
// calls of models stay, and so do those that an open sweep or bulk operation counts.
func (s Scheduler) PurgeRuns(ctx context.Context, age time.Duration, from RunMark, limit int) (to RunMark, looked int64, err error) {
	const query = `
		WITH page AS MATERIALIZED (
			SELECT r.id, r.ended_at, NOT EXISTS (SELECT FROM compactor.summary_calls c WHERE c.run = r.id)
				AND NOT EXISTS (SELECT FROM compactor.bulk_refusals b WHERE b.run = r.id)
				AND NOT EXISTS (SELECT FROM compactor.sweeps w WHERE w.id = r.sweep AND w.ended_at IS NULL)
				AND NOT EXISTS (SELECT FROM compactor.bulk_operations b WHERE b.id = r.bulk AND b.ended_at IS NULL) AS free
			FROM compactor.runs r
			WHERE r.status IN ('skipped', 'failed') AND r.ended_at < now() - $1::interval AND (r.ended_at, r.id) > ($2, $3)
			ORDER BY r.ended_at, r.id LIMIT $4
		), gone AS (DELETE FROM compactor.runs WHERE id IN (
			SELECT r.id FROM compactor.runs r JOIN page p USING (id) WHERE p.free FOR UPDATE OF r SKIP LOCKED))
		SELECT ended_at, id, count(*) OVER () FROM page ORDER BY ended_at DESC, id DESC LIMIT 1`
	err = s.pool.QueryRow(ctx, s.q(query), age, from.EndedAt, from.Run, limit).Scan(&to.EndedAt, &to.Run, &looked)
	if errors.Is(err, pgx.ErrNoRows) {
		return from, 0, nil
	}
	return to, looked, wrap("purge runs", err)
}

// OpenSweeps returns the sweeps to take pages of: of those that go over the same sessions, the
// oldest that is open. The others wait until it has passed them.
func (s Scheduler) OpenSweeps(ctx context.Context) ([]Sweep, error) {
	const query = `
		SELECT id, entry, tick, queued, compactor.awaits_policies(w) FROM compactor.sweeps w
		WHERE ended_at IS NULL AND status = 'open' AND NOT EXISTS (SELECT FROM compactor.sweeps o
			WHERE o.ended_at IS NULL AND o.status = 'open' AND o.id < w.id AND o.tenant IN ('', w.tenant))
		ORDER BY id`
	return queryRows(ctx, s.Store, "open sweeps", pgx.RowToStructByPos[Sweep], query)
}

// SweepPage queues runs for up to limit due sessions of an open sweep and advances it, in
// one transaction. Tenants take turns. A run that is under way, or queued for another
// reason, replaces that of the sweep, unless it is a dry run. The caller enqueues the runs;
// Undelivered returns those that no worker picked up, after grace. done reports that the sweep
// is not open: it has passed all sessions, its window has ended, or an operator has paused or
// cancelled it.
func (s Scheduler) SweepPage(ctx context.Context, sweep int64, limit int, grace time.Duration) (page []Delivery, done bool, err error) {
	p, err := s.SweepTogether(ctx, sweep, limit, grace, nil, "")
	return p.Queued, p.Done, err
}

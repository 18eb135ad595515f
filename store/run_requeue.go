package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Requeue returns a run to the queue, to be delivered after delay. It counts as a failure
// if failed is set and as a snooze otherwise, except for CodeReadBudget; code and text are the
// reason. If a run of the same trigger and options is queued, this one ends as superseded
// instead. ErrNotApplicable: another worker has the run.
func (s Worker) Requeue(ctx context.Context, run RunID, fence int64, delay time.Duration, failed bool, code, text string) error {
	const query = `
		UPDATE compactor.runs r SET status = CASE WHEN twin THEN 'skipped' ELSE 'queued' END,
			outcome = CASE WHEN twin THEN 'superseded' END, ended_at = CASE WHEN twin THEN now() END,
			lease_until = NULL, deliver_at = now() + $3, waiting_since = now() + $3, failures = failures + $4::bool::int,
			snoozes = snoozes + (NOT $4 AND $5 <> '` + CodeReadBudget + `')::int,
			error_code = $5, error = nullif(left($6, 500), '')
		FROM (SELECT EXISTS (SELECT FROM compactor.runs me JOIN compactor.runs q ON q.sid = me.sid AND q.trigger = me.trigger
			AND q.options IS NOT DISTINCT FROM me.options AND q.status = 'queued' AND q.id <> me.id WHERE me.id = $1) AS twin) t
		WHERE id = $1 AND CASE WHEN $2::bigint = 0 THEN status = 'queued' ELSE status = 'running' AND fence = $2 END`
	op := fmt.Sprintf("requeue run %d", run)
	n, err := affected(ctx, s.Store, op, query, run, fence, delay, failed, code, text)
	if err == nil && n == 0 {
		err = fmt.Errorf("%s: another worker has it: %w", op, ErrNotApplicable)
	}
	return err
}

// Snooze postpones a queued, unclaimed run and returns the number of its snoozes.
func (s Worker) Snooze(ctx context.Context, run RunID, delay time.Duration, code string) (int, error) {
	const query = `
		UPDATE compactor.runs SET deliver_at = now() + $2, waiting_since = now() + $2, snoozes = snoozes + 1, error_code = $3
		WHERE id = $1 AND status = 'queued' RETURNING snoozes`
	return queryRow(ctx, s.Store, "snooze", pgx.RowTo[int], query, run, delay, code)
}

// Abandon ends a queued, unclaimed run as skipped.
func (s Worker) Abandon(ctx context.Context, run RunID, outcome string) error {
	const query = `
		UPDATE compactor.runs SET status = 'skipped', outcome = $2, ended_at = now() WHERE id = $1 AND status = 'queued'`
	n, err := affected(ctx, s.Store, "abandon", query, run, outcome)
	if n > 0 {
		s.ended.add(run)
	}
	return err
}

// Heartbeat extends the lease of a claimed run. ErrNotApplicable: the claim is lost.
func (s Worker) Heartbeat(ctx context.Context, run RunID, fence int64, lease time.Duration) error {
	const query = `UPDATE compactor.runs SET lease_until = now() + $3 WHERE id = $1 AND status = 'running' AND fence = $2`
	op := fmt.Sprintf("heartbeat of run %d", run)
	n, err := affected(ctx, s.Store, op, query, run, fence, lease)
	if err == nil && n == 0 {
		err = fmt.Errorf("%s: %w", op, ErrNotApplicable)
	}
	return err
}

package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lead acquires or renews the leader lease of a role for ttl. It returns false while
// another holder has it. The fence grows with every change of holder. A lease that expires
// in more than ttl does not count: the clock of the database was set back since it was taken.
func (s Scheduler) Lead(ctx context.Context, role, holder string, ttl time.Duration) (bool, error) {
	return queryRow(ctx, s.Store, "take the lead", pgx.RowTo[bool], `SELECT compactor.take_lead($1, $2, $3)`, role, holder, ttl)
}

// Resign releases the leader lease, if holder has it.
func (s Scheduler) Resign(ctx context.Context, role, holder string) error {
	const query = `
		UPDATE compactor.leader SET expires_at = now() - interval '1 microsecond' WHERE role = $1 AND holder = $2`
	return execute(ctx, s.Store, "resign", query, role, holder)
}

// NoteProcesses stores whether the leader misses Redis and workers, for HeldBack. It writes
// only changes, and nothing if holder does not lead.
func (s Scheduler) NoteProcesses(ctx context.Context, holder string, queueAway, workersAway bool) error {
	const query = `SELECT compactor.note_processes($1, $2, $3)`
	return execute(ctx, s.Store, "note processes", query, holder, queueAway, workersAway)
}

// CorrectTimes moves the stored times in the future after the clock of the database was set
// back, of up to limit sessions, and returns by how much; 0 if nothing is left to correct. Lead
// detects such a clock.
func (s Scheduler) CorrectTimes(ctx context.Context, limit int) (time.Duration, error) {
	return queryRow(ctx, s.Store, "correct times", pgx.RowTo[time.Duration], `SELECT compactor.correct_times($1)`, limit)
}

// BoundTimes makes rows due whose time is further in the future than the store sets it:
// deliveries postponed by more than Deliver does with grace, and more. It returns their number.
func (s Scheduler) BoundTimes(ctx context.Context, grace time.Duration) (int64, error) {
	const query = `SELECT compactor.bound_times(33 * greatest($1::interval, '2 minutes'))`
	return queryRow(ctx, s.Store, "bound times", pgx.RowTo[int64], query, grace)
}

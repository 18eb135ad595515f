package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lead acquires or renews the leader lease of a role for ttl. It returns false while
// another holder has it. The fence grows with every change of holder. A lease that is over
// in more than ttl is none: the clock of the database was set back since it was taken.
func (s Scheduler) Lead(ctx context.Context, role, holder string, ttl time.Duration) (bool, error) {
	return queryRow(ctx, s.Store, "take the lead", pgx.RowTo[bool], `SELECT compactor.take_lead($1, $2, $3)`, role, holder, ttl)
}

// Resign releases the leader lease, if holder has it.
func (s Scheduler) Resign(ctx context.Context, role, holder string) error {
	_, err := s.pool.Exec(ctx, s.q(`UPDATE compactor.leader SET expires_at = now() - interval '1 microsecond' WHERE role = $1 AND holder = $2`), role, holder)
	return wrap("resign", err)
}

// NoteProcesses stores what the leader knows of Redis and of the workers, for HeldBack. It
// writes only what has changed, and nothing for who does not lead.
func (s Scheduler) NoteProcesses(ctx context.Context, holder string, queueAway, workersAway bool) error {
	_, err := s.pool.Exec(ctx, s.q(`SELECT compactor.note_processes($1, $2, $3)`), holder, queueAway, workersAway)
	return wrap("note processes", err)
}

// CorrectTimes moves the stored times that are yet to come after the clock of the database
// was set back, of up to limit sessions, and returns by how much; 0 if nothing is left to
// correct. Lead notices such a clock.
func (s Scheduler) CorrectTimes(ctx context.Context, limit int) (time.Duration, error) {
	return queryRow(ctx, s.Store, "correct times", pgx.RowTo[time.Duration], `SELECT compactor.correct_times($1)`, limit)
}

// BoundTimes ends what is put off for longer than anything puts it off: deliveries by more
// than Deliver does with grace, and more. It returns the number of rows.
func (s Scheduler) BoundTimes(ctx context.Context, grace time.Duration) (int64, error) {
	return queryRow(ctx, s.Store, "bound times", pgx.RowTo[int64], `SELECT compactor.bound_times(33 * greatest($1::interval, '2 minutes'))`, grace)
}

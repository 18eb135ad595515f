package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// DiskUse is the disk space of the schema, in bytes, by the database's own figures.
type DiskUse struct {
	// Bytes is the size of all tables, with their indexes and TOAST.
	Bytes int64 `json:"bytes"`
	// Freed estimates the part of it that ArchiveOldest has freed and that was not used again.
	// VACUUM FULL of message_body returns it to the disk.
	Freed int64 `json:"freed_bytes"`
	// More reports that there may be messages that ArchiveOldest can move.
	More bool `json:"more"`
	// MovedAt is when ArchiveOldest last moved messages, nil for never.
	MovedAt *time.Time `json:"moved_at,omitempty"`
}

// DiskUse returns the present disk space.
func (s Scheduler) DiskUse(ctx context.Context) (DiskUse, error) {
	const query = `SELECT bytes, freed, more, moved_at FROM compactor.disk_use()`
	return queryRow(ctx, s.Store, "measure the disk space", pgx.RowToStructByPos[DiskUse], query)
}

// ArchiveOldest archives for a disk budget: of sessions of any policy, the messages that have been
// out of the view longest, and at least for a day, until the gain reaches most.
func (s Scheduler) ArchiveOldest(ctx context.Context, most int64, limit int) (total ArchiveStats, more bool, err error) {
	const op, query = "archive for the disk budget", `SELECT run, sid, age FROM compactor.archive_oldest($1)`
	page, err := queryRows(ctx, s.Store, op, pgx.RowToStructByPos[archiveRun], query, limit)
	if err != nil || len(page) == 0 {
		return total, false, err
	}
	total, passed, more, err := s.archivePage(ctx, page, most, limit)
	if passed > 0 || total.Stored > 0 {
		err = errors.Join(err, execute(ctx, s.Store, op, `SELECT compactor.pass_oldest($1, $2)`, passed, total.Stored))
	}
	return total, more, err
}

package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// DiskUse is the disk space of the schema, in bytes, by the database's own figures.
type DiskUse struct {
	// Bytes is what all tables take, with their indexes and TOAST.
	Bytes int64 `json:"bytes"`
	// Freed is the part of it that ArchiveOldest has made free for other words and that was
	// not used again, as far as it is known. VACUUM FULL of message_body returns it to the disk.
	Freed int64 `json:"freed_bytes"`
	// More is that there may be words that ArchiveOldest can move.
	More bool `json:"more"`
	// MovedAt is when ArchiveOldest last moved words, nil for never.
	MovedAt *time.Time `json:"moved_at,omitempty"`
}

// DiskUse returns the present disk space.
func (s Scheduler) DiskUse(ctx context.Context) (DiskUse, error) {
	return queryRow(ctx, s.Store, "measure the disk space", pgx.RowToStructByPos[DiskUse], `SELECT bytes, freed, more, moved_at FROM compactor.disk_use()`)
}

// ArchiveOldest is Archive for a disk budget: of sessions of any policy, it archives the words
// that have been out of the view longest, and at least for a day, until the gain reaches most.
func (s Scheduler) ArchiveOldest(ctx context.Context, most int64, limit int) (total ArchiveStats, more bool, err error) {
	const op, query = "archive for the disk budget", `SELECT run, sid, age FROM compactor.archive_oldest($1)`
	page, err := queryRows(ctx, s.Store, op, pgx.RowToStructByPos[archiveRun], query, limit)
	if err != nil || len(page) == 0 {
		return total, false, err
	}
	total, passed, more, err := s.archivePage(ctx, page, most, limit)
	if passed > 0 || total.Stored > 0 {
		_, failed := s.pool.Exec(ctx, s.q(`SELECT compactor.pass_oldest($1, $2)`), passed, total.Stored)
		err = errors.Join(err, wrap(op, failed))
	}
	return total, more, err
}

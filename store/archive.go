package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/chat"
)

const (
	// segmentBytes and segmentMessages bound a segment, and so the bytes to read for one
	// message and the time that a session is locked.
	segmentBytes    = 1 << 20
	segmentMessages = 1000
	// busyTries is the number of attempts at a session that another transaction has locked,
	// busyPause the time between them. Writers lock a session for milliseconds.
	busyTries = 4
	busyPause = 50 * time.Millisecond
	// restoreTries bounds the restores before a change.
	restoreTries = 10
	// archiveTime bounds a call of Archive.
	archiveTime = 5 * time.Second
)

// ArchiveStats counts archived or restored messages, with sizes as the database reports them.
type ArchiveStats struct {
	Sessions int64 `json:"sessions"`
	Messages int64 `json:"messages"`
	Segments int64 `json:"segments"`
	// Stored is the size of the rows, Archived that of the segments, in bytes.
	Stored   int64 `json:"stored_bytes"`
	Archived int64 `json:"archived_bytes"`
}

// Add adds the figures of other sessions.
func (a *ArchiveStats) Add(b ArchiveStats) {
	a.Sessions += b.Sessions
	a.Messages += b.Messages
	a.Segments += b.Segments
	a.Stored += b.Stored
	a.Archived += b.Archived
}

// Gain returns the bytes that the rows took and the segments do not.
func (a ArchiveStats) Gain() int64 { return a.Stored - a.Archived }

// ArchiveSession moves the content of messages that have been out of the session's view for
// longer than age into compressed segments. Each segment is a transaction, which deletes
// rows only after it has read the segment back and compared each body with its row.
// ErrBusy: another transaction has the session.
func (s Admin) ArchiveSession(ctx context.Context, k Key, age time.Duration) (ArchiveStats, error) {
	const query = `SELECT sid FROM compactor.sessions WHERE tenant = $1 AND id = $2`
	sid, err := queryRow(ctx, s.Store, fmt.Sprintf("session %s", k), pgx.RowTo[int64], query, k.tenant(), k.Session)
	if err != nil {
		return ArchiveStats{}, err
	}
	return s.archiveSession(ctx, sid, age, math.MaxInt64)
}

// archiveSession moves segments until nothing is left or their gain reaches most.
func (s *Store) archiveSession(ctx context.Context, sid int64, age time.Duration, most int64) (total ArchiveStats, err error) {
	for {
		part, err := s.archiveSegment(ctx, sid, age)
		if total.Add(part); err != nil || part.Segments == 0 || total.Gain() >= most {
			total.Sessions = min(total.Segments, 1)
			return total, wrap(fmt.Sprintf("archive session %d", sid), err)
		}
	}
}

// archiveFree calls archiveSession, again while another transaction has the session.
func (s Scheduler) archiveFree(ctx context.Context, sid int64, age time.Duration, most int64) (total ArchiveStats, err error) {
	for try := 1; ; try++ {
		part, err := s.archiveSession(ctx, sid, age, most-total.Gain())
		total.Add(part)
		if !errors.Is(err, ErrBusy) || try == busyTries || backoff.Wait(ctx, busyPause) != nil {
			return total, err
		}
	}
}

// archiveSegment moves one segment, none if there is nothing left.
func (s *Store) archiveSegment(ctx context.Context, sid int64, age time.Duration) (part ArchiveStats, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		part = ArchiveStats{}
		const page = `SELECT seq, body FROM compactor.archive_page($1, $2, $3, $4)`
		bodies, err := collectRows(ctx, s, tx, pgx.RowToStructByPos[body], page, sid, age, segmentMessages, segmentBytes)
		switch {
		case err != nil:
			return err
		case len(bodies) == 0:
			return &Error{Kind: ErrBusy, Message: "another transaction has the session"}
		case len(bodies) == 1:
			return nil
		}
		bodies = bodies[1:]
		id, back, err := s.addSegment(ctx, tx, sid, bodies, nil)
		if err != nil {
			return err
		}
		part.Segments = 1
		read, texts := split(back)
		const query = `SELECT messages, stored, segment FROM compactor.empty_bodies($1, $2, $3)`
		return tx.QueryRow(ctx, s.q(query), id, read, texts).Scan(&part.Messages, &part.Stored, &part.Archived)
	})
	if err != nil {
		part = ArchiveStats{}
	}
	return part, err
}

// addSegment stores bodies as a segment, in place of old unless that is nil, and returns the
// bodies that it has read back.
func (s *Store) addSegment(ctx context.Context, tx pgx.Tx, sid int64, bodies []body, old *int64) (id int64, back []body, err error) {
	seqs, _ := split(bodies)
	data, raw := pack(bodies)
	sum := sha256.Sum256(data)
	const query = `SELECT compactor.add_segment($1, $2, $3, $4, $5, $6)`
	err = tx.QueryRow(ctx, s.q(query), sid, chat.RangesOf(seqs...).String(), raw, sum[:], data, old).Scan(&id)
	if err != nil {
		return 0, nil, err
	}
	g, err := s.segment(ctx, tx, id)
	if err != nil {
		return 0, nil, err
	}
	back, err = g.unpack(g.Seqs)
	return id, back, err
}

// split returns the seqs and the texts of bodies.
func split(bodies []body) (seqs []chat.Seq, texts []string) {
	for _, b := range bodies {
		seqs, texts = append(seqs, b.Seq), append(texts, b.Text)
	}
	return seqs, texts
}

// ArchivePreview counts the messages that ArchiveSession would move. The size of the segments
// is not known before.
func (s Admin) ArchivePreview(ctx context.Context, k Key, age time.Duration) (stats ArchiveStats, err error) {
	const query = `SELECT messages, stored FROM compactor.archive_preview($1, $2, $3)`
	err = s.pool.QueryRow(ctx, s.q(query), k.tenant(), k.Session, age).Scan(&stats.Messages, &stats.Stored)
	stats.Sessions = min(stats.Messages, 1)
	return stats, wrap("preview the archive of session "+k.String(), err)
}

// archiveRun is a run that took messages out of its session's view, or one to pass without a SID.
type archiveRun struct {
	Run RunID
	SID *int64
	Age time.Duration
}

// Archive archives a page of the sessions with one of the policies, children of such
// sessions included, that runs have changed and left alone since for age, and advances the
// cursor of that age. It returns after a few seconds at most. A session that another
// transaction has is tried again in the next call. more reports that there may be others.
func (s Scheduler) Archive(ctx context.Context, age time.Duration, policies []string, limit int) (total ArchiveStats, more bool, err error) {
	const query = `SELECT run, sid, $1::interval FROM compactor.archive_candidates($1, $2, $3)`
	page, err := queryRows(ctx, s.Store, "archive", pgx.RowToStructByPos[archiveRun], query, age, policies, limit)
	if err != nil || len(page) == 0 {
		return total, false, err
	}
	total, passed, more, err := s.archivePage(ctx, page, math.MaxInt64, limit)
	if passed > 0 {
		err = errors.Join(err, execute(ctx, s.Store, "archive", `SELECT compactor.pass_archived($1, $2)`, age, passed))
	}
	return total, more, err
}

// archivePage archives the sessions of a page until the gain reaches most. passed is the last
// run whose session has nothing more to archive, 0 for none.
func (s Scheduler) archivePage(ctx context.Context, page []archiveRun, most int64, limit int) (total ArchiveStats, passed RunID, more bool, err error) {
	begin, seen := time.Now(), map[int64]bool{}
	more = len(page) >= limit
	for _, c := range page {
		if c.SID != nil && !seen[*c.SID] {
			if time.Since(begin) > archiveTime || total.Gain() >= most {
				return total, passed, true, err
			}
			seen[*c.SID] = true
			part, failed := s.archiveFree(ctx, *c.SID, c.Age, most-total.Gain())
			total.Add(part)
			if errors.Is(failed, ErrBusy) {
				return total, passed, false, err
			}
			if failed != nil && !errors.Is(failed, ErrDamaged) {
				return total, passed, false, failed
			}
			err = errors.Join(err, failed) // a damaged session does not stop the page
			if total.Gain() >= most {
				return total, passed, true, err // there may be more of this session
			}
		}
		passed = c.Run
	}
	return total, passed, more, err
}

// PurgeArchive deletes the content of up to limit segments that are older than age and have
// been out of the view for longer than out, of sessions with one of the policies and of
// their children, and returns their number.
func (s Scheduler) PurgeArchive(ctx context.Context, age, out time.Duration, policies []string, limit int) (int64, error) {
	const query = `SELECT compactor.purge_archive($1, $2, $3, $4)`
	return queryRow(ctx, s.Store, "purge the archive", pgx.RowTo[int64], query, age, policies, limit, out)
}

// Restore moves the content of archived messages back, of all of a session or of those that
// messages names by their ids. The archiver leaves the session alone for a day then. Either
// error changes nothing. ErrPurged: content was purged; ErrDamaged: a segment is damaged.
func (s Admin) Restore(ctx context.Context, k Key, messages ...string) (ArchiveStats, error) {
	const query = `
		SELECT (CASE WHEN cardinality($3::text[]) = 0 THEN '{[1,)}' ELSE coalesce((
			SELECT range_agg(int8range(m.seq, m.seq + 1)) FROM compactor.messages m
			WHERE m.tenant = $1 AND m.session = $2 AND m.id = ANY($3) HAVING count(*) = cardinality($3::text[])), '{}') END)::text
		FROM compactor.view_revision($1, $2) r WHERE r IS NOT NULL`
	ids := append([]string{}, messages...) // not NULL
	var seqs chat.Ranges
	err := s.pool.QueryRow(ctx, s.q(query), k.tenant(), k.Session, ids).Scan(rangesText{&seqs})
	if err != nil {
		return ArchiveStats{}, wrap(fmt.Sprintf("session %s", k), err)
	}
	if len(seqs) == 0 {
		names := strings.Join(messages, ", ")
		return ArchiveStats{}, fmt.Errorf("restore session %s: it has not all of the messages %s: %w", k, names, ErrNotFound)
	}
	return s.restore(ctx, s.pool, k, seqs)
}

// beginner begins a transaction, or one within it.
type beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// restore moves the bodies of archived messages back.
func (s *Store) restore(ctx context.Context, db beginner, k Key, seqs chat.Ranges) (stats ArchiveStats, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		stats = ArchiveStats{Sessions: 1}
		if _, err := tx.Exec(ctx, s.q(`SELECT FROM compactor.lock_archived($1, $2)`), k.tenant(), k.Session); err != nil {
			return err
		}
		segments, err := s.segments(ctx, tx, k, seqs)
		if err != nil {
			return err
		}
		for i := range segments {
			g := &segments[i]
			if g.Data == nil {
				text := fmt.Sprintf("the words of messages %s were purged, as the policy says", seqs.Intersect(g.Seqs))
				return &Error{Kind: ErrPurged, Message: text}
			}
			bodies, err := g.unpack(seqs)
			if err != nil {
				return err
			}
			back, texts := split(bodies)
			part := ArchiveStats{Messages: int64(len(bodies)), Segments: 1}
			const query = `SELECT stored, segment FROM compactor.restore_bodies($1, $2, $3)`
			if err := tx.QueryRow(ctx, s.q(query), g.ID, back, texts).Scan(&part.Stored, &part.Archived); err != nil {
				return err
			}
			stats.Add(part)
		}
		return nil
	})
	if err != nil || stats.Messages == 0 {
		return ArchiveStats{}, wrap(fmt.Sprintf("restore session %s", k), err)
	}
	return stats, nil
}

// restoring calls change, and again after it has restored the archived messages that change
// needs.
func restoring[T any](ctx context.Context, s *Store, k Key, change func() (T, error)) (T, error) {
	return restoringOn(ctx, s, s.pool, k, func(int64) {}, change)
}

// restoringOn restores on a pool or in a transaction, and calls restored with the number of
// messages.
func restoringOn[T any](ctx context.Context, s *Store, db beginner, k Key, restored func(messages int64), change func() (T, error)) (T, error) {
	v, err := change()
	for range restoreTries { // each time it may need others, or the archiver has moved them again
		own, ok := errors.AsType[*Error](err)
		if !ok || !errors.Is(err, ErrArchived) {
			return v, err
		}
		stats, failed := s.restore(ctx, db, k, own.archived)
		if failed != nil {
			return v, failed
		}
		restored(stats.Messages)
		v, err = change()
	}
	return v, err
}

// keyOf returns the name of a session.
func (s *Store) keyOf(ctx context.Context, sid int64) (Key, error) {
	const query = `SELECT tenant, id FROM compactor.sessions WHERE sid = $1`
	return queryRow(ctx, s, fmt.Sprintf("session %d", sid), pgx.RowToStructByPos[Key], query, sid)
}

// keyOfRun returns the name of a run's session.
func (s *Store) keyOfRun(ctx context.Context, run RunID) (Key, error) {
	const query = `SELECT tenant, id FROM compactor.sessions WHERE sid = (SELECT sid FROM compactor.runs WHERE id = $1)`
	return queryRow(ctx, s, fmt.Sprintf("run %d", run), pgx.RowToStructByPos[Key], query, run)
}

// Compacted returns the sessions of a tenant that a run has changed.
func (s Admin) Compacted(ctx context.Context, tenant string) iter.Seq2[Key, error] {
	const query = `
		SELECT sid, tenant, id FROM compactor.sessions
		WHERE sid > $1 AND tenant = $2 AND revision > 0 ORDER BY sid LIMIT 500`
	type row struct {
		SID int64
		Key
	}
	return func(yield func(Key, error) bool) {
		for last := int64(0); ; {
			page, err := queryRows(ctx, s.Store, "sessions", pgx.RowToStructByPos[row], query, last, Key{Tenant: tenant}.tenant())
			if err != nil {
				yield(Key{}, err)
				return
			}
			for _, x := range page {
				if last = x.SID; !yield(x.Key, nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

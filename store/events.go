package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Event is the end of a run, or a change of a sweep, as the ledger has it.
type Event struct {
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"` // run or sweep
	ID       int64     `json:"id"`   // of the run or the sweep
	Tenant   string    `json:"tenant"`
	Session  string    `json:"session,omitempty"` // of a run
	Trigger  string    `json:"trigger,omitempty"` // of a run; the schedule of a sweep
	Status   string    `json:"status"`
	Outcome  string    `json:"outcome,omitempty"`  // of a run; the reason of the status of a sweep
	Revision int64     `json:"revision,omitempty"` // that the run made; 0 if it made none
	Before   int64     `json:"tokens_before,omitempty"`
	After    int64     `json:"tokens_after,omitempty"`
}

// Name identifies an event, and orders those of one time.
func (e Event) Name() string { return fmt.Sprintf("%d-%s-%d", e.At.UnixMicro(), e.Kind, e.ID) }

// eventPage is the number of events that are read at once.
const eventPage = 500

// EachEvent calls f with the events of a tenant, or of all for an empty one, after a time, the oldest
// first, until it returns an error.
// Transactions that began earlier and commit later add events before those that were read: readers
// that must miss none read the last seconds again.
func (s Reader) EachEvent(ctx context.Context, tenant string, after time.Time, f func(Event) error) error {
	last := Event{At: after}
	for {
		page, err := s.events(ctx, tenant, last, eventPage)
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := f(e); err != nil {
				return err
			}
		}
		if len(page) < eventPage {
			return nil
		}
		last = page[len(page)-1]
	}
}

// events returns a page of events after one of them, or after its time if it has no kind.
func (s Reader) events(ctx context.Context, tenant string, after Event, limit int) ([]Event, error) {
	const query = `
		SELECT * FROM (
			SELECT r.ended_at, 'run', r.id, s.tenant, s.id AS session, r.trigger, r.status, coalesce(r.outcome, ''), coalesce(r.revision, 0),
				coalesce(r.tokens_before, 0), coalesce(r.tokens_after, 0)
			FROM compactor.runs r JOIN compactor.sessions s ON s.sid = r.sid WHERE r.ended_at >= $1 AND r.status NOT IN ('queued', 'running')
			UNION ALL
			SELECT changed_at, 'sweep', id, tenant, '', entry, status, reason, 0, 0, 0 FROM compactor.sweeps WHERE changed_at >= $1
		) e (at, kind, id) WHERE (at, kind, id) > ($1, $2, $3) AND $4 IN ('', tenant) ORDER BY at, kind, id LIMIT $5`
	return queryRows(ctx, s.Store, "events", pgx.RowToStructByPos[Event], query, after.At, after.Kind, after.ID, tenant, limit)
}

// Now returns the time of the database.
func (s Reader) Now(ctx context.Context) (time.Time, error) {
	return queryRow(ctx, s.Store, "time", pgx.RowTo[time.Time], `SELECT now()`)
}

// Listener waits for the ends of runs, on a connection of its own.
type Listener struct {
	store *Store
	conn  *pgx.Conn
}

// Listener returns a listener, which the caller closes. It is not safe for concurrent use.
func (s Reader) Listener() *Listener { return &Listener{store: s.Store} }

// Wait waits until a run has ended, at most for a time; behind a pooler, where there are no
// notifications, for that time. A notification may be lost. After an error the next call connects
// again.
func (l *Listener) Wait(ctx context.Context, most time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if l.store.Pooled() {
		<-ctx.Done()
		return nil
	}
	if l.conn == nil || l.conn.IsClosed() {
		if l.conn, err = pgx.ConnectConfig(ctx, l.store.pool.Config().ConnConfig.Copy()); err != nil {
			return wrap("listen", scrub(err))
		}
		if _, err = l.conn.Exec(ctx, `LISTEN `+pgx.Identifier{l.store.schema}.Sanitize()); err != nil {
			l.Close(ctx)
			return wrap("listen", err)
		}
	}
	_, err = l.conn.WaitForNotification(ctx)
	if ctx.Err() != nil && !l.conn.IsClosed() {
		return nil
	}
	return wrap("listen", err)
}

// Close closes the connection.
func (l *Listener) Close(ctx context.Context) {
	if l.conn != nil {
		_ = l.conn.Close(ctx)
	}
	l.conn = nil
}

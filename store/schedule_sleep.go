package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoNotifications means that notifications do not reach this store: a pooler in transaction
// mode is in between.
var ErrNoNotifications = errors.New("no notifications behind a pooler")

// sleeper is the connection on which Sleep waits for notifications.
type sleeper struct {
	hangUp func(*pgx.Conn)

	mu     sync.Mutex
	conn   *pgx.Conn
	asleep bool // it holds the lock that has writers notify
}

// The locks of the relay, in the space of the outbox: see the function wake_relay.
const (
	relayLock   = `SELECT pg_try_advisory_lock('compactor.outbox'::regclass::oid::int, 1)`
	relayUnlock = `SELECT pg_advisory_unlock('compactor.outbox'::regclass::oid::int, 1)`
)

// fallAsleep bounds the wait of the first Sleep.
const fallAsleep = 25 * time.Millisecond

// Sleep waits until a transaction has put a session into the outbox or requested a run, at
// most for a time, and reports whether one did. The first call after Awake only has writers
// notify: the caller must look for work once more after it. One store of the schema sleeps at
// a time; the calls of others wait for fallAsleep. A notification may be lost.
// ErrNoNotifications: there are none. After another error the next call connects again.
func (s Scheduler) Sleep(ctx context.Context, most time.Duration) (notified bool, err error) {
	if s.Pooled() {
		return false, ErrNoNotifications
	}
	l := &s.relay
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		// Notifications do not count before the lock is held.
		conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig.Copy())
		if err != nil {
			return false, wrap("listen", scrub(err))
		}
		l.conn = conn
		if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{s.schema + "_relay"}.Sanitize()); err != nil {
			l.close()
			return false, wrap("listen", err)
		}
	}
	if !l.asleep {
		if err := l.conn.QueryRow(ctx, s.q(relayLock)).Scan(&l.asleep); err != nil {
			l.close()
			return false, wrap("listen", err)
		}
		most = min(most, fallAsleep)
	}
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	_, err = l.conn.WaitForNotification(waiting)
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case waiting.Err() != nil && !l.conn.IsClosed():
		return false, nil
	}
	l.close()
	return false, wrap("listen", err)
}

// Awake ends what Sleep began: writers no longer notify.
func (s Scheduler) Awake(ctx context.Context) error {
	l := &s.relay
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asleep {
		return nil
	}
	l.asleep = false
	if _, err := l.conn.Exec(ctx, s.q(relayUnlock)); err != nil {
		l.close() // which unlocks as well
		return wrap("listen", err)
	}
	arrived, cancel := context.WithCancel(ctx)
	cancel()
	for err := error(nil); err == nil; { // discard notifications that have arrived
		_, err = l.conn.WaitForNotification(arrived)
	}
	return nil
}

// close closes the connection, and with it the lock.
func (l *sleeper) close() {
	if l.conn != nil {
		l.hangUp(l.conn)
	}
	l.conn, l.asleep = nil, false
}

// NextWork returns the time, most at the longest, for which Relay, Deliver and ReleaseThrottled
// will find nothing without a write; rows that they leave for now count as found. It is 0 if
// more than 1,000 sessions are in the outbox, which are not read one by one.
func (s Scheduler) NextWork(ctx context.Context, debounce, maxDelay, most time.Duration) (time.Duration, error) {
	const query = `
		SELECT greatest('0', least(now() + $3::interval,
			(SELECT CASE WHEN count(*) <= 1000
				THEN min(greatest(least(o.last_at + $1::interval, o.first_at + $2::interval), s.cooldown_until)) ELSE now() END
				FROM (SELECT * FROM compactor.outbox LIMIT 1001) o JOIN compactor.sessions s ON s.sid = o.sid),
			(SELECT min(q.at) FROM unnest('{operator,event,nightly,bulk,application}'::text[]) t(trigger)
				CROSS JOIN LATERAL (SELECT min(r.deliver_at) AS at FROM compactor.runs r
					WHERE r.status = 'queued' AND r.trigger = t.trigger) q),
			(SELECT now() FROM compactor.throttled LIMIT 1)) - now())`
	return queryRow(ctx, s.Store, "next work", pgx.RowTo[time.Duration], query, debounce, maxDelay, most)
}

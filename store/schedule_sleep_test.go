package store

import (
	"testing"
	"time"
)

// long is longer than any test waits for a notification.
const long = 2 * time.Minute

// fallAsleepNow has the store sleep for as long as the next call of Sleep says.
func fallAsleepNow(t *testing.T, s *Store) {
	t.Helper()
	notified := must(s.Scheduler.Sleep(t.Context(), time.Millisecond))(t)
	if notified || !s.relay.asleep {
		t.Fatalf("asleep: %t, notified: %t", s.relay.asleep, notified)
	}
}

func TestASleepingRelayIsWokenByWhatItHasToDo(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(t *testing.T, s *Store){
		"a session becomes due": func(t *testing.T, s *Store) {
			add(t, s, Key{Session: "s02"}, counted(user("m1", "x"), 11))
		},
		"a run is requested": func(t *testing.T, s *Store) {
			_ = must(s.Request(t.Context(), Key{Session: "s01"}, TriggerApplication, "test", Options{}))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			dueSessions(t, s, 1)
			fallAsleepNow(t, s)
			write(t, s)
			if !must(s.Scheduler.Sleep(t.Context(), long))(t) {
				t.Error("not woken")
			}
			noError(t, s.Scheduler.Awake(t.Context()))
			fallAsleepNow(t, s)
			add(t, s, Key{Session: "s01"}, counted(user("m2", "x"), 11)) // is in the outbox
			if must(s.Scheduler.Sleep(t.Context(), time.Millisecond))(t) {
				t.Error("woken for a session that is in the outbox")
			}
		})
	}
}

func TestOneOfManyWritersNotifies(t *testing.T) {
	t.Parallel()
	s, dsn := openDSN(t)
	dueSessions(t, s, 1)
	other := must(Open(t.Context(), Config{URL: dsn}))(t)
	t.Cleanup(other.Close)
	due := func(session string) string {
		return `SELECT compactor.append('default', '` + session + `', '{"role": "user", "content": "x", "token_count": 11}')`
	}
	// A writer that does not know of the sleep keeps the relay from it until its end.
	early := begin(t, s, due("early"))
	if _ = must(other.Scheduler.Sleep(t.Context(), time.Millisecond))(t); other.relay.asleep {
		t.Fatal("asleep before the end of a writer that does not notify")
	}
	noError(t, early.Commit(t.Context()))
	fallAsleepNow(t, other)
	first := begin(t, s, due("first"))
	exec(t, s, due("second")) // waits for nothing, and leaves it to the first
	if must(other.Scheduler.Sleep(t.Context(), time.Millisecond))(t) {
		t.Error("woken by the second")
	}
	noError(t, first.Commit(t.Context()))
	if !must(other.Scheduler.Sleep(t.Context(), long))(t) {
		t.Error("not woken by the first")
	}
	noError(t, other.Scheduler.Awake(t.Context()))
	fallAsleepNow(t, other)
}

func TestARelayWhoseConnectionBreaksListensAgain(t *testing.T) {
	s := fresh(t)
	dueSessions(t, s, 1)
	fallAsleepNow(t, s)
	exec(t, s, `SELECT pg_terminate_backend($1, 30000)`, int(s.relay.conn.PgConn().PID())) // and waits until its locks are free
	wantError(t, second(s.Scheduler.Sleep(t.Context(), long)), ErrUnavailable, "a broken connection is")
	fallAsleepNow(t, s)
	add(t, s, Key{Session: "s02"}, counted(user("m1", "x"), 11))
	if !must(s.Scheduler.Sleep(t.Context(), long))(t) {
		t.Error("not woken on the new connection")
	}
}

func TestARelayBehindAPoolerIsToldThatNothingWakesIt(t *testing.T) {
	t.Parallel()
	pooled, direct := openPooled(t, Config{})
	wantError(t, second(pooled.Scheduler.Sleep(t.Context(), long)), ErrNoNotifications, "sleeping behind a pooler is")
	// A direct one is woken by writers behind the pooler.
	dueSessions(t, direct, 1)
	fallAsleepNow(t, direct)
	add(t, pooled, Key{Session: "s02"}, counted(user("m1", "x"), 11))
	if !must(direct.Scheduler.Sleep(t.Context(), long))(t) {
		t.Error("not woken by a writer behind the pooler")
	}
}

func TestTheNextWorkOfTheRelayIsKnown(t *testing.T) {
	t.Parallel()
	const debounce, maxDelay, most = 10 * time.Minute, time.Hour, 60 * time.Hour
	for name, c := range map[string]struct {
		sql  string // beside a session in the outbox since 4 min, written to 1 min ago
		want time.Duration
	}{
		"a session that is written to":     {`SELECT 1`, 9 * time.Minute},
		"that has waited for long":         {`UPDATE compactor.outbox SET first_at = now() - interval '55 min'`, 5 * time.Minute},
		"that is ready":                    {`UPDATE compactor.outbox SET last_at = now() - interval '11 min'`, 0},
		"that cools down":                  {`UPDATE compactor.sessions SET cooldown_until = now() + interval '30 min'`, 30 * time.Minute},
		"a run that is put off":            {`INSERT INTO compactor.runs (sid, trigger, deliver_at) VALUES (1, 'event', now() + interval '3 min')`, 3 * time.Minute},
		"a run that waits for a limit":     {`WITH x AS (INSERT INTO compactor.runs (sid, trigger, deliver_at) VALUES (1, 'application', 'infinity')) DELETE FROM compactor.outbox`, most},
		"a session that waits for a limit": {`INSERT INTO compactor.throttled (sid, tenant, since) VALUES (1, 'default', now())`, 0},
		"nothing":                          {`DELETE FROM compactor.outbox`, most},
		"very many sessions": {`WITH x AS (INSERT INTO compactor.sessions (id) SELECT n::text FROM generate_series(1, 1000) n RETURNING sid)
			INSERT INTO compactor.outbox (sid) SELECT sid FROM x`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			dueSessions(t, s, 1)
			exec(t, s, `UPDATE compactor.outbox SET first_at = now() - interval '4 min', last_at = now() - interval '1 min'`)
			exec(t, s, c.sql)
			got := must(s.Scheduler.NextWork(t.Context(), debounce, maxDelay, most))(t)
			// The clock of the database goes on.
			if got > c.want || c.want > 0 && got == 0 {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

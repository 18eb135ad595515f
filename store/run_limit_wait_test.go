package store

import (
	"context"
	"testing"
	"time"
)

// An application may keep a transaction open in which it has written to a session. That keeps
// no other session from its run, so whatever gives sessions to the relay waits for none.
func TestWhatWaitsForALimitOfRunsWaitsForNoWriter(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func(ctx context.Context, s *Store) error{
		"released": func(ctx context.Context, s *Store) error {
			_, err := s.ReleaseThrottled(ctx)
			return err
		},
		"forgotten": func(ctx context.Context, s *Store) error {
			_, err := s.Forgotten(ctx, 100, time.Hour)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
			dueOf(t, s, "big", 3)
			limitRuns(t, s, "big", 3)
			exec(t, s, `DELETE FROM compactor.outbox`)
			if name == "released" {
				exec(t, s, `INSERT INTO compactor.throttled (sid, tenant, since) SELECT sid, tenant, now() FROM compactor.sessions`)
			}
			tx := must(s.pool.Begin(t.Context()))(t)
			defer func() { _ = tx.Rollback(t.Context()) }()
			must(tx.Exec(t.Context(), s.q(`SELECT compactor.append('big', 'big001', '[{"role": "user", "content": "x"}]'::json)`)))(t)

			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := give(ctx, s); err != nil {
				t.Fatal(err)
			}
			if n := one[int](t, s, `SELECT count(*) FROM compactor.outbox`); n != 2 {
				t.Errorf("the relay has %d sessions, want those that nothing locks", n)
			}
			must(0, tx.Commit(t.Context()))(t)
			must(0, give(ctx, s))(t)
			if n := one[int](t, s, `SELECT count(*) FROM compactor.outbox`); n != 3 {
				t.Errorf("the relay has %d sessions after the commit, want 3", n)
			}
		})
	}
}

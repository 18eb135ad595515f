package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sessionstore/compactor/store/storetest"
)

// An application may keep a transaction open in which it has written to a session. That keeps
// no other session from its run, so whatever gives sessions to the relay waits for none.
func TestWhatWaitsForALimitOfRunsWaitsForNoWriter(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func(ctx context.Context, s *Store) error{
		"released": func(ctx context.Context, s *Store) error {
			_, err := s.Scheduler.ReleaseThrottled(ctx)
			return err
		},
		"forgotten": func(ctx context.Context, s *Store) error {
			_, err := s.Scheduler.Forgotten(ctx, 100, time.Hour)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := freshDue(t, dueTenant{"big", 3})
			limitRuns(t, s, "big", 3)
			exec(t, s, `DELETE FROM compactor.outbox`)
			if name == "released" {
				exec(t, s, `INSERT INTO compactor.throttled (sid, tenant, since) SELECT sid, tenant, now() FROM compactor.sessions`)
			}
			tx := begin(t, s, s.q(`SELECT compactor.append('big', 'big001', '[{"role": "user", "content": "x"}]'::json)`))

			ctx := storetest.Context(t)
			noError(t, give(ctx, s))
			equal(t, 2, one[int](t, s, `SELECT count(*) FROM compactor.outbox`), "the relay has sessions")
			noError(t, tx.Commit(t.Context()))
			noError(t, give(ctx, s))
			equal(t, 3, one[int](t, s, `SELECT count(*) FROM compactor.outbox`), "the relay has sessions after the commit")
		})
	}
}

// Several callers count the runs of many tenants at the same time, and none is refused.
func TestRunsOfManyTenantsAreCountedAtTheSameTime(t *testing.T) {
	s := fresh(t)
	var tenants []string
	for i := range 40 {
		tenants = append(tenants, fmt.Sprint("t", i))
		limitRuns(t, s, tenants[i], 1000)
	}
	limitRuns(t, s, "", 1000)
	var g errgroup.Group
	for caller := range 8 {
		g.Go(func() error {
			mine := slices.Clone(tenants)
			r := rand.New(rand.NewPCG(uint64(caller), 0)) //nolint:gosec // a test
			for range 20 {
				r.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
				if _, err := s.pool.Exec(t.Context(), s.q(`SELECT compactor.count_started_runs($1)`), mine[:1+r.IntN(len(mine))]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	noError(t, g.Wait())
}

// waiters returns the number of connections to the database that wait for a lock.
func waiters(t fataler, s *Store) int {
	t.Helper()
	return one[int](t, s, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
}

// A caller that starts runs waits for another one that has used up a limit, and then starts none; the share of a caller
// that dies is free again.
func TestNoTwoCallersStartTheSameFreeRun(t *testing.T) {
	t.Parallel()
	for name, work := range throttledWork {
		for dies, want := range map[bool]int{false: 0, true: 1} {
			t.Run(fmt.Sprintf("%s, dies %t", name, dies), func(t *testing.T) {
				s := freshDue(t, dueTenant{"big", 5}, dueTenant{"small", 2})
				take := work(t, s)
				limitRuns(t, s, "big", 0.001) // one now, and none for a long time
				tx := begin(t, s, s.q(`SELECT compactor.count_started_runs('{big}')`))
				started := make(chan []Delivery, 1)
				var over atomic.Bool // also if it failed
				go func() {
					defer close(started)
					defer over.Store(true)
					started <- take()
				}()
				for waiters(t, s) == 0 && !over.Load() { //nolint:revive // the condition waits
				}
				if dies {
					noError(t, tx.Rollback(t.Context()))
				} else {
					noError(t, tx.Commit(t.Context()))
				}
				n := 0
				for _, session := range sessionsOf(t, s, <-started) {
					if strings.HasPrefix(session, "big") {
						n++
					}
				}
				equal(t, want, n, "runs started beside that of the other caller")
			})
		}
	}
}

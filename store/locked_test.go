package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// waitingHolders counts the connections that wait for a row while their transaction holds one:
// it has an id, which the first lock of a row gives it. The locks are read once: a lock that is
// granted between two readings would count as both.
const waitingHolders = `
	WITH locks AS MATERIALIZED (SELECT * FROM pg_locks)
	SELECT count(*) FROM locks w JOIN locks h ON h.pid = w.pid AND h.locktype = 'transactionid' AND h.granted
	WHERE NOT w.granted AND w.locktype IN ('transactionid', 'tuple')
		AND w.pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`

// The runs of 32 sessions end at once while others append to the same sessions, but for some that
// have a writer with an open transaction.
func TestNoEndingWaitsForALockWhileItHoldsAnother(t *testing.T) {
	s := fresh(t)
	const sessions, every = 32, 8
	var claims []*Claim
	var held, others []Key
	for i := range sessions {
		k := Key{Session: fmt.Sprintf("s%02d", i)}
		add(t, s, k, talk("m", 2)...)
		claims = append(claims, must(s.Worker.Load(t.Context(), request(t, s, k, TriggerApplication)))(t))
		if i%every == every/2 {
			held = append(held, k)
		} else {
			others = append(others, k)
		}
	}
	tx := must(s.pool.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(context.Background()) }()
	for _, k := range held {
		must(tx.Exec(t.Context(), `SELECT compactor.append(NULL, $1, '{"role":"user","content":"x"}')`, k.Session))(t)
	}
	var ends, appends sync.WaitGroup
	for _, c := range claims {
		ends.Go(func() {
			wantError(t, s.Worker.Finish(t.Context(), c, StatusSkipped, Ledger{Outcome: "nothing_to_compact"}, nil), nil, "finish")
		})
	}
	appends.Go(func() {
		for _, k := range others {
			add(t, s, k, talk("n", 1)...)
		}
	})
	for one[int](t, s, `SELECT count(*) FROM compactor.runs WHERE status = 'queued'`) > len(held) {
		if one[int](t, s, waitingHolders) > 0 {
			t.Error("an ending waits for the writer of a session, and holds the lock of another one")
			break
		}
	}
	appends.Wait()
	noError(t, tx.Commit(t.Context()))
	ends.Wait()
	wantConsistent(t, s)
}

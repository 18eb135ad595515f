package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sessionstore/compactor/strategies/backoff"
)

// Notifications are collected for notifyPause and sent together, outside of the
// transactions that end runs: NOTIFY takes a lock of the whole database until its
// transaction has committed, and fails when the queue of a stuck listener is full.
const (
	notifyPause   = 25 * time.Millisecond
	notifyTimeout = 2 * time.Second
)

// notifier collects the ids of ended runs.
type notifier struct {
	send    func([]RunID)
	mu      sync.Mutex
	ended   []RunID
	sending bool
}

// add announces that a run has ended.
func (n *notifier) add(run RunID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = append(n.ended, run)
	if !n.sending {
		n.sending = true
		time.AfterFunc(notifyPause, n.flush)
	}
}

// flush sends the collected ids, and calls itself again after a pause until there are none.
func (n *notifier) flush() {
	n.mu.Lock()
	ended := n.ended
	n.ended, n.sending = nil, len(ended) > 0
	n.mu.Unlock()
	if len(ended) > 0 {
		n.send(ended)
		time.AfterFunc(notifyPause, n.flush)
	}
}

// notify sends the ids of ended runs on the channel that has the schema's name. Losing
// them costs a listener a delay: WaitRun and the SQL function wait_run poll.
func (s *Store) notify(ctx context.Context, ended []RunID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
	defer cancel()
	// A commit that waits for the disk would hold the lock for as long.
	const query = `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, run::text) FROM unnest($2::bigint[]) run`
	_, _ = s.pool.Exec(ctx, query, s.schema, ended)
}

var waitPauses = backoff.Backoff{First: 10 * time.Millisecond, Most: 250 * time.Millisecond}

// WaitRun waits until a run has ended and returns it. If ctx ends first, it returns the
// last state of the run and the cause. It polls, so that it works through any pooler.
func (s *Store) WaitRun(ctx context.Context, run RunID) (RunRow, error) {
	var last RunRow
	for attempt := 0; ; attempt++ {
		row, err := s.Run(ctx, run)
		switch {
		case err != nil && ctx.Err() != nil:
			return last, context.Cause(ctx)
		case err != nil || row.Ended():
			return row, err
		}
		last = row
		if err := backoff.Wait(ctx, waitPauses.Delay(attempt)); err != nil {
			return last, err
		}
	}
}

// AwaitRun waits until a run has ended or timeout has passed, and returns its last state.
func (s *Store) AwaitRun(ctx context.Context, run RunID, timeout time.Duration) (RunRow, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	row, err := s.WaitRun(waiting, run)
	if waiting.Err() != nil {
		return s.Run(ctx, run)
	}
	return row, err
}

// Ended reports whether the run has reached its final status.
func (r RunRow) Ended() bool { return !slices.Contains([]string{"queued", "running"}, r.Status) }

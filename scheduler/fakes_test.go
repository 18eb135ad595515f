package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/worker/jobs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ Store    = store.Scheduler{}
	_ Enqueuer = (*jobs.Enqueuer)(nil)
	_ Store    = (*fakeStore)(nil)
)

// fakeStore is the store's contract in memory, on the bubble's clock.
type fakeStore struct {
	mu sync.Mutex
	// fail, if set, is asked before each call; an error of it is the call's.
	fail    func(op string) error
	calls   []string
	running int // runs that workers have claimed

	holder  string
	expires time.Time
	// What the leader has noted, and by how much the clock of the database was set back.
	queueAway, workersAway bool
	clockBack              time.Duration
	fired                  []store.Tick
	paused                 map[string]bool // schedules
	sweeps                 []*fakeSweep
	runs                   []*fakeRun
	bulk                   int           // sessions that an open bulk recompaction has not come to
	outbox                 int           // sessions that are dirty and due
	notify                 chan struct{} // of writes to the outbox; nil: they are lost
	lost                   int           // sessions that are due, with nothing under way
	orphans                int           // running runs whose worker is gone
	stale                  int           // sessions that do not follow the policies yet
	locked                 int           // of them, those that a transaction holds during the next pass
	// policies are in force; revision and reached are those of PolicyProgress.
	policies          []store.PolicyVersion
	revision, reached int64
	// oldAnswers are those that no run can want any more.
	oldAnswers  int
	oldRuns     int           // that changed nothing
	keepRuns    time.Duration // after which they are deleted
	lostCalls   int           // calls of models whose worker is gone
	unattempted int           // runs that no worker attempts
	saved       []string
	spec        json.RawMessage
	// toArchive are pages of the archive; retained are the calls for it.
	toArchive int
	retained  []string
	disk      store.DiskUse // what the tables take
	oldest    int64         // bytes that may go from it
	limited   store.Limited // which tenants have limits
	useTakes  time.Duration // how long it takes to read their use
}

type fakeRun struct {
	id       int64
	trigger  string
	delivery int
	due      time.Time
	taken    bool
}

func (f *fakeStore) enter(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	f.calls = append(f.calls, op)
	fail := f.fail
	f.mu.Unlock()
	if fail != nil {
		return fail(op)
	}
	return nil
}

func (f *fakeStore) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == op {
			n++
		}
	}
	return n
}

// with changes or reads the fake under its lock.
func (f *fakeStore) with(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

func (f *fakeStore) leader() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holder
}

func (f *fakeStore) NoteProcesses(ctx context.Context, _ string, queueAway, workersAway bool) error {
	if err := f.enter(ctx, "note processes"); err != nil {
		return err
	}
	f.with(func() { f.queueAway, f.workersAway = queueAway, workersAway })
	return nil
}

func (f *fakeStore) CorrectTimes(ctx context.Context, _ int) (back time.Duration, err error) {
	if err := f.enter(ctx, "correct times"); err != nil {
		return 0, err
	}
	f.with(func() { back, f.clockBack = f.clockBack, 0 })
	return back, nil
}

func (f *fakeStore) BoundTimes(ctx context.Context, _ time.Duration) (int64, error) {
	return 0, f.enter(ctx, "bound times")
}

func (f *fakeStore) Lead(ctx context.Context, _, holder string, ttl time.Duration) (bool, error) {
	if err := f.enter(ctx, "lead "+holder); err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holder != "" && f.holder != holder && time.Now().Before(f.expires) {
		return false, nil
	}
	f.holder, f.expires = holder, time.Now().Add(ttl)
	return true, nil
}

func (f *fakeStore) Resign(ctx context.Context, _, holder string) error {
	if err := f.enter(ctx, "resign "+holder); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holder == holder {
		f.holder = ""
	}
	return nil
}

// queue adds a run that is enqueued: by the caller. The lock is held.
func (f *fakeStore) queue(trigger string, grace time.Duration) store.Delivery {
	r := &fakeRun{id: int64(len(f.runs) + 1), trigger: trigger, delivery: 1, due: time.Now().Add(grace)}
	f.runs = append(f.runs, r)
	return store.Delivery{Run: r.id, Attempt: 1, Trigger: trigger}
}

func (f *fakeStore) Waiting(ctx context.Context, trigger string, limit int) (n, running int, err error) {
	if err := f.enter(ctx, "waiting"); err != nil {
		return 0, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.runs {
		if r.trigger == trigger && !r.taken && r.due.After(time.Now()) {
			n++
		}
	}
	return min(n, limit), f.running, nil
}

// some queues event runs for up to limit of n sessions.
func (f *fakeStore) some(n *int, limit int, grace time.Duration) (page []store.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for *n > 0 && len(page) < limit {
		*n--
		page = append(page, f.queue(store.TriggerEvent, grace))
	}
	return page
}

func (f *fakeStore) Relay(ctx context.Context, _, _ time.Duration, limit int, grace time.Duration) ([]store.Delivery, error) {
	if err := f.enter(ctx, "relay"); err != nil {
		return nil, err
	}
	return f.some(&f.outbox, limit, grace), nil
}

func (f *fakeStore) NextWork(ctx context.Context, _, _, most time.Duration) (next time.Duration, err error) {
	if err := f.enter(ctx, "next work"); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next = most
	for _, r := range f.runs {
		if !r.taken {
			next = min(next, time.Until(r.due))
		}
	}
	if f.outbox > 0 {
		next = 0
	}
	return max(next, 0), nil
}

func (f *fakeStore) Sleep(ctx context.Context, most time.Duration) (notified bool, err error) {
	if err := f.enter(ctx, "sleep"); err != nil {
		return false, err
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-f.notify:
		return true, nil
	case <-timer.C:
		return false, nil
	}
}

func (f *fakeStore) Awake(ctx context.Context) error { return f.enter(ctx, "awake") }

func (f *fakeStore) CheckTimes(ctx context.Context, _ int) (int, error) {
	return 0, f.enter(ctx, "times")
}

func (f *fakeStore) ReleaseThrottled(ctx context.Context) (int64, error) {
	return 0, f.enter(ctx, "release")
}

func (f *fakeStore) SumSpending(ctx context.Context) (int64, error) {
	return 0, f.enter(ctx, "sum")
}

func (f *fakeStore) Forgotten(ctx context.Context, limit int, grace time.Duration) ([]store.Delivery, error) {
	if err := f.enter(ctx, "forgotten"); err != nil {
		return nil, err
	}
	return f.some(&f.lost, limit, grace), nil
}

func (f *fakeStore) Orphaned(ctx context.Context, limit int, grace time.Duration) ([]store.Delivery, error) {
	if err := f.enter(ctx, "orphaned"); err != nil {
		return nil, err
	}
	return f.some(&f.orphans, limit, grace), nil
}

func (f *fakeStore) RedeliverAll(ctx context.Context) (n int64, err error) {
	if err := f.enter(ctx, "redeliver all"); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.runs {
		if !r.taken && r.due.After(time.Now()) {
			r.due = time.Now()
			n++
		}
	}
	return n, nil
}

func (f *fakeStore) Deliver(ctx context.Context, requests, limit int, grace time.Duration) (page []store.Delivery, err error) {
	if err := f.enter(ctx, "undelivered"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.runs {
		if !r.taken && !r.due.After(time.Now()) && len(page) < limit {
			if r.trigger == store.TriggerApplication {
				if requests--; requests < 0 {
					continue
				}
			}
			r.due = time.Now().Add(grace << min(r.delivery, 5))
			r.delivery++
			page = append(page, store.Delivery{Run: r.id, Attempt: r.delivery, Trigger: r.trigger})
		}
	}
	return page, nil
}

func (f *fakeStore) Expire(ctx context.Context, age time.Duration, limit int) (int64, error) {
	if age != maxQueued {
		return 0, fmt.Errorf("runs expire after %s", age)
	}
	return f.purge(ctx, "expire", &f.unattempted, limit)
}

func (f *fakeStore) LoseCalls(ctx context.Context, limit int) (int64, error) {
	return f.purge(ctx, "lose calls", &f.lostCalls, limit)
}

func (f *fakeStore) PurgeTicks(ctx context.Context, _ time.Duration, _ int) (int64, error) {
	return 0, f.enter(ctx, "purge ticks")
}

func (f *fakeStore) PurgeAnswers(ctx context.Context, _ time.Duration, limit int) (int64, error) {
	return f.purge(ctx, "purge", &f.oldAnswers, limit)
}

// purge takes up to limit of n.
func (f *fakeStore) purge(ctx context.Context, op string, n *int, limit int) (int64, error) {
	if err := f.enter(ctx, op); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := min(limit, *n)
	*n -= taken
	return int64(taken), nil
}

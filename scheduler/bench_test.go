package scheduler

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// fakeQueue takes each run as soon as it is enqueued, as a fast worker would.
type fakeQueue struct {
	mute  bool // marks are made, but the answers are lost
	store *fakeStore
	// fail, if set, is asked before each task; an error of it is the call's.
	fail func(ctx context.Context, run int64) error
	// slow workers take nothing.
	slow bool
	// unserved: there are no workers.
	unserved bool

	mu       sync.Mutex
	enqueued []store.Delivery
	tasks    int
	mark     string
}

func (q *fakeQueue) Enqueue(ctx context.Context, trigger string, delivery int, runs ...int64) error {
	q.mu.Lock()
	fail := q.fail
	q.mu.Unlock()
	for _, run := range runs {
		if fail == nil {
			break
		}
		if err := fail(ctx, run); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	slow := q.slow
	q.tasks++
	for _, run := range runs {
		q.enqueued = append(q.enqueued, store.Delivery{Run: run, Attempt: delivery, Trigger: trigger})
	}
	q.mu.Unlock()
	for _, run := range runs {
		if !slow {
			q.store.with(func() { q.store.runs[run-1].taken = true })
		}
	}
	return nil
}

func (q *fakeQueue) taskCount() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tasks
}

func (q *fakeQueue) Mark(ctx context.Context, mark string) (before string, err error) {
	q.mu.Lock()
	fail := q.fail
	q.mu.Unlock()
	if fail != nil {
		if err := fail(ctx, 0); err != nil {
			return "", err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	before, q.mark = q.mark, mark
	if q.mute {
		return "", errRedis
	}
	return before, nil
}

func (q *fakeQueue) Served() (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.unserved, nil
}

func (q *fakeQueue) setFail(fail func(ctx context.Context, run int64) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail = fail
}

// runs returns the runs that were enqueued, sorted.
func (q *fakeQueue) runs() (ids []int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range q.enqueued {
		ids = append(ids, d.Run)
	}
	slices.Sort(ids)
	return ids
}

// logbook collects log lines.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// lines returns the messages, with their attributes, that contain a text.
func (l *logbook) lines(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// bench is a scheduler on fakes. Its bubble starts at midnight, 2000-01-01 UTC.
type bench struct {
	t     *testing.T
	store *fakeStore
	queue *fakeQueue
	log   *logbook
	stops []func() // of the schedulers that were started
}

// bubble runs a test, beside others, with a bench in a bubble, and stops the schedulers at its end.
func bubble(t *testing.T, test func(b *bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		test(b)
		for _, stop := range b.stops {
			stop()
		}
	})
}

func newBench(t *testing.T) *bench {
	t.Helper()
	f := &fakeStore{}
	return &bench{t: t, store: f, queue: &fakeQueue{store: f}, log: &logbook{}}
}

// config returns a configuration with a tick every ten minutes and slow polls.
func (b *bench) config(holder string) Config {
	p := policy.Default()
	p.Cron = "*/10 * * * *"
	return Config{
		Policy: p, Holder: holder, PageSize: 10, RelayInterval: time.Second,
		Logger: slog.New(slog.NewTextHandler(b.log, nil)),
	}
}

func (b *bench) new(cfg Config) *Scheduler {
	b.t.Helper()
	s, err := New(b.store, b.queue, cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// start runs a scheduler; stop ends it and waits for Run to return.
func (b *bench) start(s *Scheduler) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	synctest.Wait()
	stop = sync.OnceFunc(func() {
		b.t.Helper()
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("Run: %v", err)
		}
	})
	b.stops = append(b.stops, stop)
	return stop
}

// pass lets time pass.
func (b *bench) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// check fails the test where a condition does not hold, with the log.
func (b *bench) check(ok bool, format string, args ...any) {
	b.t.Helper()
	if !ok {
		b.t.Errorf(format+"\nlog:\n%s", append(args, strings.Join(b.log.lines(""), ""))...)
	}
}

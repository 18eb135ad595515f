// Package worker executes runs: it takes their tasks from asynq, plans with the
// strategies, and applies through the store. One place, outcome.go, decides what
// becomes of a run whose attempt failed.
//
// It knows nothing of schedules. Everything it must not do twice is guarded by
// the store's claim and fence, as asynq may deliver a task twice, at the same
// time, late, or never.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker/jobs"
)

// Config tunes a worker. The zero value of a field means its default, which Default has.
type Config struct {
	// Name identifies the worker in the ledger. Defaults to host and process id.
	Name string `yaml:"-" json:"-"`
	// Concurrency is how many runs are worked on at once. Most of a run is waiting for a
	// commit that it shares with others, so many keep a few connections busy.
	Concurrency int `yaml:"concurrency"`
	// Lease is how long a run belongs to this worker without a heartbeat. A run of a
	// crashed worker is picked up after it.
	Lease time.Duration `yaml:"lease"`
	// Heartbeat is how often the lease of a run is extended. Defaults to a quarter of
	// Lease.
	Heartbeat time.Duration `yaml:"heartbeat"`
	// JobTimeout bounds one delivery of one run. It travels in the task: an application
	// gives it to jobs.NewEnqueuer.
	JobTimeout time.Duration `yaml:"job_timeout"`
	// DrainTimeout is how long runs in flight may finish when the worker stops, before
	// they are sent back to the queue.
	DrainTimeout time.Duration `yaml:"drain_timeout"`
	// CheckInterval is how often an idle worker looks into Redis.
	CheckInterval time.Duration `yaml:"check_interval"`
	// WriteTimeout bounds the write of a run's end after its own time is up.
	// Defaults to 5 s.
	WriteTimeout time.Duration `yaml:"-" json:"-"`
	// Logger gets one line per run. Defaults to none.
	Logger *slog.Logger `yaml:"-" json:"-"`
}

// Default returns the configuration of a worker that is told nothing.
func Default() Config {
	return Config{
		Concurrency:   64,
		Lease:         time.Minute,
		Heartbeat:     15 * time.Second,
		JobTimeout:    45 * time.Minute,
		DrainTimeout:  25 * time.Second,
		CheckInterval: 20 * time.Millisecond,
	}
}

// Validate reports every setting that is out of range, as an errors.Join of
// *policy.FieldError values. Zeros are not replaced by defaults before.
func (c Config) Validate() error {
	faults := []error{
		policy.Between("concurrency", c.Concurrency, 1, 10_000),
		policy.Between("lease", c.Lease, time.Second, time.Hour),
		policy.Between("heartbeat", c.Heartbeat, 100*time.Millisecond, time.Hour),
		policy.Between("job_timeout", c.JobTimeout, time.Second, 24*time.Hour),
		policy.Between("drain_timeout", c.DrainTimeout, time.Millisecond, time.Hour),
		policy.Between("check_interval", c.CheckInterval, time.Millisecond, time.Minute),
	}
	if c.Heartbeat > c.Lease/2 {
		faults = append(faults, &policy.FieldError{
			Key: "heartbeat", Value: policy.Text(c.Heartbeat),
			Want: fmt.Sprintf("at most half of worker.lease (%s), or a lease ends under a worker that lives", policy.Text(c.Lease)),
		})
	}
	return errors.Join(faults...)
}

func (c Config) withDefaults() Config {
	d := Default()
	c.Concurrency = cmp.Or(c.Concurrency, d.Concurrency)
	c.Lease = cmp.Or(c.Lease, d.Lease)
	c.Heartbeat = cmp.Or(c.Heartbeat, c.Lease/4)
	c.JobTimeout = cmp.Or(c.JobTimeout, d.JobTimeout)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, d.DrainTimeout)
	c.CheckInterval = cmp.Or(c.CheckInterval, d.CheckInterval)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 5*time.Second)
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Worker is one process's share of the work.
type Worker struct {
	store   Store
	planner *Planner
	config  Config
	logger  *slog.Logger

	// probe is called between the steps of a run; tests die there.
	probe func(step string)

	policies sync.Map // hashes that are in the store

	database outage

	draining context.Context // over when no more tasks are taken
	drain    context.CancelFunc
	stopping context.Context // over when runs in flight have drained long enough
	abort    context.CancelCauseFunc
}

// New makes a worker. It does nothing until Run.
func New(st Store, planner *Planner, c Config) *Worker {
	c = c.withDefaults()
	w := &Worker{store: st, planner: planner, config: c, logger: c.Logger, probe: func(string) {}}
	w.draining, w.drain = context.WithCancel(context.Background())
	w.stopping, w.abort = context.WithCancelCause(context.Background())
	return w
}

// Run takes tasks until ctx is over, then stops taking, lets runs in flight finish
// for DrainTimeout, sends the rest back to the queue, and returns when all their
// handlers have. While Redis is away it waits for it. A worker runs once.
func (w *Worker) Run(ctx context.Context, redis asynq.RedisConnOpt) error {
	servers, err := w.start(redis)
	if err != nil {
		return err
	}
	<-ctx.Done()
	w.drain()
	for _, s := range servers {
		s.Stop()
	}
	// Shutdown waits for the handlers; those that take too long are told to stop.
	defer time.AfterFunc(w.config.DrainTimeout, func() { w.abort(ErrStopping) }).Stop()
	for _, s := range servers {
		s.Shutdown()
	}
	return nil
}

// perFetcher is how many runs one of asynq's servers works on. A server takes one
// task after the other, at one to three round trips each; where the machine is
// busy that is what a worker waits for, so it has several.
const perFetcher = 16

// queueDelays are the delays, beside a second, before asynq delivers a task again.
var queueDelays = backoff.Backoff{First: time.Second, Most: 30 * time.Second, Jitter: true}

func (w *Worker) start(redis asynq.RedisConnOpt) ([]*asynq.Server, error) {
	var servers []*asynq.Server
	logger := &asynqLogger{Logger: w.logger}
	for left := w.config.Concurrency; left > 0; left -= perFetcher {
		server := asynq.NewServer(redis, asynq.Config{
			Concurrency:       min(left, perFetcher),
			Queues:            jobs.Queues(),
			TaskCheckInterval: w.config.CheckInterval,
			// Not the caller's: a signal must not kill the runs in flight.
			BaseContext: context.Background,
			// asynq hands tasks out again, while their handlers still run, when this is
			// over. Ours are back before: drain, then the last write.
			ShutdownTimeout: w.config.DrainTimeout + w.config.WriteTimeout + 2*time.Second,
			// Only for when Postgres could not be asked: retries are its business.
			RetryDelayFunc: func(n int, _ error, _ *asynq.Task) time.Duration {
				return time.Second + queueDelays.Delay(n)
			},
			Logger:   logger,
			LogLevel: asynq.WarnLevel,
		})
		if err := server.Start(asynq.HandlerFunc(w.handle)); err != nil {
			for _, s := range servers {
				s.Shutdown()
			}
			return nil, fmt.Errorf("start worker: %w", err)
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// handle is asynq's handler. It returns an error only when Postgres could not be
// told what became of the run: every other end is a row in the ledger.
func (w *Worker) handle(ctx context.Context, t *asynq.Task) error {
	if t.Type() != jobs.TypeRun {
		w.logger.ErrorContext(ctx, "task of unknown type dropped", "type", t.Type())
		return nil
	}
	p, err := jobs.ParseRun(t.Payload())
	if err != nil {
		w.logger.ErrorContext(ctx, "task dropped", "error", err.Error())
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.stopping, func() { cancel(context.Cause(w.stopping)) })() //nolint:contextcheck // ctx goes on as it is; it only ends with the worker, too
	err = w.executeOrWait(ctx, p.Run)
	if err != nil && !errors.Is(err, context.Canceled) {
		w.logger.WarnContext(ctx, "run left to the queue", "run_id", p.Run, "error", errorText(err))
	}
	return err
}

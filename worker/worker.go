package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/sync/semaphore"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker/jobs"
)

// Store holds the methods of store.Worker that a worker calls.
type Store interface {
	Load(ctx context.Context, run store.RunID) (*store.Claim, error)
	LoadPage(ctx context.Context, runs []store.RunID) ([]*store.Claim, error)
	ApplyPage(ctx context.Context, changes []store.RunChange) (applied []store.RunID, err error)
	Claim(ctx context.Context, run store.RunID, worker string, lease time.Duration) (*store.Claim, error)
	Heartbeat(ctx context.Context, run store.RunID, fence int64, lease time.Duration) error
	AppliedAges(ctx context.Context, sid int64, runs int, age time.Duration) ([]time.Duration, error)
	Log(ctx context.Context, sid int64, upTo chat.Seq) ([]chat.Meta, error)
	Bytes(ctx context.Context, sid int64, seqs chat.Ranges) (int64, error)
	Messages(ctx context.Context, sid int64, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error)
	Originals(ctx context.Context, sid int64, upTo chat.Seq, of []chat.Seq, dropped string, most int64) (messages iter.Seq2[chat.Original, error], older []*chat.Message, err error)
	Apply(ctx context.Context, run store.RunID, fence int64, c store.Change) (chat.Ranges, error)
	Finish(ctx context.Context, c *store.Claim, status string, l store.Ledger, state *store.PostRunState) error
	Requeue(ctx context.Context, run store.RunID, fence int64, delay time.Duration, failed bool, code, text string) error
	Snooze(ctx context.Context, run store.RunID, delay time.Duration, code string) (int, error)
	Abandon(ctx context.Context, run store.RunID, outcome string) error
	EnsurePolicy(ctx context.Context, hash, tenant string, spec any) error
	Policy(ctx context.Context, name string, version int) (store.PolicyVersion, error)
	RegisterStrategies(ctx context.Context, params map[string][]string) error
	AskSummary(ctx context.Context, c store.SummaryCall) (id int64, a *store.SummaryAnswer, rejected string, err error)
	AnswerSummary(ctx context.Context, id int64, a store.SummaryAnswer) error
	FailSummary(ctx context.Context, id int64, code string, a store.SummaryAnswer) error
	RejectSummary(ctx context.Context, run store.RunID, key, code string) error
}

// Config tunes a worker. Zero fields take the values of Default.
type Config struct {
	// Name identifies the worker in the ledger. Defaults to host and process id.
	Name string `yaml:"-" json:"-"`
	// Concurrency is the number of runs executed at a time, and the number of those of
	// sweeps and bulk recompactions that are executed beside them. A run spends most of its
	// time waiting for a commit that it shares with others, so many runs need only a
	// few connections.
	Concurrency int `yaml:"concurrency"`
	// ReadBudget is how many bytes of messages the runs in work may read together: small runs share half
	// of it, and one run that reads more than an eighth of it is executed beside them at a time.
	// Defaults to DefaultReadBudget.
	ReadBudget policy.Bytes `yaml:"read_budget"`
	// Lease is how long a claimed run stays with this worker without a heartbeat. The
	// runs of a crashed worker are claimed by others after it.
	Lease time.Duration `yaml:"lease"`
	// Heartbeat is the interval at which the lease of a run is extended. Defaults to
	// a quarter of Lease.
	Heartbeat time.Duration `yaml:"heartbeat"`
	// JobTimeout bounds one delivery of one run. The worker does not read it: it
	// travels in the task, so the application passes it to jobs.NewEnqueuer.
	JobTimeout time.Duration `yaml:"job_timeout"`
	// DrainTimeout is how long runs in flight may continue when the worker stops.
	// After it they return to the queue.
	DrainTimeout time.Duration `yaml:"drain_timeout"`
	// CheckInterval is the interval at which an idle worker polls Redis while it gets no
	// notifications; with them it is once a second.
	CheckInterval time.Duration `yaml:"check_interval"`
	// WriteTimeout bounds the write of a run's outcome after its context has ended.
	// Defaults to 5 s.
	WriteTimeout time.Duration `yaml:"-" json:"-"`
	// Refresh brings what the application has written last into a session before an operator's run of it, and reports whether it may
	// have changed the session. It may be nil.
	Refresh func(ctx context.Context, k store.Key) (bool, error) `yaml:"-" json:"-"`
	// Logger receives one line per run. Defaults to a logger that discards.
	Logger *slog.Logger `yaml:"-" json:"-"`
	// Observer receives events, for metrics. It may be nil.
	Observer Observer `yaml:"-" json:"-"`
	// Tracer makes the spans of runs that plan or fail; nil for none.
	Tracer trace.TracerProvider `yaml:"-" json:"-"`
}

// Default returns the default settings.
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
// *policy.FieldError values. It does not apply defaults: a zero is out of range.
func (c Config) Validate() error {
	var fs policy.FieldErrors
	policy.CheckRange(&fs, "concurrency", c.Concurrency, 1, 10_000)
	fs.Check(c.ReadBudget == 0 || c.ReadBudget >= 1e6 && c.ReadBudget <= 1e15, "read_budget", c.ReadBudget, "0 (a twentieth of the memory), or 1MB to 1000TB")
	policy.CheckRange(&fs, "lease", c.Lease, time.Second, time.Hour)
	policy.CheckRange(&fs, "heartbeat", c.Heartbeat, 100*time.Millisecond, time.Hour)
	policy.CheckRange(&fs, "job_timeout", c.JobTimeout, time.Second, 24*time.Hour)
	policy.CheckRange(&fs, "drain_timeout", c.DrainTimeout, time.Millisecond, time.Hour)
	policy.CheckRange(&fs, "check_interval", c.CheckInterval, time.Millisecond, time.Minute)
	fs.Check(c.Heartbeat <= c.Lease/2, "heartbeat", c.Heartbeat,
		"at most half of worker.lease (%s), or the lease of a live worker expires", policy.Text(c.Lease))
	return fs.Join()
}

func (c Config) withDefaults() Config {
	d := Default()
	c.Concurrency = cmp.Or(c.Concurrency, d.Concurrency)
	c.ReadBudget = cmp.Or(c.ReadBudget, DefaultReadBudget())
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
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider()
	}
	return c
}

// Worker executes runs. Make one with New and run it once.
type Worker struct {
	store   Store
	planner *Planner
	config  Config
	logger  *slog.Logger
	tracer  trace.Tracer

	// failpoint is called between the steps of a run. Tests crash the worker there.
	failpoint func(step string)

	policies sync.Map // hashes of the policies that this process has saved

	database   *backoff.Outage
	queueLog   *asynqLogger
	pages      *semaphore.Weighted // of the pages in work
	alone      *semaphore.Weighted // of the runs of pages that are executed one by one
	small      *semaphore.Weighted // of the half of ReadBudget that small runs share
	large      *semaphore.Weighted // of the large run in work
	lastSingle atomic.Int64        // when the last single run arrived, in Unix nanoseconds
	notified   atomic.Bool         // Redis notifies of tasks: see listen

	// installation is set by Run: tasks of others are left in the queue.
	installation jobs.Installation

	draining context.Context // done when no more tasks are taken
	drain    context.CancelFunc
	stopping context.Context // done when DrainTimeout is over
	abort    context.CancelCauseFunc
}

// New returns a worker. It starts with Run.
func New(st Store, planner *Planner, c Config) *Worker {
	c = c.withDefaults()
	w := &Worker{
		store: st, planner: planner, config: c, logger: c.Logger, tracer: c.Tracer.Tracer(tracerName), failpoint: func(string) {},
		database: backoff.NewOutage(c.Logger, "database"), queueLog: &asynqLogger{Logger: c.Logger},
	}
	w.pages, w.alone = semaphore.NewWeighted(maxPages), semaphore.NewWeighted(int64(c.Concurrency))
	w.small, w.large = semaphore.NewWeighted(int64(c.ReadBudget/2)), semaphore.NewWeighted(1)
	w.draining, w.drain = context.WithCancel(context.Background())
	w.stopping, w.abort = context.WithCancelCause(context.Background())
	return w
}

// Run executes the runs of an installation until ctx is done. It then stops taking tasks,
// lets runs in flight continue for DrainTimeout, returns the others to the queue, and waits
// for all handlers. An outage of Redis or Postgres does not end it. Call it once.
func (w *Worker) Run(ctx context.Context, opt asynq.RedisConnOpt, in jobs.Installation) error {
	w.installation = in
	single := make(chan struct{}, (w.config.Concurrency+perFetcher-1)/perFetcher)
	bulk := make(chan struct{}, 1)
	servers, err := w.start(opt, single, bulk)
	if err != nil {
		return err
	}
	client := opt.MakeRedisClient().(redis.UniversalClient) // as all options of asynq do
	defer func() { _ = client.Close() }()
	var beside sync.WaitGroup
	beside.Go(func() { w.registerStrategies(ctx) })
	beside.Go(func() { w.listen(ctx, client, single, bulk) })
	defer beside.Wait()
	<-ctx.Done()
	w.drain()
	for _, s := range servers {
		s.Stop()
	}
	// Shutdown waits for the handlers; abort cancels those that outlast DrainTimeout.
	defer time.AfterFunc(w.config.DrainTimeout, func() { w.abort(ErrStopping) }).Stop()
	for _, s := range servers {
		s.Shutdown()
	}
	return nil
}

// registerStrategies records the strategies of this worker, so that requests for other
// strategies are refused. Without it they are accepted, and end as invalid_options.
func (w *Worker) registerStrategies(ctx context.Context) {
	known := map[string][]string{}
	for _, s := range w.planner.Registry.Describe() {
		known[s.Name] = []string{}
		for _, p := range s.Params {
			known[s.Name] = append(known[s.Name], p.Name)
		}
	}
	for attempt := 0; ; attempt++ {
		err := w.store.RegisterStrategies(ctx, known)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !errors.Is(err, store.ErrUnavailable) {
			w.logger.WarnContext(ctx, "strategies not registered", "error", errorText(err))
			return
		}
		if backoff.Wait(ctx, outagePauses.Delay(attempt)) != nil {
			return
		}
	}
}

// perFetcher is the concurrency of one asynq server. A server fetches its tasks one
// after the other, at one to three round trips each, which limits the throughput of a
// busy worker; so a worker runs several.
const perFetcher = 16

// queueDelays are the delays, added to a second, before asynq delivers a task again.
var queueDelays = backoff.Backoff{First: time.Second, Most: 30 * time.Second, Jitter: true}

// foreignDelay is the delay before asynq delivers a task of another owner again, to one of
// the servers of its queue.
const foreignDelay = 10 * time.Second

// start starts the servers of single tasks and that of bulk ones; each waits for its channel.
func (w *Worker) start(opt asynq.RedisConnOpt, wakeSingle, wakeBulk chan struct{}) ([]*asynq.Server, error) {
	bulk := w.installation.BulkQueue()
	single := w.installation.Queues()
	delete(single, bulk)
	configs := []asynq.Config{{Queues: map[string]int{bulk: 1}, Concurrency: bulkTasks}}
	for left := w.config.Concurrency; left > 0; left -= perFetcher {
		configs = append(configs, asynq.Config{Queues: single, Concurrency: min(left, perFetcher)})
	}
	var servers []*asynq.Server
	for i, c := range configs {
		wake := wakeSingle
		if i == 0 {
			wake = wakeBulk
		}
		server := asynq.NewServer(&fetcher{RedisConnOpt: opt, worker: w, queues: len(c.Queues), wake: wake}, w.queueConfig(c))
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

// queueConfig returns the configuration of an asynq server with the given queues and
// concurrency.
func (w *Worker) queueConfig(c asynq.Config) asynq.Config {
	c.TaskCheckInterval = asynqCheck // its fetcher waits
	// Not Run's context: a signal must not cancel the runs in flight.
	c.BaseContext = context.Background
	// After this timeout asynq requeues tasks whose handlers still run. Ours return before:
	// after the drain and the write of the outcome.
	c.ShutdownTimeout = w.config.DrainTimeout + w.config.WriteTimeout + 2*time.Second
	// asynq retries only when Postgres was unreachable, and tasks that a stopped worker had not begun;
	// all other retries are scheduled in Postgres.
	c.RetryDelayFunc = func(n int, err error, _ *asynq.Task) time.Duration {
		if errors.Is(err, jobs.ErrForeign) {
			return foreignDelay
		}
		return time.Second + queueDelays.Delay(n)
	}
	// A task of another owner keeps its retries; without any it goes to the archive.
	c.IsFailure = func(err error) bool { return !errors.Is(err, jobs.ErrForeign) && !errors.Is(err, ErrStopping) }
	c.Logger, c.LogLevel = w.queueLog, asynq.WarnLevel
	return c
}

// handle implements asynq.Handler. It returns an error, so that asynq delivers the task
// again, when the outcome could not be written to Postgres, and for a task of another
// owner: acknowledged, it would be lost.
func (w *Worker) handle(ctx context.Context, t *asynq.Task) error {
	runs, err := w.installation.ReadRuns(t)
	if err != nil {
		w.queueLog.Error("task left in the queue: ", err) //nolint:contextcheck // the interface of asynq's loggers has no context
		return err
	}
	ctx, cancel := context.WithCancelCause(jobs.TraceOf(ctx, t))
	defer cancel(nil)
	defer context.AfterFunc(w.stopping, func() { cancel(context.Cause(w.stopping)) })() //nolint:contextcheck // ctx keeps its values and deadline; stopping only cancels it
	if len(runs) > 1 {
		return w.executePage(ctx, runs)
	}
	w.lastSingle.Store(time.Now().UnixNano())
	return w.executeOrLeave(ctx, runs[0])
}

// executeOrLeave executes a run and logs where it is left to the queue.
func (w *Worker) executeOrLeave(ctx context.Context, run store.RunID) error {
	err := w.executeOrWait(ctx, run)
	// An outage is logged once, not for each run that it leaves to the queue.
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrUnavailable) {
		w.logger.WarnContext(ctx, "run left to the queue", "run_id", run, "error", errorText(err))
	}
	return err
}

// outagePauses are the delays between attempts while the database is unavailable.
var outagePauses = backoff.Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second}

// executeOrWait executes a run, and again while the database is unavailable or the outcome
// could not be written, until the task's deadline or the worker's drain. Returning the task
// to the queue instead would let every queued task fail in turn and use up its retries, and
// leave a claimed run until its lease expires.
func (w *Worker) executeOrWait(ctx context.Context, run store.RunID) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.draining, cancel)() //nolint:contextcheck // ctx continues; the drain only ends the waiting

	var fence int64 // of the claim of an attempt whose outcome could not be written
	for attempt := 0; ; attempt++ {
		err := w.giveBack(ctx, run, fence, "not_recorded")
		if err == nil {
			err = w.execute(ctx, run)
		}
		if err == nil {
			w.database.Succeeded()
			return nil
		}
		unrecorded, ok := errors.AsType[*unrecordedError](err)
		if ok {
			fence = unrecorded.fence
		}
		switch {
		case errors.Is(err, store.ErrUnavailable), ok && errors.Is(err, context.DeadlineExceeded):
			w.database.Failed(errorText(err))
		case !ok:
			return err
		}
		if backoff.Wait(waiting, outagePauses.Delay(attempt)) != nil {
			return err
		}
	}
}

// giveBack returns a claimed run to the queue, to be executed again by this worker at once, for the
// reason in a code. It does nothing without a fence.
func (w *Worker) giveBack(ctx context.Context, run store.RunID, fence int64, code string) error {
	if fence == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.config.WriteTimeout)
	defer cancel()
	// If this worker dies now, others find the run when its lease would have expired.
	err := w.store.Requeue(ctx, run, fence, w.config.Lease, false, code, "")
	switch {
	case errors.Is(err, store.ErrNotApplicable):
		return nil // another worker has it, or it has ended
	case err != nil:
		return &unrecordedError{err, fence}
	}
	return nil
}

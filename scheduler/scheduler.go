package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/policy"
)

// EntryNightly is the name of the schedule that the policy's cron is.
const EntryNightly = "nightly"

// Store holds the methods of store.Scheduler that a scheduler calls. See there for their
// contracts.
type Store interface {
	Lead(ctx context.Context, role, holder string, ttl time.Duration) (bool, error)
	Resign(ctx context.Context, role, holder string) error
	NoteProcesses(ctx context.Context, holder string, queueAway, workersAway bool) error
	CorrectTimes(ctx context.Context, limit int) (time.Duration, error)
	BoundTimes(ctx context.Context, grace time.Duration) (int64, error)
	Fire(ctx context.Context, t store.Tick) (outcome string, sweep int64, err error)
	LastTick(ctx context.Context, entry string) (time.Time, error)
	OpenSweeps(ctx context.Context) ([]store.Sweep, error)
	SweepTogether(ctx context.Context, sweep int64, limit int, grace time.Duration, rules []store.Truncation, worker string) (store.SweptPage, error)
	OpenBulkCompacts(ctx context.Context) ([]int64, error)
	BulkCompactPage(ctx context.Context, id int64, limit int, grace time.Duration) (page []store.Delivery, more bool, err error)
	Waiting(ctx context.Context, trigger string, limit int) (waiting, running int, err error)
	Relay(ctx context.Context, debounce, maxDelay time.Duration, limit int, grace time.Duration) ([]store.Delivery, error)
	NextWork(ctx context.Context, debounce, maxDelay, most time.Duration) (time.Duration, error)
	Sleep(ctx context.Context, most time.Duration) (notified bool, err error)
	Awake(ctx context.Context) error
	Deliver(ctx context.Context, requests, limit int, grace time.Duration) ([]store.Delivery, error)
	RedeliverAll(ctx context.Context) (int64, error)
	Orphaned(ctx context.Context, limit int, grace time.Duration) ([]store.Delivery, error)
	Forgotten(ctx context.Context, limit int, grace time.Duration) ([]store.Delivery, error)
	ReleaseThrottled(ctx context.Context) (int64, error)
	SumSpending(ctx context.Context) (int64, error)
	Limited(ctx context.Context) (store.Limited, error)
	CountElsewhere(ctx context.Context, installation, database string, use []store.LimitedUse) error
	CheckTimes(ctx context.Context, limit int) (int, error)
	SavePolicy(ctx context.Context, hash string, spec json.RawMessage, thresholds []store.Threshold) error
	Policies(ctx context.Context, tenant string) ([]store.PolicyVersion, error)
	SaveThresholds(ctx context.Context, name string, version int, hash string, thresholds []store.Threshold) error
	PolicyProgress(ctx context.Context) (store.PolicyProgress, error)
	RefreshSessions(ctx context.Context, limit int) (changed int, state string, err error)
	Expire(ctx context.Context, age time.Duration, limit int) (int64, error)
	LoseCalls(ctx context.Context, limit int) (int64, error)
	PurgeAnswers(ctx context.Context, age time.Duration, limit int) (int64, error)
	Archive(ctx context.Context, age time.Duration, policies []string, limit int) (moved store.ArchiveStats, more bool, err error)
	ArchiveOldest(ctx context.Context, most int64, limit int) (moved store.ArchiveStats, more bool, err error)
	DiskUse(ctx context.Context) (store.DiskUse, error)
	PurgeArchive(ctx context.Context, age, out time.Duration, policies []string, limit int) (int64, error)
	PurgeTicks(ctx context.Context, age time.Duration, limit int) (int64, error)
	PurgeRuns(ctx context.Context, age time.Duration, from store.RunMark, limit int) (store.RunMark, int64, error)
}

// Enqueuer holds the methods of *jobs.Enqueuer that a scheduler calls. See there for their
// contracts.
type Enqueuer interface {
	Enqueue(ctx context.Context, trigger string, delivery int, runs ...int64) error
	Mark(ctx context.Context, mark string) (before string, err error)
	Served() (bool, error)
}

// Scheduler starts runs. Make one with New and run it once. TriggerSweep and SyncPolicy are
// safe for concurrent use, also during Run.
type Scheduler struct {
	cfg     Config
	store   Store
	queue   Enqueuer
	log     *slog.Logger
	entries []entry

	database *backoff.Outage
	space    *backoff.Outage // of the database's disk
	redis    *backoff.Outage
	// sweepNow wakes the sweep loop before its next poll.
	sweepNow chan struct{}
	// diskFull is that the disk budget is exceeded for good, as was logged.
	diskFull bool
	rules    rules
}

// New returns a scheduler, or all errors of the configuration. It does not connect. The
// scheduler closes neither st nor queue.
func New(st Store, queue Enqueuer, cfg Config) (*Scheduler, error) {
	cfg = cfg.withDefaults()
	err := cfg.Validate()
	if p := cfg.Policy.Validate(); p != nil {
		err = errors.Join(err, fmt.Errorf("policy: %w", p))
	}
	if s := policy.ValidateSchedules(cfg.Schedules); s != nil {
		err = errors.Join(err, fmt.Errorf("schedules: %w", s))
	}
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	entries, err := cfg.entries()
	if err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	return &Scheduler{
		cfg: cfg, store: st, queue: queue, log: cfg.Logger, entries: entries,
		database: backoff.NewOutage(cfg.Logger, "database"), space: backoff.NewOutage(cfg.Logger, "disk space of the database"), redis: backoff.NewOutage(cfg.Logger, "queue"),
		sweepNow: make(chan struct{}, 1), rules: newRules(cfg.Truncation != nil),
	}, nil
}

// Run takes part in the election and works while it leads, until ctx is done. It then
// waits for its goroutines, releases the lease and returns nil. An outage of Postgres or
// Redis does not end it.
func (s *Scheduler) Run(ctx context.Context) error {
	started := s.clock()
	s.logEntries(ctx, started)
	// The lease may be held even if the response to taking it was lost.
	defer s.resign(ctx)
	standingBy := false
	for {
		sent, leading, err := s.takeLead(ctx)
		switch {
		case err != nil:
			return nil //nolint:nilerr // only ctx ends the attempts, and its end is the regular one
		case leading:
			standingBy = false
			s.lead(ctx, sent, started)
			continue
		case !standingBy:
			standingBy = true
			s.log.InfoContext(ctx, "standing by: another scheduler leads", "holder", s.cfg.Holder)
		}
		if backoff.Wait(ctx, s.cfg.LeaderTTL/3) != nil {
			return nil
		}
	}
}

// TriggerSweep starts a sweep now, which the leader executes. It reports false if one has
// been started in this second already. It needs no Run.
func (s *Scheduler) TriggerSweep(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	tick := s.clock().UTC().Truncate(time.Second)
	outcome, _, err := s.store.Fire(ctx, store.Tick{Entry: EntryNightly, At: tick, By: s.cfg.Holder, Source: store.SourceOperator})
	if err != nil {
		return false, fmt.Errorf("trigger a sweep: %w", err)
	}
	s.wakeSweeps()
	return outcome != "", nil
}

package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

// EntryNightly is the cron entry of the policy's sweep.
const EntryNightly = "nightly"

// Leases is the row lease that makes one scheduler lead.
type Leases interface {
	Lead(ctx context.Context, role, holder string, ttl time.Duration) (bool, error)
	Resign(ctx context.Context, role, holder string) error
}

// Slots are the times of the cron; each fires once.
type Ticks interface {
	FireTick(ctx context.Context, entry string, slot time.Time, by string) (bool, error)
	LastTick(ctx context.Context, entry string) (time.Time, error)
}

// Sweeps are the passes over the fleet.
type Sweeps interface {
	OpenSweeps(ctx context.Context) ([]store.Sweep, error)
	SweepPage(ctx context.Context, sweep int64, limit int, grace time.Duration) (page []store.Delivery, done bool, err error)
	Waiting(ctx context.Context, trigger string, limit int) (int, error)
}

// Deliveries are the runs to ring for.
type Deliveries interface {
	Relay(ctx context.Context, debounce, maxDelay time.Duration, limit int, grace time.Duration) ([]store.Delivery, error)
	Undelivered(ctx context.Context, limit int, grace time.Duration) ([]store.Delivery, error)
	Orphaned(ctx context.Context, limit int, grace time.Duration) ([]store.Delivery, error)
	Forgotten(ctx context.Context, limit int, grace time.Duration) ([]store.Delivery, error)
}

// Policies are the thresholds that sessions are compared with.
type Policies interface {
	SavePolicy(ctx context.Context, hash string, spec json.RawMessage, thresholds []store.Threshold) error
	RefreshThresholds(ctx context.Context, after int64, limit int) (changed int, next int64, err error)
}

// Answers are what models said: kept until no run can want them any more.
type Answers interface {
	PurgeAnswers(ctx context.Context, age time.Duration, limit int) (int64, error)
}

// Store is what the scheduler needs of Postgres; *store.Store has it. The
// contracts are those documented there.
type Store interface {
	Leases
	Ticks
	Sweeps
	Deliveries
	Policies
	Answers
}

// Enqueuer rings for a run; *jobs.Enqueuer does. Safe for concurrent use, and
// ringing twice for one delivery is ringing once.
type Enqueuer interface {
	Enqueue(ctx context.Context, run int64, delivery int, trigger string) error
}

// Scheduler starts runs. Make one with New; Run it once. TriggerSweep and
// SyncPolicy are safe beside Run and from several goroutines.
type Scheduler struct {
	cfg      Config
	store    Store
	queue    Enqueuer
	log      *slog.Logger
	schedule cron.Schedule
	location *time.Location

	database *outage
	redis    *outage
	// sweepNow wakes the sweep loop before its next poll.
	sweepNow chan struct{}
}

// New checks the configuration, reporting everything that is wrong with it, and
// contacts nobody. The scheduler closes neither st nor queue.
func New(st Store, queue Enqueuer, cfg Config) (*Scheduler, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	schedule, location, err := cfg.Policy.Schedule()
	if err != nil {
		return nil, fmt.Errorf("scheduler: policy: cron: %w", err)
	}
	return &Scheduler{
		cfg: cfg, store: st, queue: queue, log: cfg.Logger, schedule: schedule, location: location,
		database: &outage{
			gone: func(err error) { cfg.Logger.Warn("database unavailable, retrying", "error", err) },
			back: func(away time.Duration) { cfg.Logger.Info("database is back", "away", away) },
		},
		redis: &outage{
			gone: func(err error) { cfg.Logger.Warn("queue unavailable, retrying", "error", err) },
			back: func(away time.Duration) { cfg.Logger.Info("queue is back", "away", away) },
		},
		sweepNow: make(chan struct{}, 1),
	}, nil
}

// Run takes part in the election and works while it leads, until ctx is done;
// then it waits for what it started, gives the lead up and returns nil. Neither
// Postgres nor Redis being away ends it.
func (s *Scheduler) Run(ctx context.Context) error {
	started := s.clock()
	// The row may be ours even if the answer to taking it was lost.
	defer s.resign(ctx)
	standingBy := false
	for {
		sent, leading, err := s.takeLead(ctx)
		switch {
		case err != nil:
			return nil //nolint:nilerr // only ctx ends the attempts, and that is the ordinary end
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

// TriggerSweep starts a sweep now, whoever leads; the leader goes through it. It
// reports false if one was started in this second already. It needs no Run.
func (s *Scheduler) TriggerSweep(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	slot := s.clock().UTC().Truncate(time.Second)
	fired, err := s.store.FireTick(ctx, EntryNightly, slot, s.cfg.Holder)
	if err != nil {
		return false, fmt.Errorf("trigger a sweep: %w", err)
	}
	s.wakeSweeps()
	return fired, nil
}

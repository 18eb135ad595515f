package scheduler

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Config holds the policy and the settings of a scheduler. Policy is required; other
// zero fields take the values of Default.
type Config struct {
	// Policy gives the cron and its zone, debounce and maximum delay, and the
	// thresholds of sessions. It must be valid.
	Policy policy.Policy `yaml:"-" json:"-"`
	// Schedules start sweeps, by name. If there are any, the cron of Policy and SweepWindow
	// do not count.
	Schedules map[string]policy.Schedule `yaml:"-" json:"-"`
	// Models are the model names, or prefixes of them, that Window has entries for. Each
	// gets its own thresholds; other models get those of an unknown model.
	Models []string `yaml:"-" json:"-"`
	// Window returns the context windows of models. If nil, all models are unknown.
	Window policy.WindowFunc `yaml:"-" json:"-"`
	// BindsReasoning reports whether a model binds signed reasoning to the messages before it. If
	// nil, all do.
	BindsReasoning func(model string) bool `yaml:"-" json:"-"`
	// Truncation returns the rule by which the database truncates sessions of a kind without
	// a worker. If nil, all runs of sweeps need one.
	Truncation func(ctx context.Context, k store.SessionKind) (store.Truncation, error) `yaml:"-" json:"-"`
	// Attached brings rows of attached tables into the log, and reports whether there are more. It may be nil.
	Attached func(ctx context.Context) (more bool, err error) `yaml:"-" json:"-"`
	// Siblings are the other databases of the fleet, whose use counts for the limits of this one.
	Siblings []Sibling `yaml:"-" json:"-"`

	// RelayInterval is the interval at which the outbox is polled, and five times as often for a
	// second after an event. Without work it is polled once a second, and after a notification;
	// without notifications at four times the interval.
	RelayInterval time.Duration `yaml:"relay_interval"`
	// PageSize is the number of sessions per statement. As many runs as the workers take in a second, and
	// at most ten pages, wait in the queue for each trigger; the rest stays in Postgres.
	PageSize int `yaml:"page_size"`
	// RedeliverAfter is the time after which a queued run that no worker has taken is
	// enqueued again.
	RedeliverAfter time.Duration `yaml:"redeliver_after"`
	// LeaderTTL is the duration of the leader's lease.
	LeaderTTL time.Duration `yaml:"leader_ttl"`
	// SweepWindow is how long after a tick of the policy's cron its sweep may queue runs. The rest
	// follows at the next tick. 0 is no limit.
	SweepWindow time.Duration `yaml:"sweep_window"`
	// ReconcileInterval is the interval between searches for lost work.
	ReconcileInterval time.Duration `yaml:"reconcile_interval"`
	// KeepRuns is how long runs that changed nothing are kept. 0 keeps them all.
	KeepRuns time.Duration `yaml:"keep_runs"`
	// DiskBudget is the disk space that the tables of the database should take at most, with
	// indexes. Above DiskHighWater, a share of it, words are archived sooner than policies say:
	// the oldest first, down to those that left the view a day ago. 0 is no budget.
	DiskBudget    policy.Bytes `yaml:"disk_budget"`
	DiskHighWater float64      `yaml:"disk_high_water"`

	// Holder identifies this scheduler in the lease. It must be unique among running
	// schedulers. Defaults to host, process id and a random part.
	Holder string `yaml:"-" json:"-"`
	// Logger defaults to a logger that discards.
	Logger *slog.Logger `yaml:"-" json:"-"`
	// Observer receives events, for metrics. It may be nil.
	Observer Observer `yaml:"-" json:"-"`
	// Now is the clock of the cron. Defaults to time.Now.
	Now func() time.Time `yaml:"-" json:"-"`
}

// Default returns the default settings.
func Default() Config {
	return Config{
		RelayInterval:     25 * time.Millisecond,
		PageSize:          500,
		RedeliverAfter:    2 * time.Minute,
		LeaderTTL:         15 * time.Second,
		ReconcileInterval: 30 * time.Second,
		KeepRuns:          90 * 24 * time.Hour,
		DiskHighWater:     0.9,
	}
}

// Validate reports every setting that is out of range, as an errors.Join of
// *policy.FieldError values. It does not apply defaults, so a zero is out of range, and
// does not check the policy.
func (c Config) Validate() error {
	// maxPageSize bounds the transaction of a page and the memory of its deliveries.
	const maxPageSize = 10_000
	var fs policy.FieldErrors
	policy.CheckRange(&fs, "relay_interval", c.RelayInterval, time.Millisecond, time.Minute)
	policy.CheckRange(&fs, "page_size", c.PageSize, 1, maxPageSize)
	policy.CheckRange(&fs, "redeliver_after", c.RedeliverAfter, time.Second, 24*time.Hour)
	policy.CheckRange(&fs, "leader_ttl", c.LeaderTTL, time.Second, time.Hour)
	policy.CheckRange(&fs, "sweep_window", c.SweepWindow, 0, 7*24*time.Hour)
	policy.CheckRange(&fs, "reconcile_interval", c.ReconcileInterval, time.Second, 24*time.Hour)
	if c.KeepRuns != 0 { // guards look back for a day
		policy.CheckRange(&fs, "keep_runs", c.KeepRuns, 7*24*time.Hour, 100*365*24*time.Hour)
	}
	fs.Check(c.DiskBudget == 0 || c.DiskBudget >= 1e6 && c.DiskBudget <= 1e15, "disk_budget", c.DiskBudget, "0, or 1MB to 1000TB")
	fs.Check(c.DiskHighWater > 0 && c.DiskHighWater <= 1, "disk_high_water", c.DiskHighWater, "more than 0, at most 1")
	return fs.Join()
}

// SchedulesInForce returns Schedules or, without any, that of the policy's cron.
func (c Config) SchedulesInForce() map[string]policy.Schedule {
	if len(c.Schedules) > 0 {
		return c.Schedules
	}
	s := c.Policy.Schedule()
	s.Window = c.SweepWindow
	return map[string]policy.Schedule{EntryNightly: s}
}

// DiskMark returns the high-water mark of the disk budget in bytes.
func (c Config) DiskMark() int64 { return int64(c.DiskHighWater * float64(c.DiskBudget)) }

func (c Config) withDefaults() Config {
	d := Default()
	c.RelayInterval = cmp.Or(c.RelayInterval, d.RelayInterval)
	c.PageSize = cmp.Or(c.PageSize, d.PageSize)
	c.RedeliverAfter = cmp.Or(c.RedeliverAfter, d.RedeliverAfter)
	c.LeaderTTL = cmp.Or(c.LeaderTTL, d.LeaderTTL)
	c.ReconcileInterval = cmp.Or(c.ReconcileInterval, d.ReconcileInterval)
	c.DiskHighWater = cmp.Or(c.DiskHighWater, d.DiskHighWater)
	if c.Holder == "" {
		host, _ := os.Hostname() // the rest is unique without it
		c.Holder = fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:6])
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

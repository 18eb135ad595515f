package scheduler

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sessionstore/compactor/strategies/policy"
)

// Config is what a scheduler is told. Only Policy has no default; Default has those of
// the settings.
type Config struct {
	// Policy gives the cron and its zone, debounce and maximum delay, and the
	// thresholds of sessions. It has to be valid.
	Policy policy.Policy `yaml:"-" json:"-"`
	// Models are the names, or beginnings of names, that Window knows: each gets
	// thresholds of its own. Models that none matches get those of an unknown one.
	Models []string `yaml:"-" json:"-"`
	// Window is the table of models. Nil is an empty one.
	Window policy.WindowFunc `yaml:"-" json:"-"`

	// RelayInterval is how often written sessions are looked for.
	RelayInterval time.Duration `yaml:"relay_interval"`
	// PageSize is how many sessions are handled at a time. Ten pages of a trigger may
	// wait in the queue; more stay in Postgres.
	PageSize int `yaml:"page_size"`
	// RedeliverAfter is when a queued run that no worker took is enqueued again.
	RedeliverAfter time.Duration `yaml:"redeliver_after"`
	// LeaderTTL is how long a scheduler leads without extending its lease.
	LeaderTTL time.Duration `yaml:"leader_ttl"`
	// ReconcileInterval is how often lost work is looked for.
	ReconcileInterval time.Duration `yaml:"reconcile_interval"`

	// Holder names this scheduler in the lease. No two that run at once may share
	// a name. Defaults to host, process id and a random part.
	Holder string `yaml:"-" json:"-"`
	// Logger defaults to none.
	Logger *slog.Logger `yaml:"-" json:"-"`
	// Now is the clock that cron slots are compared with. Defaults to time.Now.
	Now func() time.Time `yaml:"-" json:"-"`
}

// Default returns the settings of a scheduler that is told nothing.
func Default() Config {
	return Config{
		RelayInterval:     25 * time.Millisecond,
		PageSize:          500,
		RedeliverAfter:    2 * time.Minute,
		LeaderTTL:         15 * time.Second,
		ReconcileInterval: 30 * time.Second,
	}
}

// Validate reports every setting that is out of range, as an errors.Join of
// *policy.FieldError values. Zeros are not replaced by defaults before, and the policy is
// not looked at.
func (c Config) Validate() error {
	// maxPageSize keeps a page's transaction short and its deliveries small in memory.
	const maxPageSize = 10_000
	return errors.Join(
		policy.Between("relay_interval", c.RelayInterval, time.Millisecond, time.Minute),
		policy.Between("page_size", c.PageSize, 1, maxPageSize),
		policy.Between("redeliver_after", c.RedeliverAfter, time.Second, 24*time.Hour),
		policy.Between("leader_ttl", c.LeaderTTL, time.Second, time.Hour),
		policy.Between("reconcile_interval", c.ReconcileInterval, time.Second, 24*time.Hour),
	)
}

// withDefaults replaces zeros.
func (c Config) withDefaults() Config {
	d := Default()
	c.RelayInterval = cmp.Or(c.RelayInterval, d.RelayInterval)
	c.PageSize = cmp.Or(c.PageSize, d.PageSize)
	c.RedeliverAfter = cmp.Or(c.RedeliverAfter, d.RedeliverAfter)
	c.LeaderTTL = cmp.Or(c.LeaderTTL, d.LeaderTTL)
	c.ReconcileInterval = cmp.Or(c.ReconcileInterval, d.ReconcileInterval)
	if c.Holder == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "scheduler"
		}
		c.Holder = fmt.Sprintf("%s-%d-%s", host, os.Getpid(), rand.Text()[:6])
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// validate reports everything that is wrong, the policy included.
func (c Config) validate() error {
	err := c.Validate()
	if p := c.Policy.Validate(); p != nil {
		err = errors.Join(err, fmt.Errorf("policy: %w", p))
	}
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	return nil
}

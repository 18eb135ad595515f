package scheduler

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sessionstore/compactor/strategies/policy"
)

// Config is what a scheduler is told. Only Policy has no default.
type Config struct {
	// Policy gives the cron and its zone, debounce and maximum delay, and the
	// thresholds of sessions. It has to be valid.
	Policy policy.Policy
	// Models are the names, or beginnings of names, that Window knows: each gets
	// thresholds of its own. Models that none matches get those of an unknown one.
	Models []string
	// Window is the table of models. Nil is an empty one.
	Window policy.WindowFunc

	// RelayInterval is how often written sessions are looked for. Defaults to 25 ms.
	RelayInterval time.Duration
	// PageSize is how many sessions are handled at a time. Defaults to 500. Ten
	// pages of a trigger may wait in the queue; more stay in Postgres.
	PageSize int
	// RedeliverAfter is when a queued run that nobody took is rung for again.
	// Defaults to 2 min.
	RedeliverAfter time.Duration
	// LeaderTTL is how long a scheduler leads without a sign of life. Defaults to 15 s.
	LeaderTTL time.Duration
	// ReconcileInterval is how often lost work is looked for. Defaults to 1 min.
	ReconcileInterval time.Duration

	// Holder names this scheduler in the lease. No two that run at once may share
	// a name. Defaults to host, process id and a random part.
	Holder string
	// Logger defaults to none.
	Logger *slog.Logger
	// Now is the clock that cron slots are compared with. Defaults to time.Now.
	Now func() time.Time
}

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	setDefault(&c.RelayInterval, 25*time.Millisecond)
	setDefault(&c.PageSize, 500)
	setDefault(&c.RedeliverAfter, 2*time.Minute)
	setDefault(&c.LeaderTTL, 15*time.Second)
	setDefault(&c.ReconcileInterval, time.Minute)
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

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate reports everything that is wrong, as one joined error.
func (c Config) validate() error {
	var faults []error
	within := func(name string, d, least, most time.Duration) {
		if d < least || d > most {
			faults = append(faults, fmt.Errorf("scheduler: %s: %s: want %s to %s", name, d, least, most))
		}
	}
	within("relay interval", c.RelayInterval, time.Millisecond, time.Minute)
	within("redeliver after", c.RedeliverAfter, time.Second, 24*time.Hour)
	within("leader ttl", c.LeaderTTL, time.Second, time.Hour)
	within("reconcile interval", c.ReconcileInterval, time.Second, 24*time.Hour)
	if c.PageSize < 1 || c.PageSize > maxPageSize {
		faults = append(faults, fmt.Errorf("scheduler: page size: %d: want 1 to %d", c.PageSize, maxPageSize))
	}
	if err := c.Policy.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("scheduler: policy: %w", err))
	}
	return errors.Join(faults...)
}

// maxPageSize keeps a page's transaction short and its deliveries small in memory.
const maxPageSize = 10_000

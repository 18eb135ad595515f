package backoff

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// relapse is how long after an outage another one counts as a part of it: connections
	// that are dropped one by one, or a server that restarts twice.
	relapse = time.Minute
	// relapseLogged is how long such a part may last before it is logged.
	relapseLogged = 2 * time.Second
)

// Outage tracks whether a dependency answers, for all goroutines that call it, and logs
// one line when an outage begins and one when it ends, however many calls fail and however
// often one succeeds meanwhile. Safe for concurrent use.
type Outage struct {
	logger *slog.Logger
	name   string

	mu          sync.Mutex
	since       time.Time // zero while the dependency answers
	logged      bool      // the present outage is logged
	backAt      time.Time // when the end of an outage was logged last
	succeededAt time.Time
}

// NewOutage returns an Outage of a dependency that answers. name begins its log lines.
func NewOutage(logger *slog.Logger, name string) *Outage {
	return &Outage{logger: logger, name: name}
}

// Failed records that the dependency did not answer. reason is logged if it is the
// first failure of an outage.
func (o *Outage) Failed(reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if o.since.IsZero() {
		o.since = now
	}
	if !o.logged && (now.Sub(o.backAt) > relapse || now.Sub(o.since) > relapseLogged) {
		o.logged = true
		o.logger.Warn(o.name+" unavailable, retrying", "error", reason) //nolint:sloglint // the name is a constant of the caller
	}
}

// Succeeded records that the dependency answered.
func (o *Outage) Succeeded() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.succeededAt = time.Now()
	if o.logged {
		o.backAt = o.succeededAt
		o.logger.Info(o.name+" is back", "away", o.succeededAt.Sub(o.since).Round(time.Millisecond)) //nolint:sloglint // as above
	}
	o.since, o.logged = time.Time{}, false
}

// SucceededSince reports whether the dependency answered at or after t.
func (o *Outage) SucceededSince(t time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.succeededAt.Before(t)
}

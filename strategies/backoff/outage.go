package backoff

import (
	"log/slog"
	"sync"
	"time"
)

// Outage tracks whether a dependency answers, for all goroutines that call it, and
// logs only when that changes. Safe for concurrent use.
type Outage struct {
	logger *slog.Logger
	name   string

	mu          sync.Mutex
	since       time.Time // zero while the dependency answers
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
	if o.since.IsZero() {
		o.since = time.Now()
		o.logger.Warn(o.name+" unavailable, retrying", "error", reason) //nolint:sloglint // the name is a constant of the caller
	}
}

// Succeeded records that the dependency answered.
func (o *Outage) Succeeded() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.succeededAt = time.Now()
	if !o.since.IsZero() {
		o.logger.Info(o.name+" is back", "away", o.succeededAt.Sub(o.since).Round(time.Millisecond)) //nolint:sloglint // as above
		o.since = time.Time{}
	}
}

// SucceededSince reports whether the dependency answered at or after t.
func (o *Outage) SucceededSince(t time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.succeededAt.Before(t)
}

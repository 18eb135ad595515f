package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sessionstore/compactor/store"
)

const (
	outageFirstPause = 100 * time.Millisecond
	outageMostPause  = 5 * time.Second
)

// outage is whether the database answers, as all runs of a worker together see it.
// It tells when that changes, and only then. The zero value: it answers.
type outage struct {
	mu    sync.Mutex
	since time.Time
}

func (o *outage) begins(logger *slog.Logger, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = time.Now()
		logger.Warn("database unavailable, runs wait", "error", errorText(err))
	}
}

func (o *outage) ends(logger *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		logger.Info("database is back", "away", time.Since(o.since).Round(time.Millisecond))
		o.since = time.Time{}
	}
}

// executeOrWait executes a run. While the database is away it keeps the run's place
// and tries again: handed back to the queue, every task there would be taken and
// fail in turn, with a line each, until none has tries left. It waits no longer
// than the task's deadline and the worker's drain allow.
func (w *Worker) executeOrWait(ctx context.Context, run store.RunID) error {
	for pause := outageFirstPause; ; pause = min(2*pause, outageMostPause) {
		err := w.execute(ctx, run)
		if err == nil {
			w.database.ends(w.logger)
			return nil
		}
		if !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		w.database.begins(w.logger, err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-w.draining.Done():
			timer.Stop()
			return err
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// waited is a pause; it reports whether ctx lasted that long.
func waited(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

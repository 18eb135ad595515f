package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

// outagePauses are the delays between attempts while the database does not answer.
var outagePauses = backoff.Backoff{First: 100 * time.Millisecond, Most: 5 * time.Second}

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
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.draining, cancel)() //nolint:contextcheck // ctx goes on as it is; only the waiting ends with the worker, too
	for attempt := 0; ; attempt++ {
		err := w.execute(ctx, run)
		if err == nil {
			w.database.ends(w.logger)
			return nil
		}
		if !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		w.database.begins(w.logger, err)
		if backoff.Wait(waiting, outagePauses.Delay(attempt)) != nil {
			return err
		}
	}
}

package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sessionstore/compactor/store"
)

const (
	// bulkTasks is the number of tasks of the bulk queue that a worker has at a time: more than
	// it works on, as the runs of some may wait for a model.
	bulkTasks = 16
	// maxPages is the number of tasks whose runs are decided together at a time. Two keep this
	// process and the database busy; more would only take time from single runs.
	maxPages = 2
)

// executePage executes the runs of a task: together what metadata decides, the others one by
// one. An error has asynq deliver the task again; runs that have ended by then are passed over.
func (w *Worker) executePage(ctx context.Context, runs []store.RunID) error {
	rest, err := w.executeTogether(ctx, runs)
	if err != nil {
		return err
	}
	errs := make([]error, len(rest))
	var wg sync.WaitGroup
	for i, run := range rest {
		if err := w.acquire(ctx, w.alone); err != nil {
			errs[i] = err
			break
		}
		wg.Go(func() {
			defer func() { <-w.alone }()
			errs[i] = w.executeOrLeave(ctx, run)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// acquire takes one of a bounded number of places. The error is that of ctx, or ErrStopping.
func (w *Worker) acquire(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.draining.Done():
		return ErrStopping
	}
}

// executeTogether executes the runs that take no more than their metadata and whose change
// ApplyPage applies. It returns the others; what any of them fails of is found again when it is
// executed alone.
func (w *Worker) executeTogether(ctx context.Context, runs []store.RunID) (rest []store.RunID, err error) {
	if err := w.acquire(ctx, w.pages); err != nil {
		return nil, err
	}
	defer func() { <-w.pages }()
	claims, err := w.store.LoadPage(ctx, runs)
	if err != nil {
		w.tellOneByOne(ctx, err)
		return runs, nil
	}
	attempts := map[store.RunID]*attempt{}
	var changes []store.RunChange
	for _, c := range claims {
		rc, short, err := w.loaded(ctx, c)
		if err != nil || !short {
			continue
		}
		a := &attempt{runContext: rc, w: w, start: time.Now(), loaded: time.Now()}
		change, code, err := a.decide(ctx)
		if err == nil && code == "" {
			attempts[c.Run] = a
			changes = append(changes, store.RunChange{Run: c.Run, Change: change})
		}
	}
	applied, err := w.store.ApplyPage(ctx, changes)
	if err != nil {
		w.tellOneByOne(ctx, err)
		return runs, nil
	}
	for _, run := range applied {
		attempts[run].applied(ctx)
	}
	return slices.DeleteFunc(slices.Clone(runs), func(run store.RunID) bool { return slices.Contains(applied, run) }), nil
}

// tellOneByOne logs the error of a page, unless it is an outage, which its runs tell.
func (w *Worker) tellOneByOne(ctx context.Context, err error) {
	if !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
		w.logger.WarnContext(ctx, "runs are executed one by one", "error", errorText(err))
	}
}

package worker

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/sessionstore/compactor/store"
)

const (
	// bulkTasks is the number of tasks of the bulk queue that a worker has at a time: more than
	// it works on, as the runs of some may wait for a model.
	bulkTasks = 16
	// maxPages is the number of tasks whose runs are decided together at a time. Two keep this
	// process and the database busy; more would only take time from others.
	maxPages = 2
	// yieldTime is how long after a single run only one page is decided at a time, with a pause as
	// long as the page after it: events come together, and each would wait for the processors
	// that a sweep has.
	yieldTime = time.Second
)

// executePage executes the runs of a task: those that metadata decides together, the others one by
// one. The time of the task is that of all of them: each has its part, from its beginning. An
// error has asynq deliver the task again; runs that have ended by then are passed over.
func (w *Worker) executePage(ctx context.Context, runs []store.RunID) error {
	part := time.Duration(math.MaxInt64)
	if deadline, ok := ctx.Deadline(); ok {
		part = time.Until(deadline) / time.Duration(len(runs))
	}
	rest, err := w.executeTogether(ctx, runs)
	if err != nil {
		return err
	}
	errs := make([]error, len(rest))
	var wg sync.WaitGroup
	for i, run := range rest {
		if err := w.acquire(ctx, w.alone, 1); err != nil {
			errs[i] = err
			break
		}
		wg.Go(func() {
			defer w.alone.Release(1)
			ctx, cancel := context.WithTimeout(ctx, part)
			defer cancel()
			errs[i] = w.executeOrLeave(ctx, run)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// acquire takes some of a bounded number of places. The error is that of ctx, or ErrStopping.
func (w *Worker) acquire(ctx context.Context, places *semaphore.Weighted, n int64) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.draining, func() { cancel(ErrStopping) })() //nolint:contextcheck // the drain only ends the waiting
	if err := places.Acquire(waiting, n); err != nil {
		return context.Cause(waiting)
	}
	if w.draining.Err() != nil { // the end of the waiting may come later than a free place
		places.Release(n)
		return ErrStopping
	}
	return nil
}

// executeTogether executes the runs that take no more than their metadata and whose change
// ApplyPage applies. It returns the others; an error of one of them occurs again when it is
// executed alone.
func (w *Worker) executeTogether(ctx context.Context, runs []store.RunID) (rest []store.RunID, err error) {
	places := int64(1)
	if time.Since(time.Unix(0, w.lastSingle.Load())) < yieldTime {
		places = maxPages
	}
	if err := w.acquire(ctx, w.pages, places); err != nil {
		return nil, err
	}
	begin := time.Now()
	defer func() {
		if places == 1 {
			w.pages.Release(places)
			return
		}
		time.AfterFunc(time.Since(begin), func() { w.pages.Release(places) })
	}()
	claims, err := w.store.LoadPage(ctx, runs)
	if err != nil {
		w.logOneByOne(ctx, err)
		return runs, nil
	}
	attempts := map[store.RunID]*attempt{}
	var changes []store.RunChange
	for _, c := range claims {
		rc, short, err := w.loaded(ctx, c)
		if err != nil || !short {
			continue
		}
		a := &attempt{runContext: rc, w: w, start: time.Now(), loaded: time.Now(), together: true}
		change, code, err := a.decide(ctx)
		if err == nil && code == "" {
			attempts[c.Run] = a
			changes = append(changes, store.RunChange{Run: c.Run, SID: c.Session.SID, Change: change})
		}
	}
	applied, err := w.store.ApplyPage(ctx, changes)
	if err != nil {
		w.logOneByOne(ctx, err)
		return runs, nil
	}
	for _, run := range applied {
		attempts[run].startSpan(ctx)
		attempts[run].applied(ctx)
	}
	return slices.DeleteFunc(slices.Clone(runs), func(run store.RunID) bool { return slices.Contains(applied, run) }), nil
}

// logOneByOne logs the error of a page, unless it is an outage, which its runs log.
func (w *Worker) logOneByOne(ctx context.Context, err error) {
	if !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
		w.logger.WarnContext(ctx, "runs are executed one by one", "error", errorText(err))
	}
}

package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/sessionstore/compactor/store"
)

type fakeSweep struct {
	store.Sweep
	due, cursor int
	ended       bool
	paused      bool // all of its sessions are
}

func (f *fakeStore) Fire(ctx context.Context, t store.Tick) (outcome string, sweep int64, err error) {
	if err := f.enter(ctx, "fire"); err != nil {
		return "", 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.fired, func(x store.Tick) bool { return x.Entry == t.Entry && x.At.Equal(t.At) }) {
		return "", 0, nil
	}
	f.fired = append(f.fired, t)
	switch {
	case t.Missed:
		return store.TickMissed, 0, nil
	case f.paused[t.Entry] && t.Source == "":
		return store.TickPaused, 0, nil
	}
	sweep = int64(len(f.sweeps) + 1)
	f.sweeps = append(f.sweeps, &fakeSweep{Sweep: store.Sweep{ID: sweep, Entry: t.Entry, Tick: t.At}})
	return store.TickFired, sweep, nil
}

func (f *fakeStore) LastTick(ctx context.Context, entry string) (last time.Time, err error) {
	if err := f.enter(ctx, "last tick"); err != nil {
		return time.Time{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.fired {
		if t.Entry == entry && t.Source != store.SourceOperator && t.At.After(last) {
			last = t.At
		}
	}
	return last, nil
}

func (f *fakeStore) OpenSweeps(ctx context.Context) (open []store.Sweep, err error) {
	if err := f.enter(ctx, "open sweeps"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sweeps {
		if !s.ended {
			open = append(open, s.Sweep)
		}
	}
	return open, nil
}

func (f *fakeStore) SweepTogether(ctx context.Context, sweep int64, limit int, grace time.Duration, rules []store.Truncation, _ string) (p store.SweptPage, err error) {
	if err := f.enter(ctx, "sweep page"); err != nil {
		return p, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.sweeps[sweep-1]
	if s.paused {
		return p, nil
	}
	if kind := (store.SessionKind{Policy: "default"}); rules != nil && len(rules) == 0 {
		p.Unknown = append(p.Unknown, kind)
		return p, nil
	}
	for n := 0; s.cursor < s.due && n < limit; n++ {
		if s.cursor++; rules != nil && rules[0].Metric != "" {
			p.Ended++
			continue
		}
		p.Queued = append(p.Queued, f.queue(store.TriggerNightly, grace))
	}
	s.Queued += int64(len(p.Queued) + p.Ended)
	s.ended = s.cursor >= s.due && len(p.Queued)+p.Ended == 0
	p.Done = s.ended
	return p, nil
}

func (f *fakeStore) OpenBulkCompacts(ctx context.Context) (open []int64, err error) {
	if err := f.enter(ctx, "open bulk compacts"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bulk > 0 {
		open = []int64{1}
	}
	return open, nil
}

func (f *fakeStore) BulkCompactPage(ctx context.Context, _ int64, limit int, grace time.Duration) (page []store.Delivery, more bool, err error) {
	if err := f.enter(ctx, "bulk compact page"); err != nil {
		return nil, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; f.bulk > 0 && len(page) < limit; f.bulk-- {
		page = append(page, f.queue(store.TriggerBulk, grace))
	}
	return page, f.bulk > 0, nil
}

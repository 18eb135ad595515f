//go:build !nodev

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/dev/backlog"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
	"github.com/sessionstore/compactor/strategies/chat"
)

// work demonstrates the three triggers one after the other, and then a change of policy.
func (d *demo) work(ctx context.Context) error {
	if err := d.sweep(ctx); err != nil {
		return err
	}
	if err := d.events(ctx); err != nil {
		return err
	}
	if err := d.operator(ctx); err != nil {
		return err
	}
	return d.governed(ctx)
}

func (d *demo) sweep(ctx context.Context) error {
	before, err := d.app.Store.Scheduler.Backlog(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := d.scheduler.TriggerSweep(ctx); err != nil {
		return err
	}
	progress := d.env.Err.Progress("nightly sweep, sessions", before.Due)
	for {
		// In this order: a sweep that ends between the two has enqueued all of its runs by then.
		sweeps, err := d.app.Store.Scheduler.OpenSweeps(ctx)
		if err != nil {
			return err
		}
		b, err := d.app.Store.Scheduler.Backlog(ctx)
		if err != nil {
			return err
		}
		progress.Set(max(0, before.Due-b.Due))
		if len(sweeps) == 0 && b.Queued == 0 && b.Running == 0 {
			break
		}
		if err := backoff.Wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	progress.Done("")
	took := time.Since(began)
	d.result.SweepSeconds = took.Seconds()
	d.step("sweep", "%s: over the start, or to repair; done in %s", term.Plural(before.Due, "session was due", "sessions were due"), term.Duration(took))
	return d.judge(ctx)
}

// judge prints the outcomes of the sessions that were over their start before the sweep.
func (d *demo) judge(ctx context.Context) error {
	rows, err := d.rows(ctx)
	if err != nil {
		return err
	}
	reasons := map[string]int{}
	for _, r := range rows {
		limits := d.app.Config.Policy.Limits(r.Model, d.app.Planner.Window)
		switch {
		case !d.imported[r.SID].over:
			continue
		case r.ContextTokens <= limits.Target:
			d.result.WithinTarget++
			continue
		}
		runs, err := d.app.Store.Operator.Runs(ctx, store.RunFilter{Key: store.Key{Tenant: r.Tenant, Session: r.Session}, Limit: 1})
		if err != nil {
			return err
		}
		if len(runs) == 0 || runs[0].Outcome == "" {
			d.result.Unexplained++
			continue
		}
		d.result.CodedReason++
		reasons[runs[0].Outcome]++
	}
	var line strings.Builder
	fmt.Fprintf(&line, "of the %d over their start, %d are within their target now", d.result.OverStart, d.result.WithinTarget)
	for _, code := range sortedKeys(reasons) {
		fmt.Fprintf(&line, ", %d %s", reasons[code], code)
	}
	if d.result.Unexplained > 0 {
		line.WriteString(d.out.Red(fmt.Sprintf(", %d without a reason", d.result.Unexplained)))
	}
	d.step("", "%s", line.String())
	return nil
}

// events appends to a few sessions until they are due.
func (d *demo) events(ctx context.Context) error {
	rows, err := d.rows(ctx)
	if err != nil {
		return err
	}
	// Use the sessions that are closest to their threshold.
	rows = slices.DeleteFunc(rows, func(r store.SessionRow) bool { return r.Due || r.Revision == 0 || r.DueTokens <= r.ContextTokens })
	slices.SortFunc(rows, func(a, b store.SessionRow) int {
		return cmp.Compare(a.DueTokens-a.ContextTokens, b.DueTokens-b.ContextTokens)
	})
	for i, r := range rows[:min(3, len(rows))] {
		k := store.Key{Tenant: r.Tenant, Session: r.Session}
		more := backlog.Continue(backlog.Session{ID: r.Session, Model: r.Model, Messages: []chat.Message{{CreatedAt: time.Now()}}},
			d.cmd.Seed+uint64(i), int(r.DueTokens-r.ContextTokens)*5/4+200)
		msgs := make([]store.NewMessage, len(more))
		for j := range more {
			more[j].ID = "" // the store assigns ids
			msgs[j] = store.NewMessage{Message: more[j]}
		}
		if _, _, err := d.app.Store.Append(ctx, k, r.Model, msgs); err != nil {
			return err
		}
		began := time.Now()
		over, err := d.app.Store.Session(ctx, k)
		if err != nil {
			return err
		}
		run, err := d.eventRun(ctx, k, began)
		if err != nil {
			return err
		}
		row, err := d.app.Store.Session(ctx, k)
		if err != nil {
			return err
		}
		became := fmt.Sprintf("%s tokens → %s", term.Count(over.ContextTokens), term.Count(row.ContextTokens))
		if run.Status != "applied" {
			became = fmt.Sprintf("%s tokens kept: %s", term.Count(over.ContextTokens), run.Outcome)
		}
		d.step("event", "%s: %s appended, %s, %s after the write", term.Clean(r.Session), term.Plural(len(msgs), "message", "messages"), became, term.Duration(time.Since(began)))
	}
	return nil
}

// eventRun waits for the run that an append triggered. While a session is in cooldown
// after a failed summary, no run follows, and eventRun returns the latest one.
func (d *demo) eventRun(ctx context.Context, k store.Key, since time.Time) (store.RunRow, error) {
	for {
		runs, err := d.app.Store.Operator.Runs(ctx, store.RunFilter{Key: k, Limit: 1})
		if err != nil {
			return store.RunRow{}, err
		}
		session, err := d.app.Store.Session(ctx, k)
		if err != nil {
			return store.RunRow{}, err
		}
		resting := session.CooldownUntil != nil && session.CooldownUntil.After(time.Now())
		if len(runs) == 1 && runs[0].Ended() && (resting || runs[0].EndedAt != nil && runs[0].EndedAt.After(since)) {
			return runs[0], nil
		}
		if time.Since(since) > 10*time.Second {
			return store.RunRow{}, fmt.Errorf("session %s was not compacted within 10 s after an append", k.Session)
		}
		if err := backoff.Wait(ctx, 5*time.Millisecond); err != nil {
			return store.RunRow{}, err
		}
	}
}

// operator compacts the session with the most messages again and undoes the run.
func (d *demo) operator(ctx context.Context) error {
	rows, err := d.rows(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	r := slices.MaxFunc(rows, func(a, b store.SessionRow) int { return cmp.Compare(a.LiveMessages, b.LiveMessages) })
	k := store.Key{Tenant: r.Tenant, Session: r.Session}
	run, err := d.app.Store.Request(ctx, k, store.TriggerOperator, d.env.by(), store.Options{
		Pipeline: []store.Step{{Strategy: "sliding_window", Params: map[string]any{"keep_last_groups": max(2, int(r.LiveMessages/4))}}},
	})
	if err != nil {
		return err
	}
	if err := d.app.Enqueuer.Enqueue(ctx, store.TriggerOperator, 1, run); err != nil {
		return err
	}
	row, err := d.app.Store.AwaitRun(ctx, run, 10*time.Second)
	if err != nil {
		return err
	}
	d.step("operator", "%s: run %d, %s: %s messages, %s tokens", term.Clean(r.Session), run, cmp.Or(row.Outcome, row.Status),
		change(row.MessagesBefore, row.MessagesAfter), change(row.TokensBefore, row.TokensAfter))
	if row.Status != "applied" {
		return nil
	}
	undo, err := d.app.Store.Undo(ctx, k, run, false, d.env.by())
	if err != nil {
		return err
	}
	back, err := d.app.Store.Run(ctx, undo)
	if err != nil {
		return err
	}
	d.step("undo", "%s: run %d undoes run %d: %s tokens", term.Clean(r.Session), undo, run, change(back.TokensBefore, back.TokensAfter))
	return nil
}

package worker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// cutOff is a store from which the next writes of outcomes do not reach the database.
type cutOff struct {
	store.Worker
	writes atomic.Int64
}

func (c *cutOff) away() error {
	if c.writes.Add(-1) >= 0 {
		return &store.Error{Kind: store.ErrUnavailable, Message: "database: away"}
	}
	return nil
}

func (c *cutOff) Apply(ctx context.Context, run store.RunID, fence int64, ch store.Change) (chat.Ranges, error) {
	if err := c.away(); err != nil {
		return nil, err
	}
	return c.Worker.Apply(ctx, run, fence, ch)
}

func (c *cutOff) Requeue(ctx context.Context, run store.RunID, fence int64, delay time.Duration, failed bool, code, text string) error {
	if err := c.away(); err != nil {
		return err
	}
	return c.Worker.Requeue(ctx, run, fence, delay, failed, code, text)
}

func TestRunsThatMeetAnOutageEndAfterItAndLogOneLine(t *testing.T) {
	t.Parallel()
	for name, pipeline := range map[string][]policy.Step{"claimed": testPolicy().Pipeline, "not claimed": {{Strategy: "truncation"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testPolicy()
			p.Pipeline = pipeline
			var log strings.Builder // slog's handlers write one line at a time
			f := setupWith(t, database(t), p, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			st := &cutOff{Worker: f.store.Worker}
			f.w.store = st
			const sessions = 8
			for i := range sessions {
				f.append(fmt.Sprint("s", i), "suauctauauaua")
			}
			runs := f.sweep()
			st.writes.Store(5 * sessions)
			var all sync.WaitGroup
			for _, run := range runs {
				all.Go(func() {
					f.await("the run has ended", func() bool {
						if err := f.w.executeOrWait(t.Context(), run); err != nil {
							t.Error(err)
						}
						row := f.row(run)
						if row.Status == "running" {
							t.Errorf("run %d is left to the expiry of its lease", run)
						}
						return row.Status != "queued"
					})
				})
			}
			all.Wait()
			for _, run := range runs {
				if row := f.row(run); row.Outcome != OutcomeApplied || row.Failures > 1 {
					t.Errorf("run %d is %s %s after %d failures", run, row.Status, row.Outcome, row.Failures)
				}
			}
			told := strings.Count(log.String(), "level=WARN")
			if told != 1 || strings.Count(log.String(), "database is back") != 1 {
				t.Errorf("%d lines of level warn, want one for the outage:\n%s", told, log.String())
			}
		})
	}
}

package worker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
)

// A run that no worker can read would be queued for ever, and its session with it.
func TestARunWithOptionsThatCannotBeReadEnds(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	f := setupWith(t, dsn, testPolicy(), Config{})
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	defer conn.Close(context.Background())
	for _, trigger := range []string{store.TriggerOperator, store.TriggerApplication, store.TriggerEvent, store.TriggerBulk} {
		for _, options := range []string{`{"dry_run": "yes"}`, `{"dryrun": true}`, `[]`, `"text"`, `{"pipeline": 5}`, `{"pipeline": [{"strategy": "no_such"}]}`} {
			session := trigger + options
			f.append(session, "suauauauauauaua")
			run := f.event()
			must(conn.Exec(t.Context(), `UPDATE compactor.runs SET options = $1, trigger = $2 WHERE id = $3`, options, trigger, run))(t)
			row := f.run(run)
			if row.Status != "failed" || row.Outcome != "invalid_options" || row.ErrorCode != "invalid_options" || !strings.Contains(row.Error, "options") {
				t.Errorf("%s with %s: %s %s, error %q; want it failed as invalid_options", trigger, options, row.Status, row.Outcome, row.Error)
			}
			// The session is free again, for runs that can be read.
			if row := f.run(f.operator(session, store.Options{})); row.Status != "applied" {
				t.Errorf("the next run is %s %s", row.Status, row.Outcome)
			}
		}
	}
}

func TestAWorkerRegistersItsStrategies(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.append("s", "suauauauauauaua")
	f.startWorker(parseRedis(t), "compactor:test")
	own := store.Options{Pipeline: []store.Step{{Strategy: "no_such"}}}
	f.await("the worker has registered its strategies", func() bool {
		run, err := f.store.Request(t.Context(), key("s"), store.TriggerOperator, "test", own)
		if err == nil {
			return f.store.Worker.Abandon(t.Context(), run, "test") != nil
		}
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "unknown strategy no_such, want one of attribution, ") {
			t.Fatal(err)
		}
		return true
	})
	known := store.Options{Pipeline: []store.Step{{Strategy: "truncation", Params: map[string]any{"max_n": 5, "compact_to": 3}}}}
	if _, err := f.store.Request(t.Context(), key("s"), store.TriggerOperator, "test", known); err != nil {
		t.Error(err)
	}
}

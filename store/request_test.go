package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestARequestWithOptionsThatMeanNothingIsRefused(t *testing.T) {
	s, k := freshTalk(t, 3)
	ask := func(options string) error {
		_, err := s.pool.Exec(context.Background(), `SELECT compactor.request_compaction(NULL, 's', $1)`, options)
		return mapError(err)
	}
	for bad, want := range map[string]string{
		`{"summary": "x"}`:                               "summary must be",
		`{"summary": {"text": "x", "by": "y"}}`:          "summary must be",
		`{"dryrun": true}`:                               "unknown key dryrun, want from, pipeline, focus, dry_run, allow_growth, force or summary",
		`{"dry_run": true, "a": 1, "b": 2}`:              "unknown key a, want from, pipeline, focus, dry_run, allow_growth, force or summary; unknown key b",
		`{"dry_run": "true"}`:                            "dry_run must be true or false",
		`{"from": "logs"}`:                               `from must be "log" or "view"`,
		`{"focus": ["a"]}`:                               "focus must be a string",
		`{"focus": "` + strings.Repeat("x", 1001) + `"}`: "focus must be a string of at most 1000",
		`{"pipeline": {"strategy": "truncation"}}`:       "pipeline must be an array",
		`{"pipeline": [` + strings.Repeat(`{"strategy":"a"},`, 100) + `{"strategy":"a"}]}`: "at most 100 steps",
		`{"pipeline": ["truncation"]}`:                    `pipeline step 1: must be {"strategy": NAME`,
		`{"pipeline": [{"strategy": "a"}, {}]}`:           "pipeline step 2: must be",
		`{"pipeline": [{"strategy": "a", "n": 5}]}`:       "pipeline step 1: must be",
		`{"pipeline": [{"strategy": "a", "params": []}]}`: "pipeline step 1: must be",
		`[]`:   "must be an object, not array",
		`null`: "must be an object, not null",
	} {
		if err := ask(bad); !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%.100s: %v, want it refused as %s", bad, err, want)
		}
	}
	equal(t, 0, one[int](t, s, `SELECT count(*) FROM compactor.runs`), "runs")
	if err := ask(`{"from": "view", "pipeline": [{"strategy": "own", "params": {"n": 1}}], "focus": "x", "dry_run": false, "allow_growth": true}`); err != nil {
		t.Errorf("before any worker has registered: %v", err)
	}
	exec(t, s, `DELETE FROM compactor.runs`)

	// One worker knows less, another more.
	register := func(known map[string][]string) {
		t.Helper()
		noError(t, s.Worker.RegisterStrategies(t.Context(), known))
	}
	register(map[string][]string{"truncation": {"max_n", "metric"}, "simple": {}})
	register(map[string][]string{"truncation": {"metric", "compact_to"}, "own": {"n"}})
	for bad, want := range map[string]string{
		`{"pipeline": [{"strategy": "own"}, {"strategy": "owm"}]}`:                  "pipeline step 2: unknown strategy owm, want one of own, simple, truncation",
		`{"pipeline": [{"strategy": "own", "params": {"n": 1, "m": 1}}]}`:           "pipeline step 1: strategy own has no parameter m",
		`{"pipeline": [{"strategy": "simple", "params": {"n": 1}}], "from": "all"}`: `from must be "log" or "view"; pipeline step 1: strategy simple has no parameter n`,
	} {
		if err := ask(bad); !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want it refused as %s", bad, err, want)
		}
	}
	if err := ask(`{"pipeline": [{"strategy": "truncation", "params": {"max_n": 1, "metric": "tokens", "compact_to": 1}}, {"strategy": "simple"}]}`); err != nil {
		t.Errorf("what workers know: %v", err)
	}
	wantError(t, second(s.Request(t.Context(), k, TriggerOperator, "", Options{Pipeline: []Step{{Strategy: "no"}}})), ErrInvalid, "from Go")
}

// A worker gives its run back to the queue without the lock of the session.
func TestARequestThatMeetsARunOnItsWayBackToTheQueueStandsBesideIt(t *testing.T) {
	s, k := freshTalk(t, 3)
	c := start(t, s, k)
	// An insert of a run waits for the test.
	exec(t, s, `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN new; END'`)
	exec(t, s, `CREATE TRIGGER hold BEFORE INSERT ON compactor.runs FOR EACH ROW EXECUTE FUNCTION hold()`)
	tx := begin(t, s, `SELECT pg_advisory_xact_lock(7)`)
	type answer struct {
		run RunID
		err error
	}
	asked := make(chan answer)
	go func() {
		run, err := s.Request(context.Background(), k, TriggerOperator, "test", Options{})
		asked <- answer{run, err}
	}()
	waiting(t, s)
	noError(t, s.Worker.Requeue(t.Context(), c.Run, c.Fence, 0, false, "busy", ""))
	noError(t, tx.Commit(t.Context()))
	if got := <-asked; got.err != nil || got.run == c.Run {
		t.Errorf("run %d, %v; want a run of its own", got.run, got.err)
	}
	equal(t, 2, one[int](t, s, `SELECT count(*) FROM compactor.runs WHERE status = 'queued'`), "runs that wait")
}

func TestRequestsAtOnceGetOneRun(t *testing.T) {
	s, k := freshTalk(t, 3)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if run, err := s.Request(context.Background(), k, TriggerApplication, "", Options{}); err != nil || run != 1 {
					t.Errorf("run %d, %v; want the first", run, err)
				}
			}
		})
	}
	group.Wait()
}

func TestOptionsThatCannotBeReadComeWithTheClaim(t *testing.T) {
	s, k := freshTalk(t, 3)
	for _, options := range []string{`{"dry_run": "yes"}`, `{"dryrun": true}`, `"text"`, `[1]`, `{"pipeline": 7}`, `{"pipeline": [{"strategy": {}}]}`} {
		run := request(t, s, k, TriggerApplication)
		exec(t, s, `UPDATE compactor.runs SET options = $2 WHERE id = $1`, run, options)
		loaded := must(s.Worker.Load(t.Context(), run))(t)
		claimed := must(s.Worker.Claim(t.Context(), run, "w", time.Minute))(t)
		for _, c := range []*Claim{loaded, claimed} {
			if !errors.Is(c.OptionsError, ErrInvalid) || !cmp.Equal(c.Options, Options{}) || len(c.View) != 3 {
				t.Errorf("%s: %v with %+v", options, c.OptionsError, c.Options)
			}
		}
		noError(t, s.Worker.Finish(t.Context(), claimed, StatusFailed, Ledger{Outcome: "x"}, nil))
	}
}

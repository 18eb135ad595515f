package metrics

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/worker"
)

var update = flag.Bool("update", false, "write the list of metrics into deploy/metrics.md")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// want compares the metrics of given names with a text in Prometheus' format.
func want(t *testing.T, m *Metrics, text string, names ...string) {
	t.Helper()
	for i := range names {
		names[i] = namespace + names[i]
	}
	if err := testutil.GatherAndCompare(m.registry, strings.NewReader(text), names...); err != nil {
		t.Error(err)
	}
}

func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	m := New("v1", "abc")
	m.Attempted(worker.Attempt{
		Trigger: store.TriggerEvent, Result: store.StatusApplied, Code: "applied", TokensBefore: 1000, TokensAfter: 250,
		First: true, Waited: 20 * time.Millisecond, SinceWrite: time.Second, Planned: 2 * time.Millisecond, Took: 3 * time.Millisecond,
	})
	m.Attempted(worker.Attempt{Trigger: store.TriggerEvent, Result: store.StatusSkipped, Code: "below_threshold", TokensBefore: 10, TokensAfter: 10, Took: time.Millisecond})
	m.Attempted(worker.Attempt{Trigger: store.TriggerOperator, Result: worker.ResultRetried, Code: "timeout", Took: time.Minute})
	m.Attempted(worker.Attempt{Result: worker.ResultPostponed, Code: "busy"})
	m.Expired(2)
	m.Truncated(7)
	m.Took(scheduler.ReasonSweep, 5)
	want(t, m, `
# HELP compactor_runs_total Runs that ended in this process, by trigger, status (applied, skipped, failed) and outcome.
# TYPE compactor_runs_total counter
compactor_runs_total{outcome="applied",status="applied",trigger="event"} 1
compactor_runs_total{outcome="applied",status="applied",trigger="nightly"} 7
compactor_runs_total{outcome="below_threshold",status="skipped",trigger="event"} 1
compactor_runs_total{outcome="not_attempted",status="failed",trigger="unknown"} 2
# HELP compactor_runs_unfinished_total Attempts after which a run goes on: retried after a failure, postponed, or lost to another worker, by the code of the reason.
# TYPE compactor_runs_unfinished_total counter
compactor_runs_unfinished_total{code="busy",result="postponed"} 1
compactor_runs_unfinished_total{code="timeout",result="retried"} 1
# HELP compactor_view_tokens_after_total Tokens of the views that runs were applied to, after.
# TYPE compactor_view_tokens_after_total counter
compactor_view_tokens_after_total{trigger="event"} 250
# HELP compactor_view_tokens_before_total Tokens of the views that runs were applied to, before.
# TYPE compactor_view_tokens_before_total counter
compactor_view_tokens_before_total{trigger="event"} 1000
`, "runs_total", "runs_unfinished_total", "view_tokens_before_total", "view_tokens_after_total")
	want(t, m, `
# HELP compactor_event_seconds Time from the write that made a session due to the commit of the run that was applied for it, debounce included.
# TYPE compactor_event_seconds histogram
compactor_event_seconds_bucket{le="0.01"} 0
compactor_event_seconds_bucket{le="0.025"} 0
compactor_event_seconds_bucket{le="0.05"} 0
compactor_event_seconds_bucket{le="0.1"} 0
compactor_event_seconds_bucket{le="0.25"} 0
compactor_event_seconds_bucket{le="0.5"} 0
compactor_event_seconds_bucket{le="1"} 1
compactor_event_seconds_bucket{le="2.5"} 1
compactor_event_seconds_bucket{le="5"} 1
compactor_event_seconds_bucket{le="10"} 1
compactor_event_seconds_bucket{le="30"} 1
compactor_event_seconds_bucket{le="60"} 1
compactor_event_seconds_bucket{le="300"} 1
compactor_event_seconds_bucket{le="1800"} 1
compactor_event_seconds_bucket{le="7200"} 1
compactor_event_seconds_bucket{le="28800"} 1
compactor_event_seconds_bucket{le="+Inf"} 1
compactor_event_seconds_sum 1
compactor_event_seconds_count 1
`, "event_seconds")
	if n := testutil.CollectAndCount(m.runSeconds); n != 3 {
		t.Errorf("%d histograms of durations, want those of three results", n)
	}
	if n := testutil.CollectAndCount(m.queueSeconds); n != 1 {
		t.Errorf("%d histograms of waits, want that of the one first attempt", n)
	}
}

func TestDiskSpaceIsThatOfTheLeader(t *testing.T) {
	t.Parallel()
	m := New("v1", "abc")
	m.Leading(true)
	m.DiskUsed(store.DiskUse{Bytes: 1000, Freed: 100}, 2000)
	want(t, m, `
# HELP compactor_disk_budget_bytes That budget; not there without one.
# TYPE compactor_disk_budget_bytes gauge
compactor_disk_budget_bytes 2000
# HELP compactor_disk_bytes Size of the tables on the disk, with indexes, as the leading scheduler measures it every ten minutes for scheduler.disk_budget: used, and freed by it for other words.
# TYPE compactor_disk_bytes gauge
compactor_disk_bytes{of="freed"} 100
compactor_disk_bytes{of="used"} 900
`, "disk_bytes", "disk_budget_bytes")
	m.Leading(false)
	want(t, m, "", "disk_bytes", "disk_budget_bytes")
}

func TestModelCallsAreCounted(t *testing.T) {
	t.Parallel()
	m := New("v1", "abc")
	m.Called(worker.ModelCall{Model: "big", Requests: 3, Input: 100, Cached: 40, Output: 20, CostMicros: 1_500_000, Took: time.Second})
	m.Called(worker.ModelCall{Code: "auth", Requests: 1})
	m.Rejected("refusal")
	want(t, m, `
# HELP compactor_model_calls_total Calls of models for summaries; code is answered or that of the failure.
# TYPE compactor_model_calls_total counter
compactor_model_calls_total{code="answered",model="big"} 1
compactor_model_calls_total{code="auth",model="unknown"} 1
# HELP compactor_model_cost_total Cost of these calls, in the unit of the configured prices.
# TYPE compactor_model_cost_total counter
compactor_model_cost_total{model="big"} 1.5
compactor_model_cost_total{model="unknown"} 0
# HELP compactor_summaries_rejected_total Answers that were no valid summary, by the code of the check.
# TYPE compactor_summaries_rejected_total counter
compactor_summaries_rejected_total{code="refusal"} 1
`, "model_calls_total", "model_cost_total", "summaries_rejected_total")
	if got := testutil.ToFloat64(m.modelTokens.WithLabelValues("big", "cached")); got != 40 {
		t.Errorf("%v cached tokens", got)
	}
}

func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := New("v1", "abc")
	for i := range 10_000 {
		name := fmt.Sprint("name-", i)
		m.Attempted(worker.Attempt{Trigger: name, Result: store.StatusApplied, Code: name, Took: 1, First: true})
		m.Called(worker.ModelCall{Model: name, Code: name})
		m.Rejected(name)
	}
	series, err := testutil.GatherAndCount(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	if series > 20*(maxNames+1)*len(m.Catalog()) {
		t.Errorf("%d series", series)
	}
	// Values come in pairs here, so each of these has one for each name.
	for name, c := range map[string]int{
		"runs": testutil.CollectAndCount(m.runs), "calls": testutil.CollectAndCount(m.modelCalls), "rejections": testutil.CollectAndCount(m.rejected),
	} {
		if c != maxNames+1 {
			t.Errorf("%s: %d series, want %d and one for the others", name, c, maxNames)
		}
	}
}

// answer is an error that Redis answers.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestCodesOfErrors(t *testing.T) {
	t.Parallel()
	for want, errs := range map[string][]error{
		"":             {nil, context.Canceled, store.ErrNotFound},
		"timeout":      {context.DeadlineExceeded},
		"unavailable":  {&store.Error{Kind: store.ErrUnavailable}},
		"busy":         {store.ErrBusy},
		"not_migrated": {store.ErrNotMigrated},
		"forbidden":    {store.ErrForbidden},
		"refused":      {store.ErrInvalid, store.ErrConflict, store.ErrStale, store.ErrInUse, store.ErrNotApplicable},
		"other":        {errors.New("?")},
	} {
		for _, err := range errs {
			if got := databaseCode(err); got != want {
				t.Errorf("database: %v is %q, want %q", err, got, want)
			}
		}
	}
	for want, errs := range map[string][]error{
		"":            {nil, redis.Nil, context.Canceled, answer("ERR unknown subcommand 'maint_notifications'. Try CLIENT HELP."), answer("ERR Unknown subcommand or wrong number of arguments for 'setinfo'")},
		"refused":     {answer("ERR value is not an integer"), answer("NOPERM this user has no permissions")},
		"timeout":     {context.DeadlineExceeded, &net.DNSError{IsTimeout: true}},
		"unavailable": {io.EOF, &net.OpError{Op: "dial", Err: errors.New("connection refused")}},
	} {
		for _, err := range errs {
			if got := redisCode(err); got != want {
				t.Errorf("redis: %v is %q, want %q", err, got, want)
			}
		}
	}
}

const (
	listBegin = "<!-- The table below is that of the program: go test ./cmd/internal/metrics -run Documented -update -->\n"
	listPath  = "../../../deploy/metrics.md"
)

func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	m := New("v1", "abc")
	m.Watch(&fakeStore{}, 1)
	var b strings.Builder
	b.WriteString(listBegin + "\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, e := range m.Catalog() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Name, e.Type, strings.Join(e.Labels, ", "), e.Help)
	}
	path := filepath.FromSlash(listPath)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, got, found := strings.Cut(string(raw), listBegin)
	if !found {
		t.Fatalf("%s has no line %q", listPath, listBegin)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(b.String(), listBegin+got); diff != "" {
		t.Errorf("%s (-program +file):\n%s", listPath, diff)
	}
}

// get requests a path of a server and returns status and body.
func get(t *testing.T, s *Server, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + s.Address() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

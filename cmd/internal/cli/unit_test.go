package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker"
)

func discard() term.Output { return term.Output{W: io.Discard} }

// logPipe returns a writer and the lines written to it.
func logPipe(t *testing.T) (io.WriteCloser, iter.Seq[string]) {
	t.Helper()
	r, w := io.Pipe()
	scanner := bufio.NewScanner(r)
	return w, func(yield func(string) bool) {
		for scanner.Scan() {
			if !yield(scanner.Text()) {
				return
			}
		}
	}
}

func TestParseStrategy(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]policy.Step{
		"truncation":                            {Strategy: "truncation"},
		"truncation:":                           {Strategy: "truncation"},
		"a:n=5,f=0.5,b=true,s=text,q=\"1\"":     {Strategy: "a", Params: map[string]any{"n": json.Number("5"), "f": json.Number("0.5"), "b": true, "s": "text", "q": "1"}},
		`a:list=[{"x":1,"y":"a,b"},2],time=1 2`: {Strategy: "a", Params: map[string]any{"list": []any{map[string]any{"x": json.Number("1"), "y": "a,b"}, json.Number("2")}, "time": "1 2"}},
		" a : x = 1 ":                           {Strategy: "a", Params: map[string]any{"x": json.Number("1")}},
		"a:when=12:30,url=http://h/?a=b":        {Strategy: "a", Params: map[string]any{"when": "12:30", "url": "http://h/?a=b"}},
	} {
		got, err := parseStrategy(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", spec, diff)
		}
	}
	for _, spec := range []string{"", ":a=1", "a:b", "a:=1", "a:x=1,x=2", "a:x=1,"} {
		if s, err := parseStrategy(spec); err == nil {
			t.Errorf("%q: %+v", spec, s)
		}
	}
}

func TestStrategiesAreCheckedWithParametersOfThePolicy(t *testing.T) {
	t.Parallel()
	steps, err := parseStrategies([]string{"truncation", "token_budget"}, policy.Default(), builtin.Registry())
	if err != nil || len(steps) != 2 || len(steps[0].Params) != 0 {
		t.Errorf("%+v, %v", steps, err)
	}
}

func TestScrub(t *testing.T) {
	t.Parallel()
	e := &Env{secrets: []string{"host=h password=hush", "postgres://u:p@ss@h/db"}}
	for text, want := range map[string]string{
		"cannot use host=h password=hush here":      "cannot use host=h password=xxxxx here",
		"dial postgres://u:p@ss@h/db: refused":      "dial postgres://u:xxxxx@h/db: refused",
		"other redis://:hush@h:6379: no answer":     "other redis://:xxxxx@h:6379: no answer",
		"see https://example.org/a":                 "see https://example.org/a",
		"want redis://user:password@host:6379/0, …": "want redis://user:password@host:6379/0, …",
		"plain\ntwo  lines":                         "plain\ntwo  lines",
	} {
		if got := e.scrub(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want int
	}{
		"anything":        {t.Context(), errors.New("x"), exitInternal},
		"unavailable":     {t.Context(), store.ErrUnavailable, exitInternal},
		"not migrated":    {t.Context(), store.ErrNotMigrated, exitInternal},
		"own code":        {t.Context(), fmt.Errorf("y: %w", wrong("x")), exitUsage},
		"invalid":         {t.Context(), &store.Error{Kind: store.ErrInvalid}, exitUsage},
		"not found":       {t.Context(), fmt.Errorf("x: %w", store.ErrNotFound), exitNotFound},
		"stale":           {t.Context(), store.ErrStale, exitRefused},
		"in use":          {t.Context(), store.ErrInUse, exitRefused},
		"not applicable":  {t.Context(), store.ErrNotApplicable, exitRefused},
		"interrupted":     {stopped, fmt.Errorf("x: %w", context.Canceled), exitInterrupted},
		"a lone canceled": {t.Context(), context.Canceled, exitInternal},
	} {
		if got := exitCode(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestOutcomesTellWhatChangedNothing(t *testing.T) {
	t.Parallel()
	steps := func(before, after int) json.RawMessage {
		totals := func(n int) plan.Totals { return plan.Totals{IncludedMessages: n, IncludedTokens: chat.Tokens(10 * n)} }
		raw, err := json.Marshal([]pipeline.StepResult{{Strategy: "truncation", Before: totals(before), After: totals(after)}})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, c := range map[string]struct {
		run  store.RunRow
		want string
	}{
		"no step does anything":         {store.RunRow{TokensBefore: 120, TokensAfter: 120, Steps: steps(12, 12)}, "nothing to compact"},
		"no steps are known":            {store.RunRow{}, "nothing to compact"},
		"the view is what they lead to": {store.RunRow{TokensBefore: 40, TokensAfter: 40, Steps: steps(12, 4)}, "nothing changed: the view is already what the steps lead to"},
		"they save little": {
			store.RunRow{TokensBefore: 1340, TokensAfter: 40, Steps: steps(134, 4)},
			"nothing changed: the steps would save 1,300 tokens, less than the policy asks for (min_gain_tokens, guards.min_gain_share)",
		},
	} {
		c.run.Outcome = worker.OutcomeNothingToCompact
		if got := reports.Meaning(c.run); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestRolesStopOneAfterTheOther(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var order []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, s)
	}
	started := make(chan struct{}, 2)
	role := func(name string) Role {
		return Role{name, func(ctx context.Context) error {
			started <- struct{}{}
			<-ctx.Done()
			note(name)
			return ctx.Err()
		}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		<-started
		cancel()
	}()
	if err := RunRoles(ctx, role("scheduler"), role("worker")); err != nil {
		t.Error(err)
	}
	if !slices.Equal(order, []string{"scheduler", "worker"}) {
		t.Errorf("order %v", order)
	}
	bad := Role{"bad", func(context.Context) error { return errors.New("broken") }}
	if err := RunRoles(t.Context(), role("worker"), bad); err == nil || err.Error() != "bad: broken" {
		t.Errorf("got %v", err)
	}
	idle := Role{"idle", func(context.Context) error { return nil }}
	if err := RunRoles(t.Context(), idle, role("worker")); err == nil || err.Error() != "idle: ended unexpectedly" {
		t.Errorf("got %v", err)
	}
}

func TestWaitForPostgres(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logs strings.Builder
		logger := term.Output{W: &logs}.Logger("info", "json")
		tries := 0
		err := waitForPostgres(t.Context(), logger, time.Minute, func(context.Context) error {
			if tries++; tries < 24 {
				return errors.New("not yet")
			}
			return nil
		})
		if err != nil || strings.Count(logs.String(), "waiting for postgres") != 3 || !strings.Contains(logs.String(), "connected to postgres") {
			t.Errorf("%v after %d\n%s", err, tries, logs.String())
		}
		start := time.Now()
		err = waitForPostgres(t.Context(), logger, 3*time.Second, func(context.Context) error { return errors.New("never") })
		if err == nil || time.Since(start) != 3*time.Second || !strings.Contains(err.Error(), "never") {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if err := waitForPostgres(t.Context(), logger, time.Hour, func(context.Context) error { return wrong("dsn") }); exitCode(t.Context(), err) != exitUsage {
			t.Error(err)
		}
	})
}

func TestTextsNameSweepsNotTheScheduleThatOnceStartedAll(t *testing.T) {
	t.Parallel()
	run := reports.Run{RunRow: store.RunRow{ID: 7, Trigger: store.TriggerNightly, Outcome: "applied", Fired: "budget"}}
	if got := summaryFacts(&reports.Summary{Run: run})[1][1]; got != "7, sweep: budget, applied" {
		t.Errorf("summary show: %v", got)
	}
	if got := matchText(store.BulkOperation{Match: store.RunMatch{Trigger: store.TriggerNightly}}); got != "trigger sweep" {
		t.Errorf("bulk: %s", got)
	}
}

func TestSettingsReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	e := &Env{Out: term.Output{W: &out}}
	writePolicyChanges(e, []policy.Change{
		{Key: "retention.archive_after", From: "", To: `"720h0m0s"`},
		{Key: "retention.purge_after", From: "", To: `"0s"`},
		{Key: "start_tokens", From: "0", To: "2000"},
		{Key: "guards.min_interval", From: `"1h30m0s"`, To: `"0s"`},
	})
	want := `  retention.archive_after  none → 30d
  start_tokens             none (start counts) → 2000
  guards.min_interval      1h30m → none
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/sessionstore/compactor/cmd/internal/dev/eval"
	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func say(role chat.Role, format string, args ...any) chat.Message {
	return chat.Message{Role: role, Content: chat.TextContent(fmt.Sprintf(format, args...))}
}

// talks are n sessions; every fifth has nothing to measure.
func talks(n int) []eval.Session {
	var out []eval.Session
	for i := range n {
		if i%5 == 4 {
			out = append(out, eval.Session{Name: fmt.Sprint("idle-", i), Messages: []chat.Message{say(chat.RoleUser, "hello"), say(chat.RoleAssistant, "and hello to you")}, Weight: 1})
			continue
		}
		ms := []chat.Message{say(chat.RoleSystem, "be good")}
		for k := range 6 {
			ms = append(ms,
				say(chat.RoleUser, "order: #AB%d%03d and file src/part%d/main%d.go please", k, i, i, k),
				say(chat.RoleAssistant, "I read it. %s", strings.Repeat("word ", 10+(i*7+k*3)%40)))
		}
		for k := range 1 + i%4 {
			ms = append(ms, say(chat.RoleAssistant, "writing src/part%d/main%d.go for #AB%d%03d %s", i, k, 5-k, i, strings.Repeat("done ", 90)))
		}
		out = append(out, eval.Session{Name: fmt.Sprint("talk-", i), Messages: ms, Weight: 1})
	}
	return out
}

func sequence(all []eval.Session) iter.Seq2[eval.Session, error] {
	return func(yield func(eval.Session, error) bool) {
		for _, s := range all {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// counted returns the baselines, which add to calls whenever one is asked.
func counted(calls *atomic.Int64) []eval.Policy {
	all := eval.Baselines()
	for i := range all {
		keep := all[i].Keep
		all[i].Keep = func(ctx context.Context, in eval.Input) (eval.Kept, error) {
			calls.Add(1)
			return keep(ctx, in)
		}
	}
	return all
}

func options(calls *atomic.Int64) eval.Options {
	return eval.Options{
		Cuts: []float64{0.5, 0.6}, Budgets: []float64{0.1, 0.3, 0.6}, Policies: counted(calls), Jobs: 2, Samples: 2,
		Compare: [][2]string{{"head20+tail", "drop_oldest"}, {"id_list", "drop_oldest"}},
	}
}

// written returns all that a result can be written as.
func written(t *testing.T, r *eval.Result) string {
	t.Helper()
	var b bytes.Buffer
	for _, err := range []error{
		r.WriteTable(term.Output{W: &b}), r.WriteJSON(&b), r.WriteCSV(&b), r.WriteHTML(&b, time.Unix(0, 0), []string{"talks"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func run(t *testing.T, sessions []eval.Session, o eval.Options) *eval.Result {
	t.Helper()
	r, err := eval.Run(t.Context(), sequence(sessions), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheResultDoesNotDependOnJobs(t *testing.T) {
	t.Parallel()
	sessions := talks(20)
	var want string
	for _, jobs := range []int{1, 2, 3, 16} {
		var calls, done atomic.Int64
		o := options(&calls)
		o.Jobs, o.Progress = jobs, func(n int64) { done.Add(n) }
		got := written(t, run(t, sessions, o))
		if done.Load() != 20 {
			t.Errorf("%d jobs: %d sessions reported", jobs, done.Load())
		}
		if want == "" {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d jobs: -1 job +these\n%s", jobs, diff)
		}
	}
}

func TestFiguresDoNotDependOnTheOrderOfSessions(t *testing.T) {
	t.Parallel()
	sessions := talks(20)
	var calls atomic.Int64
	o := options(&calls)
	o.Samples = 0
	want := written(t, run(t, sessions, o))
	slices.Reverse(sessions)
	if diff := cmp.Diff(want, written(t, run(t, sessions, o))); diff != "" {
		t.Error(diff)
	}
}

// A run that was killed when the file had any number of lines, the last of them
// torn, comes to the same result, and measures only the missing rows.
func TestAKilledRunGoesOn(t *testing.T) {
	t.Parallel()
	sessions, dir := talks(6), t.TempDir()
	path := filepath.Join(dir, "whole")
	resumed := func(path string) (string, int64) {
		state, err := eval.OpenState(path)
		if err != nil {
			t.Fatal(err)
		}
		defer state.Close()
		var calls atomic.Int64
		o := options(&calls)
		o.State = state
		return written(t, run(t, sessions, o)), calls.Load()
	}
	want, total := resumed(path)
	var calls atomic.Int64
	if diff := cmp.Diff(written(t, run(t, sessions, options(&calls))), want); diff != "" {
		t.Errorf("without a state it is another: %s", diff)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	if int64(len(lines)) != total || total != calls.Load() {
		t.Fatalf("%d lines, %d and %d calls", len(lines), total, calls.Load())
	}
	for k := 0; k <= len(lines); k += 13 {
		part := bytes.Join(lines[:k], nil)
		if k < len(lines) {
			part = append(part, lines[k][:len(lines[k])*k/len(lines)]...)
		}
		path := filepath.Join(dir, fmt.Sprint(k))
		if err := os.WriteFile(path, part, 0o600); err != nil {
			t.Fatal(err)
		}
		got, n := resumed(path)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("killed after %d lines: %s", k, diff)
		}
		if n != total-int64(k) {
			t.Errorf("killed after %d of %d lines: %d measured again", k, total, n)
		}
		if _, n := resumed(path); n != 0 {
			t.Errorf("%d measured a third time", n)
		}
	}
}

func TestAnInterruptedRunGoesOn(t *testing.T) {
	t.Parallel()
	sessions, path := talks(12), filepath.Join(t.TempDir(), "state")
	var calls atomic.Int64
	want := written(t, run(t, sessions, options(&calls)))
	total := calls.Swap(0)
	ctx, stop := context.WithCancel(t.Context())
	state, err := eval.OpenState(path)
	if err != nil {
		t.Fatal(err)
	}
	o := options(&calls)
	o.State, o.Progress = state, func(int64) { stop() }
	if r, err := eval.Run(ctx, sequence(sessions), o); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("%v, %v", r, err)
	}
	known := state.Len()
	_ = state.Close()
	if known == 0 || int64(known) >= total {
		t.Fatalf("%d of %d known", known, total)
	}
	if state, err = eval.OpenState(path); err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	calls.Store(0)
	o = options(&calls)
	o.State = state
	if diff := cmp.Diff(want, written(t, run(t, sessions, o))); diff != "" {
		t.Error(diff)
	}
	if got := calls.Load() + int64(known); got != total {
		t.Errorf("%d known and %d measured, want %d", known, calls.Load(), total)
	}
}

func TestChangedInputsAreMeasuredAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	sessions, policies := talks(2), int64(len(eval.Baselines()))
	for _, step := range []struct {
		name   string
		change func(*eval.Options)
		want   int64
	}{
		{"the first time", func(*eval.Options) {}, 2 * 2 * 3 * policies},
		{"the same", func(*eval.Options) {}, 0},
		{"another budget", func(o *eval.Options) { o.Budgets = append(o.Budgets, 0.7) }, 2 * 2 * policies},
		{"another definition", func(o *eval.Options) { o.Policies[0].Definition += "!" }, 2 * 2 * 3},
		{"another name", func(o *eval.Options) { o.Compare, o.Policies[1].Name = nil, "renamed" }, 0},
		{"another session", func(*eval.Options) { sessions[0].Messages = append(sessions[0].Messages, say(chat.RoleUser, "more")) }, 2 * 3 * policies},
	} {
		state, err := eval.OpenState(path)
		if err != nil {
			t.Fatal(err)
		}
		var calls atomic.Int64
		o := options(&calls)
		o.State = state
		step.change(&o)
		run(t, sessions, o)
		if calls.Load() != step.want {
			t.Errorf("%s: %d measured, want %d", step.name, calls.Load(), step.want)
		}
		_ = state.Close()
	}
}

// What is rare depends on the other sessions, so measurements must hold for any of them.
func TestMeasurementsHoldForOtherSessions(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	few, many := talks(4), talks(4)
	for i := range 3 {
		many = append(many, eval.Session{Name: fmt.Sprint("other-", i), Weight: 1, Messages: []chat.Message{say(chat.RoleUser, "src/part0/main0.go of #AB1005")}})
	}
	state, err := eval.OpenState(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	o := options(&calls)
	want := written(t, run(t, many, o))
	o.State = state
	alone, r := run(t, few, o), run(t, many, o)
	if diff := cmp.Diff(want, written(t, r)); diff != "" {
		t.Errorf("-without a state +with that of fewer sessions\n%s", diff)
	}
	list := slices.IndexFunc(r.Figures, func(f eval.Figure) bool { return f.Policy == "id_list" })
	all, common := alone.Figures[list], r.Figures[list]
	if *all.Rare != *all.Loose || *common.Loose != *all.Loose || *common.Rare == *all.Rare || common.Intervals.Rare == nil {
		t.Errorf("rare %v of four sessions, %v of seven, loose %v and %v", *all.Rare, *common.Rare, *all.Loose, *common.Loose)
	}
}

func TestASomebodyElsesFileIsNoState(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"text": "dear diary\n", "other lines": `{"a":1}` + "\n", "one line without an end": "dear diary",
		"a broken line in the middle": `{"key":"1"}` + "\nbroken\n" + `{"key":"2"}` + "\n",
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := eval.OpenState(path); err == nil || !strings.Contains(err.Error(), "line") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != content {
			t.Errorf("%s: is %q now, %v", name, after, err)
		}
	}
}

func TestAPolicyThatFailsIsCountedAndComparedOnTheRest(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	o := options(&calls)
	keep := o.Policies[1].Keep
	o.Policies[1].Keep = func(ctx context.Context, in eval.Input) (eval.Kept, error) {
		if strings.Contains(in.Messages[1].Content.Text, "part3/") {
			return eval.Kept{}, errors.New("no luck")
		}
		return keep(ctx, in)
	}
	path := filepath.Join(t.TempDir(), "state")
	state, err := eval.OpenState(path)
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	o.State = state
	r := run(t, talks(10), o)
	for _, f := range r.Figures {
		want := [3]int{8, 2, 0}
		if f.Policy == "head20+tail" {
			want = [3]int{7, 2, 1}
		}
		if got := [3]int{f.Sessions, f.Skipped, f.Failed}; got != want {
			t.Errorf("%s: measured, skipped, failed %v, want %v", f.Policy, got, want)
		}
	}
	for _, c := range r.Comparisons {
		if want := map[string]int{"head20+tail": 7, "id_list": 8}[c.A]; c.Sessions != want {
			t.Errorf("%s: compared on %d, want %d", c.A, c.Sessions, want)
		}
	}
	if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "head20+tail could not compact 1 session, which its figures exclude: no luck") || !strings.Contains(notes, "8 sessions measured, 2 skipped") {
		t.Error(notes)
	}
}

func TestNothingToMeasure(t *testing.T) {
	t.Parallel()
	for name, sessions := range map[string][]eval.Session{"no session": nil, "idle ones": {talks(5)[4]}} {
		if _, err := eval.Run(t.Context(), sequence(sessions), eval.Options{Cuts: []float64{0.5}, Budgets: []float64{0.5}, Policies: eval.Baselines()}); !errors.Is(err, eval.ErrNothing) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPipelineWorksTowardsTheBudget(t *testing.T) {
	t.Parallel()
	base := policy.Default()
	base.Pipeline = []policy.Step{{Strategy: "truncation"}}
	p, err := eval.Pipeline("truncation", base, eval.Build{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	ms := talks(1)[0].Messages[:13]
	total := retention.Total(ms)
	for _, share := range []float64{0.3, 0.5, 0.8, 1} {
		kept, err := p.Keep(t.Context(), eval.Input{Messages: ms, Budget: share * total})
		if err != nil {
			t.Fatal(err)
		}
		got := retention.Total(kept.Messages)
		// The system's message does not count, and no more goes than has to.
		if got > share*total || got < share*total-150 || kept.Messages[0].Role != chat.RoleSystem {
			t.Errorf("%v of %v tokens at %v", got, total, share)
		}
	}
	base.Pipeline = []policy.Step{{Strategy: "truncation", Params: map[string]any{"nope": 1}}}
	if _, err := eval.Pipeline("bad", base, eval.Build{Registry: builtin.Registry()}); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("%v", err)
	}
}

// played returns a client of a model that plays steps.
func played(t *testing.T, steps ...llmtest.Step) *llm.Client {
	t.Helper()
	server := llmtest.New(steps...)
	url, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	c := llm.Default()
	c.Models = []llm.Profile{{Name: "m", BaseURL: url, Window: 32_000, Price: llm.Price{Input: 1000, Output: 100_000}}}
	client, err := llm.New(c, llm.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestCallsOfModelsAreCountedAndPriced(t *testing.T) {
	t.Parallel()
	base := policy.Default()
	base.Pipeline = []policy.Step{{Strategy: "summarize", Params: map[string]any{"threshold": 4, "keep_last_n": 2, "max_summary_tokens": 3000}}}
	registry := builtin.Registry()
	models := played(t, llmtest.Step{Behaviour: llmtest.Normal}, llmtest.Step{Behaviour: llmtest.AuthError})
	p, err := eval.Pipeline("summarize", base, eval.Build{Registry: registry, Model: models})
	if err != nil {
		t.Fatal(err)
	}
	in := eval.Input{Budget: 1000}
	for i := range 20 {
		in.Messages = append(in.Messages, say(chat.RoleUser, "What of order #AB%04d? %s", i, strings.Repeat("It should be there. ", 30)),
			say(chat.RoleAssistant, "It is open. %s", strings.Repeat("Somebody looks at it. ", 30)))
	}
	kept, err := p.Keep(t.Context(), in)
	if err != nil || kept.Calls != 1 || kept.Failed != 0 || kept.InputTokens < 1000 || kept.OutputTokens < 100 {
		t.Errorf("%+v, %v", kept.Usage, err)
	}
	// Some of the input may have come from the cache, at another price.
	if want := float64(kept.OutputTokens) * 100_000 / 1e6; kept.Cost < want || kept.Cost > want+float64(kept.InputTokens)*1000/1e6 {
		t.Errorf("cost %v for %+v", kept.Cost, kept.Usage)
	}
	if kept, err = p.Keep(t.Context(), in); err != nil || kept.Calls != 1 || kept.Failed != 1 || kept.Cost != 0 {
		t.Errorf("%+v, %v", kept.Usage, err)
	}
	for _, b := range []eval.Build{{Registry: registry}, {Registry: registry, Model: models, Version: "2"}} {
		other, err := eval.Pipeline("summarize", base, b)
		if err != nil || other.Definition == p.Definition {
			t.Errorf("%+v has the same definition, %v", b, err)
		}
	}
}

func TestSummariesThatWereRecordedAreMeasured(t *testing.T) {
	t.Parallel()
	sessions := talks(4)
	ms := sessions[1].Messages
	summary := say(chat.RoleUser, "so far: order: #AB0001, file src/part1/main0.go")
	summary.Extra = map[string]json.RawMessage{"is_compact_summary": json.RawMessage("true")}
	sessions[1].Messages = slices.Concat(ms[:10], []chat.Message{summary}, ms[10:], []chat.Message{say(chat.RoleAssistant, "src/part1/main0.go and src/part1/main1.go for #AB0001")})
	r := run(t, sessions, eval.Options{Cuts: []float64{0.5}, Budgets: []float64{0.5}, Policies: eval.Baselines()})
	if f := r.Recorded; f == nil || f.Sessions != 1 || f.Identifiers != 4 || *f.Loose != 0.5 || *f.Keyed != 0.5 || f.TokensAfter != retention.Tokens(&summary) {
		t.Errorf("%+v", f)
	}
	if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "1 summary written by agents in these sessions") || !strings.Contains(notes, "loose 50.0 %") {
		t.Error(notes)
	}
	if r := run(t, talks(4), eval.Options{Cuts: []float64{0.5}, Budgets: []float64{0.5}, Policies: eval.Baselines()}); r.Recorded != nil {
		t.Errorf("%+v", r.Recorded)
	}
}

func TestASummaryIsOneMessageBesideTheSystems(t *testing.T) {
	t.Parallel()
	p := eval.Summary("short", "", "short/1", func(_ context.Context, in eval.Input) (string, eval.Usage, error) {
		return fmt.Sprintf("budget %.0f", in.Budget), eval.Usage{Calls: 2, Cost: 0.25}, nil
	})
	r := run(t, talks(3), eval.Options{Cuts: []float64{0.5}, Budgets: []float64{0.5}, Policies: []eval.Policy{p}, Samples: 1})
	f := r.Figures[0]
	if f.Calls != 6 || f.Cost != 0.75 || f.TokensAfter < 6 || f.TokensAfter > 9 || *f.Loose != 0 {
		t.Errorf("%+v", f)
	}
	if len(r.Samples) != 1 || r.Samples[0].Session != "talk-0" || !strings.HasPrefix(r.Samples[0].Text, "budget 8") {
		t.Errorf("%+v", r.Samples)
	}
}

package worker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// apply puts a policy in force for sessions with a label, as `compactor policy apply` does.
func (f *fixture) apply(name string, expect int, p policy.Policy) {
	f.t.Helper()
	spec := must(policy.Spec(p))(f.t)
	f.applySpec(name, expect, spec, p)
}

func (f *fixture) applySpec(name string, expect int, spec json.RawMessage, p policy.Policy) {
	f.t.Helper()
	_, err := f.store.Operator.ChangePolicies(f.t.Context(), []store.PolicyChange{{
		Name: name, Expect: expect, Spec: spec, Hash: policy.SpecHash(spec), Match: map[string]string{"agent": name}, FleetHash: p.FleetHash(),
		Thresholds: []store.Threshold{{DueTokens: p.Limits("", tokens.Window).Start}},
	}}, "test")
	f.must(err)
}

func (f *fixture) label(session, agent string) {
	f.t.Helper()
	f.must(f.store.SetLabels(f.t.Context(), key(session), map[string]string{"agent": agent}))
}

func TestASessionIsCompactedUnderItsPolicy(t *testing.T) {
	t.Parallel()
	f := setup(t)
	p := testPolicy()
	p.StartTokens, p.TargetTokens = 500, 300
	f.apply("small", 0, p)
	f.label("s", "small")
	f.append("s", "suauaua")
	run := f.run(f.event())
	if run.Outcome != OutcomeApplied || run.TokensAfter > 300 || run.Policy != "small" || run.PolicyVersion != 1 {
		t.Errorf("version 1: %+v", run)
	}
	p.StartTokens, p.TargetTokens = 350, 200
	f.apply("small", 1, p)
	f.append("s", "u")
	if run = f.run(f.operator("s", store.Options{From: "view"})); run.TokensAfter > 200 || run.PolicyVersion != 2 {
		t.Errorf("version 2, which the session does not follow yet: %+v", run)
	}
	f.append("other", "suauauauaua")
	if run = f.run(f.event()); run.Outcome != OutcomeApplied || run.Policy != "default" || run.PolicyVersion != 0 || run.TokensAfter <= 300 {
		t.Errorf("a session that the policy is not for: %+v", run)
	}
}

func TestAPolicyOfAnotherVersionEndsTheRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spec func(string) string
		want string
	}{
		"a setting that is not known":  {func(s string) string { return strings.Replace(s, `{`, `{"a_setting_of_tomorrow": 1, `, 1) }, "a_setting_of_tomorrow"},
		"a strategy that is not known": {func(s string) string { return strings.Replace(s, `"truncation"`, `"a_strategy_of_tomorrow"`, 1) }, "a_strategy_of_tomorrow"},
		"thresholds that contradict":   {func(s string) string { return strings.Replace(s, `"target_tokens":600`, `"target_tokens":2000`, 1) }, "target_tokens: 2000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			p := testPolicy()
			spec := must(policy.Spec(p))(t)
			f.applySpec("newer", 0, json.RawMessage(tt.spec(string(spec))), p)
			f.label("s", "newer")
			f.append("s", "suauauauaua")
			run := f.run(f.event())
			if run.Status != "failed" || run.Outcome != "invalid_policy" || !strings.Contains(run.Error, tt.want) || run.Policy != "newer" || run.PolicyVersion != 1 {
				t.Errorf("%+v", run)
			}
			if lost, err := f.store.Scheduler.Forgotten(t.Context(), 9, 0); err != nil || len(lost) > 0 {
				t.Errorf("the run is repeated: %v, %v", lost, err)
			}
			f.apply("newer", 1, p)
			if run = f.run(f.operator("s", store.Options{From: "view"})); run.Outcome != OutcomeApplied || run.PolicyVersion != 2 {
				t.Errorf("after a version that can be read: %+v", run)
			}
		})
	}
}

// A preview says what the run that follows does, and writes nothing.
func TestAPreviewIsWhatARunDoes(t *testing.T) {
	t.Parallel()
	f := setup(t)
	p := testPolicy()
	p.StartTokens, p.TargetTokens = 500, 300
	f.apply("small", 0, p)
	for session, transcript := range map[string]string{
		"small": "sucacauauaua", "tools": "suctctctuauctct", "short": "su", "invalid": "suatuaua", "one": "u", "fits": "suauauaua",
	} {
		f.append(session, transcript)
		if session == "small" {
			f.label(session, "small")
		}
		tables := func() string {
			var out []string
			runs := must(f.store.Operator.Runs(t.Context(), store.RunFilter{Limit: 99}))(t)
			row := f.session(session)
			return strings.Join(append(out, fmt.Sprint(runs), fmt.Sprint(row)), "\n")
		}
		before := tables()
		claim := must(f.store.Reader.Snapshot(t.Context(), key(session)))(t)
		got := must(f.w.planner.Preview(t.Context(), f.store.Worker, claim, nil))(t)
		if after := tables(); after != before {
			t.Errorf("%s: the preview has written:\n%s\n%s", session, before, after)
		}
		run := f.run(f.operator(session, store.Options{From: "view"}))
		if got.Outcome != run.Outcome || int64(got.Before) != run.TokensBefore || int64(got.After) != run.TokensAfter || got.MessagesAfter != run.MessagesAfter {
			t.Errorf("%s: preview %s %d → %d, %d messages; the run %s %d → %d, %d messages", session,
				got.Outcome, got.Before, got.After, got.MessagesAfter, run.Outcome, run.TokensBefore, run.TokensAfter, run.MessagesAfter)
		}
		var gone int64
		for _, g := range got.Gone {
			gone += int64(g.Messages)
		}
		if run.Status == "applied" && (gone == 0 || got.Before-got.After > chat.Tokens(100*gone)) {
			t.Errorf("%s: %d messages leave for %d tokens", session, gone, got.Before-got.After)
		}
		if run.Status == "applied" {
			seqs := func(d store.RunDiff) (out []string) {
				for _, p := range slices.Concat(d.Out, d.In, []store.DiffPart{d.Stays}) {
					out = append(out, fmt.Sprint(p.Reason, p.Seqs, p.Messages, p.SummarizedBy != ""))
				}
				for _, m := range d.Wrote {
					out = append(out, string(m.Message))
				}
				slices.Sort(out)
				return out
			}
			if diff := cmp.Diff(seqs(must(f.store.Reader.Diff(t.Context(), run.ID))(t)), seqs(got.Diff)); diff != "" {
				t.Errorf("%s: the change of the run and of the preview: %s", session, diff)
			}
		}
		other := testPolicy()
		other.StartTokens, other.TargetTokens, other.MinGainTokens = 400, 100, 0
		claim = must(f.store.Reader.Snapshot(t.Context(), key(session)))(t)
		if got = must(f.w.planner.Preview(t.Context(), f.store.Worker, claim, &other))(t); got.Limits.Target != 100 {
			t.Errorf("%s under another policy: %+v", session, got)
		}
	}
}

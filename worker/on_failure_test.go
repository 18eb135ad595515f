package worker

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/policy"
)

// The outcome of a run whose model fails, by the policy and the position of the summary.
func TestReplacementsOfAFailedSummary(t *testing.T) {
	t.Parallel()
	summary := modelPolicy().Pipeline[0]
	rolling := policy.Step{Strategy: "summarize", Params: map[string]any{"threshold": 4, "keep_last_n": 3}}
	truncation := policy.Step{Strategy: "truncation", Params: map[string]any{"metric": "tokens", "max_n": 1500, "compact_to": 1500}}
	nested := policy.Step{Strategy: "token_budget", Params: map[string]any{
		"token_budget": 1500, "strategies": []any{map[string]any{"strategy": "summarize", "params": rolling.Params}},
	}}
	lone, middle, inBudget := []policy.Step{summary}, []policy.Step{rolling, truncation}, []policy.Step{nested}
	tests := map[string]struct {
		onFailure string
		steps     []policy.Step
		fallback  bool
		outcome   string
		summaries int
		kept      bool // the view is what it was
		by        string
		marked    string // in the summary
	}{
		"keep, alone":                  {policy.OnFailureKeep, lone, false, OutcomeNoSummary, 0, true, "", ""},
		"keep, alone, with a fallback": {policy.OnFailureKeep, lone, true, OutcomeNoSummary, 0, true, "", ""},
		"truncate, alone":              {policy.OnFailureTruncate, lone, false, OutcomeApplied, 0, false, "", ""},
		"extractive, alone":            {policy.OnFailureExtractive, lone, false, OutcomeApplied, 1, false, "extractive", "without a model"},
		"marker, alone":                {policy.OnFailureMarker, lone, false, OutcomeApplied, 1, false, "marker", "summarizing them did not work"},
		"keep, before another step":    {policy.OnFailureKeep, middle, false, OutcomeApplied, 0, false, "", ""},
		"marker, before another step":  {policy.OnFailureMarker, middle, false, OutcomeApplied, 0, false, "", ""},
		"keep, in a budget":            {policy.OnFailureKeep, inBudget, false, OutcomeApplied, 0, false, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := modelPolicy()
			p.Pipeline, p.Fallback, p.Summary.OnFailure = tt.steps, tt.fallback, tt.onFailure
			f, server := modelled(t, database(t), p, llmtest.Step{Behaviour: llmtest.AuthError, Times: 99})
			before := f.view("s")
			row := f.run(f.event())
			if row.ErrorCode != "auth" {
				t.Errorf("the run has the code %q, want that of the model's failure", row.ErrorCode)
			}
			all := f.summaries("s")
			if len(all) == 1 && !strings.Contains(all[0].Content.String(), tt.marked) {
				t.Errorf("the summary is not marked:\n%s", all[0].Content.String())
			}
			if row.Outcome != tt.outcome || len(all) != tt.summaries || (f.view("s") == before) != tt.kept {
				t.Errorf("%s with %d summaries, view %s\n%s", row.Outcome, len(all), f.view("s"), row.Steps)
			}
			steps := string(row.Steps)
			if !strings.Contains(steps, `"failure": "auth"`) || strings.Contains(steps, `"written_by"`) != (tt.by != "") || !strings.Contains(steps, tt.by) {
				t.Errorf("%s", steps)
			}
			if strings.Contains(steps+row.Error, "TK100") {
				t.Error("words of the conversation are in the ledger")
			}
			if server.Calls() != 1 {
				t.Errorf("%d requests", server.Calls())
			}
		})
	}
}

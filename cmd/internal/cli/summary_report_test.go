package cli

import (
	"testing"

	"github.com/sessionstore/compactor/strategies/summary"
)

func TestReportsInWords(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]summary.Provenance{
		"":                     {Failure: "auth"},
		"model gpt-5":          {WrittenBy: summary.ByModel, Model: "gpt-5"},
		"operator Mara":        {WrittenBy: summary.ByOperator, Operator: "Mara"},
		"no model: an extract": {WrittenBy: summary.ByExtract},
		"no model: a marker (the model failed: auth)": {WrittenBy: summary.ByMarker, Failure: "auth"},
	} {
		if got := authorOf(&r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, c := range map[string]summary.Call{
		"stored answer, prompt abc": {PromptHash: "abc", Reused: true, Input: 5},
		"10 tokens in (4 cached), 2 out, cost 0.0012, 3 attempts, prompt abc":                            {PromptHash: "abc", Input: 10, Cached: 4, Output: 2, CostMicros: 1200, Attempts: 3},
		"10 tokens in, 2 out, cost 0.0000, repair of the previous answer, rejected: refusal, prompt abc": {PromptHash: "abc", Input: 10, Output: 2, Repair: true, Rejected: "refusal"},
		"failed: timeout, prompt abc": {PromptHash: "abc", Failed: "timeout", Attempts: 1},
	} {
		if got := callText(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

//go:build !nodev

package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
)

// Errors in a script are reported before anything is started.
func TestScriptIsReadFirst(t *testing.T) {
	t.Parallel()
	home := []string{"HOME=" + t.TempDir(), "DATABASE_URL=postgres://u@127.0.0.1:1/x", "COMPACTOR_NO_FETCH=1"}
	path := file(t, "script.yaml", "steps:\n  - norml\n")
	invoke(t, home, "demo", "--model-script", path).want(t, exitUsage, `line 2: behaviour "norml": want one of [normal`)
	invoke(t, home, "demo", "--model-script", path+"x").want(t, exitUsage, "no such file")
}

func TestDemoReportsWhySummariesAreMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with little concurrency")
	}
	t.Parallel()
	path := file(t, "script.yaml", "steps: [{behaviour: normal, times: 8}, {behaviour: refusal, times: 100}]\n")
	got := decode[demoResult](t, invoke(t, database(t), "demo", "--sessions=20", "--model-script", path, "--json").want(t, 0))
	for _, want := range []store.SummaryTally{{Kind: "summary", Code: "model"}, {Kind: "summary", Code: "none: refusal"}, {Kind: "call", Code: "answered"}, {Kind: "call", Code: "rejected: refusal"}} {
		if !slices.ContainsFunc(got.Summaries, func(x store.SummaryTally) bool { return x.Kind == want.Kind && x.Code == want.Code && x.Count > 0 }) {
			t.Errorf("no %s %s in %+v", want.Kind, want.Code, got.Summaries)
		}
	}
	for _, x := range got.Summaries {
		if strings.HasSuffix(x.Code, "none") || strings.HasSuffix(x.Code, ": ") {
			t.Errorf("%q has no reason", x.Code)
		}
	}
}

func TestDemoNamesItsModels(t *testing.T) {
	t.Parallel()
	env := append(database(t), `COMPACTOR_LLM_MODELS=[{name: m, base_url: "http://127.0.0.1:1/v1", window_tokens: 8000}]`)
	invoke(t, env, "demo", "--sessions=1").want(t, 0, "models    m@127.0.0.1:1 (yours)")
}

func TestDemoEndsWithASweepUnderAPolicy(t *testing.T) {
	t.Parallel()
	invoke(t, database(t), "demo", "--sessions=6").want(t, 0,
		"OLD POLICY", "`compactor sweep start --dry-run` says", "`compactor sweep show 2` says", "status        done",
		"left alone, as `compactor policy explain", "policy     tighter@1: it matches tenant=default", "next run")
}

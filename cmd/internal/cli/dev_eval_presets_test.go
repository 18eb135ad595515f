//go:build !nodev

package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/dev/eval"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/policy"
)

// presetReport holds the figures from which the default and the presets were chosen. It is
// written by go test ./cmd/internal/cli -run TestNoPresetIsDominated -args -update, which takes
// some minutes.
const presetReport = "testdata/presets.json"

// presetKinds are the kinds of sessions, with the policies that are for them.
var presetKinds = []struct {
	name    string
	files   []string
	cut     float64
	presets []string
}{
	{
		"coding",
		[]string{"aider_history.jsonl", "entire_cli.jsonl", "pi_mono.jsonl", "swe_agent.jsonl"},
		0.5,
		[]string{defaultPolicy, "coding", "research", "strict", "tool_heavy"},
	},
	{"service", []string{"facts/service.jsonl"}, 0.9, []string{defaultPolicy, "chat", "research", "support"}},
	{"booking", []string{"taubench_airline.jsonl"}, 0.5, []string{defaultPolicy}},
}

// presetBudgets are those of the report, presetRivals the policies beside the presets.
var presetBudgets = []string{"0.05", "0.1", "0.25", "600t", "2000t"}

const presetRivals = "drop_oldest,head20+tail,user+tail,drop_tool_results,stub200,random,preserve_user_messages"

// presets is the report.
type presets struct {
	Figures []presetFigure `json:"figures"`
	Rivals  []presetRival  `json:"rivals"`
}

// presetFigure is the part of a figure that the report keeps, in percent.
type presetFigure struct {
	Kind     string             `json:"kind"`
	Budget   string             `json:"budget"`
	Policy   string             `json:"policy"`
	Sessions int                `json:"sessions"`
	Kept     map[string]float64 `json:"kept"`
}

// presetRival holds how often a rival does better and worse than a preset on the sessions that
// it is for, over all budgets and measures.
type presetRival struct {
	Kind   string `json:"kind"`
	Preset string `json:"preset"`
	Rival  string `json:"rival"`
	Better int    `json:"better"`
	Worse  int    `json:"worse"`
}

// A policy beside which another one is better in something and worse in nothing, at any
// budget, is of no use to anyone.
func TestNoPresetIsDominated(t *testing.T) {
	t.Parallel()
	if *update {
		writePresets(t)
	}
	var report presets
	raw, err := os.ReadFile(presetReport)
	if err == nil {
		err = json.Unmarshal(raw, &report)
	}
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, kind := range presetKinds {
		for _, preset := range kind.presets {
			missing = append(missing, kind.name+" "+preset)
		}
	}
	for _, r := range report.Rivals {
		missing = slices.DeleteFunc(missing, func(s string) bool { return s == r.Kind+" "+r.Preset })
		if r.Better > 0 && r.Worse == 0 {
			t.Errorf("%s: %s dominates %s", r.Kind, r.Rival, r.Preset)
		}
	}
	if len(missing) > 0 {
		t.Errorf("the report lacks %v", missing)
	}
}

// The report is that of this program: on the kind that is measured fastest, figures are within
// a point.
func TestTheReportOfPresetsIsUpToDate(t *testing.T) {
	t.Parallel()
	if testing.Short() || *update {
		t.Skip("computes for long, with little concurrency")
	}
	raw, err := os.ReadFile(presetReport)
	if err != nil {
		t.Fatal(err)
	}
	var report presets
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	kind := presetKinds[len(presetKinds)-1]
	r := evaluate(t, len(presetKinds)-1, []string{"600t"})
	for i := range r.Figures {
		got := presetFigureOf(t, kind.name, &r.Figures[i])
		at := slices.IndexFunc(report.Figures, func(f presetFigure) bool {
			return f.Kind == got.Kind && f.Budget == got.Budget && f.Policy == got.Policy
		})
		if at < 0 {
			t.Errorf("%s does not hold %s of %s at %s", presetReport, got.Policy, got.Kind, got.Budget)
			continue
		}
		for name, v := range got.Kept {
			if was := report.Figures[at].Kept[name]; math.Abs(v-was) > 1 {
				t.Errorf("%s of %s at %s: %s is %.1f %%, in the report %.1f %%: see presetReport", got.Policy, got.Kind, got.Budget, name, v, was)
			}
		}
	}
}

// The default policy is that of an empty configuration, whatever the configuration says.
func TestEvalOfTheDefaultPolicy(t *testing.T) {
	t.Parallel()
	dir, path := evalFile(t)
	config := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(config, []byte("policy: {pipeline: [{strategy: sliding_window, params: {keep_last_groups: 1}}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	figure := func(args ...string) eval.Figure {
		r := invoke(t, []string{"HOME=" + dir}, append([]string{"eval", path, "--budget=0.5", "--json"}, args...)...).want(t, 0)
		r.stdout, _, _ = strings.Cut(r.stdout, "\n") // of the first policy
		f := decode[eval.Figure](t, r)
		f.Policy = ""
		return f
	}
	want := figure("--policy=configured")
	if diff := cmp.Diff(want, figure("--policy=default", "--config", config)); diff != "" {
		t.Errorf("-without a configuration +default\n%s", diff)
	}
	if cmp.Equal(want, figure("--policy=configured", "--config", config)) {
		t.Error("another pipeline comes to the same figures")
	}
}

// evaluate returns the result of the command for a kind, with every policy compared with each
// preset. A token is four characters: most of these sessions name no model, so that a
// counter would only guess.
func evaluate(t *testing.T, kind int, budgets []string) *eval.Result {
	t.Helper()
	k := presetKinds[kind]
	c := evalCmd{Cut: []float64{k.cut}, Budget: budgets, Rounds: 1, Format: "auto", Counter: "chars4", Policy: append([]string{defaultPolicy, presetRivals}, policy.PresetNames()...)}
	for _, file := range k.files {
		path := filepath.Join("../../../../shared/data", file)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no conversations: %v", err)
		}
		c.From = append(c.From, path)
	}
	e := &Env{Out: discard(), Err: discard(), Registry: builtin.Registry(), now: time.Now}
	cfg := config.Default()
	o, err := c.options(e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range o.Policies {
		for _, preset := range k.presets {
			if p.Name != preset {
				o.Compare = append(o.Compare, [2]string{p.Name, preset})
			}
		}
	}
	in, err := c.input(t.Context(), e, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	r, err := eval.Run(t.Context(), in.all, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func presetFigureOf(t *testing.T, kind string, f *eval.Figure) presetFigure {
	t.Helper()
	raw, err := json.Marshal(f.Measures)
	if err != nil {
		t.Fatal(err)
	}
	var shares map[string]*float64
	if err := json.Unmarshal(raw, &shares); err != nil {
		t.Fatal(err)
	}
	kept := map[string]float64{}
	for name, v := range shares {
		if v != nil {
			kept[name] = math.Round(1000**v) / 10
		}
	}
	return presetFigure{kind, f.Limit(), f.Policy, f.Sessions, kept}
}

// writePresets writes the report, with a line for each figure and rival.
func writePresets(t *testing.T) {
	t.Helper()
	var figures, rivals []string
	line := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for i, kind := range presetKinds {
		r := evaluate(t, i, presetBudgets)
		for k := range r.Figures {
			figures = append(figures, line(presetFigureOf(t, kind.name, &r.Figures[k])))
		}
		var all []presetRival
		for _, c := range r.Comparisons {
			at := slices.IndexFunc(all, func(p presetRival) bool { return p.Preset == c.B && p.Rival == c.A })
			if at < 0 {
				at, all = len(all), append(all, presetRival{Kind: kind.name, Preset: c.B, Rival: c.A})
			}
			better, worse := r.Verdicts(c)
			all[at].Better += len(better)
			all[at].Worse += len(worse)
		}
		for _, p := range all {
			rivals = append(rivals, line(p))
		}
	}
	report := fmt.Sprintf("{\"figures\":[\n%s\n],\"rivals\":[\n%s\n]}\n", strings.Join(figures, ",\n"), strings.Join(rivals, ",\n"))
	if err := os.WriteFile(presetReport, []byte(report), 0o644); err != nil { //nolint:gosec // as in the repository
		t.Fatal(err)
	}
}

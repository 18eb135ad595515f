//go:build !nodev

package cli

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/dev/eval"
)

// The command comes to the script's figures, and reads the formats of import.
func TestEvalComesToTheFiguresOfTheScript(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with little concurrency")
	}
	t.Parallel()
	shared := filepath.Join("..", "..", "..", "..", "shared")
	script, data := filepath.Join(shared, "research", "retention.py"), filepath.Join(shared, "data", "swe_agent.jsonl")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	for _, path := range []string{script, data} {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("no %s: it stands beside the module", path)
		}
	}
	out := filepath.Join(t.TempDir(), "out.json")
	if said, err := exec.CommandContext(t.Context(), python, "-B", script, data, "--cuts=0.5,0.75", "--budgets=0.5,0.1", "--json", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var want []struct {
		Baseline          string
		Sessions          int
		Cut, Budget, Kept float64
		LooseMacro        float64 `json:"loose_macro"`
		StrictMacro       float64 `json:"strict_macro"`
		Loose             float64 `json:"loose_micro"`
		Strict            float64 `json:"strict_micro"`
		Keyed             float64 `json:"keyed_micro"`
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	r := invoke(t, []string{"HOME=" + t.TempDir()}, "eval", "--from", data, "--policy=drop_oldest,head20+tail,drop_tool_results,stub200,id_list", "--cut=0.5,0.75", "--budget=0.5,0.1", "--counter=chars4", "--json").want(t, 0)
	found := 0
	for line := range strings.Lines(r.stdout) {
		var f eval.Figure
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if w.Baseline == "id list (gaming probe)" {
				w.Baseline = "id_list"
			}
			if w.Cut != f.Cut || w.Budget != f.Budget || w.Baseline != f.Policy {
				continue
			}
			found++
			for _, x := range [][2]float64{
				{w.Kept, *f.TokensKept},
				{w.Loose, *f.Loose},
				{w.Strict, *f.Strict},
				{w.Keyed, *f.Keyed},
				{w.LooseMacro, *f.LooseMacro},
				{w.StrictMacro, *f.StrictMacro},
				{float64(w.Sessions), float64(f.Sessions)},
			} {
				if math.Abs(x[0]-x[1]) > 1e-12 {
					t.Errorf("%s, cut %v, budget %v: %v, the script has %v", f.Policy, f.Cut, f.Budget, x[1], x[0])
				}
			}
		}
	}
	if found != 20 || len(want) != 20 {
		t.Errorf("%d of %d figures found", found, len(want))
	}
}

// The retention of references without a model at 5 % of the tokens at most, on real
// sessions, beside that of the models' own summaries there.
func TestEvalOfTheExtractiveSummary(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with little concurrency")
	}
	t.Parallel()
	data := filepath.Join("..", "..", "..", "..", "shared", "data", "entire_cli.jsonl")
	if _, err := os.Stat(data); err != nil {
		t.Skip("no real sessions: they stand beside the module")
	}
	r := invoke(t, []string{"HOME=" + t.TempDir()}, "eval", "--from", data, "--cut", "0.5", "--budget", "0.05", "--policy", "extractive", "--json").want(t, 0, "24 summaries written by agents")
	f := decode[eval.Figure](t, r)
	if f.Sessions != 47 || *f.TokensKept > 0.05 || f.TokensPooled > 0.05 || *f.Keyed < 0.52 || *f.Loose < 0.58 || *f.Asks < 0.95 || f.Calls != 0 {
		t.Errorf("%s", r.stdout)
	}
	t.Logf("%.1f %% of the tokens, keyed %.1f %%, loose %.1f %%, strict %.1f %%", 100**f.TokensKept, 100**f.Keyed, 100**f.Loose, 100**f.Strict)
}

// With the configured policy alone, the figures and the advice are of each file, too.
func TestEvalAdvisesOnEachFile(t *testing.T) {
	t.Parallel()
	dir, path := evalFile(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(raw), "\n")
	var files []string
	for name, part := range map[string][]string{"a.jsonl": lines[:6], "b.jsonl": lines[6:]} {
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], []byte(strings.Join(part, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"eval", "--policy=configured", "--budget=0.5"}, files...)
	home := []string{"HOME=" + dir}
	text := invoke(t, home, args...).want(t, 0).stdout
	for name, want := range map[string]string{"a.jsonl": "none does better than configured", "b.jsonl": "fewer than 6 sessions tell no difference"} {
		if _, after, _ := strings.Cut(text, "/"+name+", cut 50 %, budget 50 %: "); !strings.HasPrefix(after, want) {
			t.Errorf("%s: no %q in\n%s", name, want, text)
		}
	}
	sessions := map[string]int{}
	for line := range strings.Lines(invoke(t, home, append(args, "--json")...).want(t, 0).stdout) {
		var f eval.Figure
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if f.Policy == configuredPolicy {
			sessions[filepath.Base(f.Corpus)] = f.Sessions
		}
	}
	if sessions["."] != 7 || sessions["a.jsonl"] != 6 || sessions["b.jsonl"] != 1 {
		t.Errorf("sessions of the files: %v", sessions)
	}
}

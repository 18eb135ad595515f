package retention_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

var research = filepath.Join("..", "..", "..", "..", "..", "shared", "research")

// python runs code with the measure's own module, named r, and decodes its answer.
func python(t *testing.T, code string, in, out any, args ...string) {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	if _, err := os.Stat(filepath.Join(research, "retention.py")); err != nil {
		t.Skip("no retention.py: it stands beside the module")
	}
	stdin, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), interpreter,
		append([]string{"-B", "-c", "import sys,json\nsys.path.insert(0,sys.argv[1])\nimport retention as r\n" + code, research}, args...)...)
	c.Stdin, c.Stderr = bytes.NewReader(stdin), os.Stderr
	answer, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		t.Fatal(err)
	}
}

// names are the script's for the baselines.
var names = map[string]string{"id_list": "id list (gaming probe)"}

// sampled writes each nth session of a file, or all if sessiontest.Long, to a file for the script.
func sampled(t *testing.T, name string, nth int) string {
	t.Helper()
	all, err := os.ReadFile(sessiontest.RecordedFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	var some bytes.Buffer
	n := 0
	for line := range bytes.Lines(all) {
		if n++; sessiontest.Long() || (n-1)%nth == 0 {
			some.Write(line)
		}
	}
	path := filepath.Join(t.TempDir(), "sessions.jsonl")
	if err := os.WriteFile(path, some.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Sessions of the corpora, under every baseline, cut and budget, have to come to the same
// figures as the script. LONG_TESTS=1 takes all sessions and the corpora that take minutes.
func TestBaselinesAreTheScripts(t *testing.T) {
	t.Parallel()
	files := map[string]int{"swe_agent": 8, "taubench_airline": 20}
	if sessiontest.Long() {
		files["pi_mono"], files["entire_cli"] = 1, 1 // not aider_history: the script drops results without a call id
	}
	cuts, budgets := []float64{0.25, 0.5, 0.75}, []float64{0.5, 0.25, 0.1, 0.05, 0.01}
	for name, nth := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := sampled(t, name+".jsonl", nth)
			var want []struct {
				Cut, Budget float64
				Name        string
				Rows        [][]float64
			}
			python(t, `
a=json.load(sys.stdin)
for R,_,_ in r.run_file(sys.argv[2],a["cuts"],a["budgets"],0):
    print(json.dumps([dict(cut=c,budget=b,name=n,rows=x) for (c,b,n),x in R.items()]))`,
				map[string]any{"cuts": cuts, "budgets": budgets}, &want, path)
			got := measure(t, path, cuts, budgets)
			rows := 0
			for _, w := range want {
				rs := got[key{w.Cut, w.Budget, w.Name}]
				rows += len(rs)
				if diff := cmp.Diff(w.Rows, rs); diff != "" {
					t.Errorf("cut %v, budget %v, %s: -script +ours\n%s", w.Cut, w.Budget, w.Name, diff)
				}
			}
			if rows == 0 || len(want) != len(got) {
				t.Errorf("%d rows, %d combinations of the script, %d of ours", rows, len(want), len(got))
			}
			t.Logf("%d rows equal", rows)
		})
	}
}

type key struct {
	cut, budget float64
	name        string
}

// measure returns the figures that run_file of the script returns.
func measure(t *testing.T, path string, cuts, budgets []float64) map[key][][]float64 {
	t.Helper()
	out := map[key][][]float64{}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := chat.NewReader(f); ; {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range cuts {
			c := retention.NewCase(s.Messages, cut)
			if c == nil {
				continue
			}
			for _, budget := range budgets {
				for _, b := range retention.Baselines() {
					name := b.Name
					if name == "user+tail" { // not in the script
						continue
					}
					if n := names[name]; n != "" {
						name = n
					}
					k := key{cut, budget, name}
					x := c.Score(b.Keep(c.Pre, budget*c.Tokens, retention.Sizer{}))
					out[k] = append(out[k], []float64{
						x.Tokens / c.Tokens, x.Tokens, float64(x.Loose), float64(len(c.Needs)), float64(x.Strict), float64(c.Strict), float64(x.Keyed),
					})
				}
			}
		}
	}
}

// Arguments are read as the script reads them, except numbers that Python writes in another way.
func TestTextIsTheScripts(t *testing.T) {
	t.Parallel()
	arguments := []string{
		"", " ", "{}", "[]", "null", "true", `"text"`, `"line\nbreak \"quoted\" \u00e9 \ud83d\ude00"`, "12", "0.1", "123456789012345678901234567890", `{"a":1,"b":["x",[2,{"c":"d"}],"y"],"e":{"f":false,"h":[]},"i":null}`,
		`{"a":{"b":{"c":[[],[[]],{}]}}}`, "{bad", `{"a":1} x`, "\ufeff{}", "  {\"a\" : \"b\"}\n", "{\"a\":\"raw\ttab\"}", `{"command":"sed -n '1,5p' /usr/lib/x.go","n":4.5}`,
		strings.Repeat("[", 200) + strings.Repeat("]", 200), `{"":""}`, `{"k":"` + strings.Repeat("é", 50) + `"}`, "not json at all", `[1,"a",{"x":"y"}]`,
	}
	type call struct {
		ID       string            `json:"id"`
		Function map[string]string `json:"function"`
	}
	var ms []map[string]any
	for i, a := range arguments {
		m := map[string]any{"role": "assistant", "content": "say", "tool_calls": []call{{"1", map[string]string{"name": "run", "arguments": a}}, {"2", map[string]string{"name": "", "arguments": a}}}}
		if i%2 == 0 {
			m["content"] = nil
		}
		ms = append(ms, m)
	}
	var want []struct {
		Text   string
		Tokens float64
	}
	python(t, `print(json.dumps([dict(text=r.text(m),tokens=r.tok(m)) for m in json.load(sys.stdin)]))`, ms, &want)
	for i := range ms {
		raw, err := json.Marshal(ms[i])
		if err != nil {
			t.Fatal(err)
		}
		var m chat.Message
		if err := m.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		if got := retention.Text(&m); got != want[i].Text {
			t.Errorf("arguments %q:\n got %q\nwant %q", arguments[i], got, want[i].Text)
		}
		if got := retention.Tokens(&m); got != want[i].Tokens {
			t.Errorf("arguments %q: %v tokens, want %v", arguments[i], got, want[i].Tokens)
		}
	}
}

// The summaries that models wrote inside the sessions score as in the script.
func TestRecordedSummariesAreTheScripts(t *testing.T) {
	t.Parallel()
	path := sampled(t, "entire_cli.jsonl", 12)
	var want [][]float64
	python(t, `
r.BASE = [] # they are compared elsewhere
for _,_,llm in r.run_file(sys.argv[2],[],[],0):
    print(json.dumps([x[0] for x in llm]))`, nil, &want, path)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var got [][]float64
	for r := chat.NewReader(f); ; {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range retention.RecordedSummaries(s.Messages) {
			got = append(got, []float64{
				x.Score.Tokens / x.Case.Tokens, x.Score.Tokens, float64(x.Score.Loose), float64(len(x.Case.Needs)), float64(x.Score.Strict), float64(x.Case.Strict), float64(x.Score.Keyed),
			})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		t.Errorf("%d summaries: -script +ours\n%s", len(got), diff)
	}
	t.Logf("%d summaries", len(got))
}

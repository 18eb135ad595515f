package retention_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// measureNames are the script's for the measures of a Detail.
var measureNames = map[string]retention.Measure{
	"next10": retention.Next10, "asks": retention.Asks, "asks3": retention.Asks3,
	"constraints": retention.Constraints, "errors": retention.Errors, "facts": retention.Facts,
}

// Every measure of every corpus has to come to the figure of the script measures.py within
// half a point, on the views of a baseline, of another that rewrites messages, and of
// summaries with references. LONG_TESTS=1 measures all sessions.
func TestMeasuresAreTheScripts(t *testing.T) {
	t.Parallel()
	type sample struct {
		cut float64
		nth int
	}
	files := map[string]sample{
		"swe_agent": {0.5, 8}, "taubench_airline": {0.5, 20}, "pi_mono": {0.5, 2}, "entire_cli": {0.5, 20}, "facts/service": {0.9, 15},
	}
	if sessiontest.Long() {
		files["aider_history"] = sample{0.5, 1}
	}
	for name, of := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			sessions, views, got := detailed(t, sampled(t, name+".jsonl", of.nth), of.cut)
			var want []map[string]any
			python(t, `
import io,contextlib,measures
person=measures.by_a_person
measures.by_a_person=lambda m: person(m) and not m["content"].strip().startswith(sys.argv[4]) # the text of a skill
out=io.StringIO()
with contextlib.redirect_stdout(out): measures.main(sys.argv[2],sys.argv[3])
print("["+",".join(out.getvalue().splitlines())+"]")`, nil, &want, sessions, views, chat.SkillPrefix)
			if len(want) != len(got) {
				t.Fatalf("%d policies of the script, %d of ours", len(want), len(got))
			}
			for _, w := range want {
				ours := got[w["policy"].(string)]
				for name, n := range ours {
					theirs, _ := w[name].(map[string]any)
					if theirs == nil {
						theirs = map[string]any{"of": 0.0}
					}
					if theirs["of"] != float64(n.Of) {
						t.Errorf("%s, %s: of %d, the script has %v", w["policy"], name, n.Of, theirs["of"])
					} else if n.Of > 0 && math.Abs(100*float64(n.Kept)/float64(n.Of)-theirs["percent"].(float64)) > 0.5 {
						t.Errorf("%s, %s: %d of %d, the script has %v", w["policy"], name, n.Kept, n.Of, theirs)
					}
				}
				t.Logf("%s: %v", w["policy"], ours)
			}
		})
	}
}

// detailed writes the sessions of a file, with distinct ids, and their views to files
// for the script. It returns the paths and the sums of the measures by policy and name.
func detailed(t *testing.T, path string, cut float64) (sessions, views string, sums map[string]map[string]retention.Count) {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sessions, views = filepath.Join(t.TempDir(), "sessions.jsonl"), filepath.Join(t.TempDir(), "views.jsonl")
	var copied, viewed bytes.Buffer
	type measured struct {
		policy string
		needs  []retention.ID
		held   []byte
	}
	var rows []measured
	corpus := retention.NewCorpus()
	sums = map[string]map[string]retention.Count{}
	add := func(policy, name string, kept, of int) {
		if sums[policy] == nil {
			sums[policy] = map[string]retention.Count{}
		}
		n := sums[policy][name]
		sums[policy][name] = retention.Count{Kept: n.Kept + kept, Of: n.Of + of}
	}
	n := 0
	for line := range bytes.Lines(all) {
		id := fmt.Sprint(n)
		n++
		var raw map[string]any
		s, err := chat.NewReader(bytes.NewReader(line)).Next()
		if err = errors.Join(err, json.Unmarshal(line, &raw)); err != nil {
			t.Fatal(err)
		}
		raw["session_id"] = id
		if err := json.NewEncoder(&copied).Encode(raw); err != nil {
			t.Fatal(err)
		}
		corpus.Add(s.Messages)
		c := retention.NewCase(s.Messages, cut, retention.FactsOf(&s)...)
		if c == nil {
			continue
		}
		for policy, kept := range viewsOf(c) {
			d := c.Detail(kept)
			needs, _ := c.IDs()
			rows = append(rows, measured{policy, needs, d.Held})
			add(policy, "loose", d.Loose, len(c.Needs))
			add(policy, "keyed", d.Keyed, len(c.Needs))
			for name, m := range measureNames {
				add(policy, name, d.Counts[m].Kept, d.Counts[m].Of)
			}
			texts := make([]string, len(kept))
			for i := range kept {
				texts[i] = retention.Text(&kept[i])
			}
			view := map[string]any{"session_id": id, "index": len(c.Pre), "policy": policy, "text": strings.Join(texts, "\n")}
			if err := json.NewEncoder(&viewed).Encode(view); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range rows {
		n := corpus.Rare(m.needs, m.held)
		add(m.policy, "rare", n.Kept, n.Of)
	}
	for path, b := range map[string]*bytes.Buffer{sessions: &copied, views: &viewed} {
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return sessions, views, sums
}

// viewsOf returns the messages that three policies keep of a case in a tenth of its tokens.
func viewsOf(c *retention.Case) map[string][]chat.Message {
	out := map[string][]chat.Message{}
	for _, b := range retention.Baselines() {
		if b.Name == "drop_oldest" || b.Name == "stub200" {
			out[b.Name] = b.Keep(c.Pre, 0.1*c.Tokens, retention.Sizer{})
		}
	}
	d := extract.New(extract.Options{})
	for i := range c.Pre {
		d.Add(&c.Pre[i])
	}
	out["extractive"] = []chat.Message{{Role: chat.RoleAssistant, Content: chat.TextContent(d.Text(int(0.1 * c.Tokens)))}}
	return out
}

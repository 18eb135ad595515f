package strategies

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// long is a transcript of n messages as an agent leaves them: turns of a user
// message, two tool calls with two results each and an answer.
func long(n int) (*Transcript, Loader) {
	s := newModel()
	s.append(sys("be good"))
	for i := 0; len(s.metas) < n; i++ {
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		s.append(user("please do"), thinks("hm"), calls(a, b), result(a, "yes"), result(b, "no"),
			calls("c"+a), result("c"+a, strings.Repeat("data ", 20)), says("done"))
	}
	return s.transcript(false), s.load
}

func benchmarked(tb testing.TB, n int) map[string]Pipeline {
	tokens := func(t *Transcript) chat.Tokens { _, x := t.Included(); return x }
	t, _ := long(n)
	half := int(tokens(t) / 2)
	one := func(name string, p Params) Pipeline { return Pipeline{Steps: []Strategy{mustNew(tb, name, p)}} }
	return map[string]Pipeline{
		"truncation":          one("truncation", Params{"max_n": half, "compact_to": half, "metric": "tokens"}),
		"sliding_window":      one("sliding_window", Params{"keep_last_groups": 20}),
		"selective_tool_call": one("selective_tool_call", nil),
		"tool_result":         one("tool_result", nil),
		"prune_tool_results":  one("prune_tool_results", nil),
		"token_budget": one("token_budget", Params{"token_budget": half, "strategies": []any{
			Params{"strategy": "selective_tool_call", "params": Params{"keep_last_tool_call_groups": n / 8}},
		}}),
		"handoff": {Steps: []Strategy{noted(tb, Params{"tail_token_budget": 2000})}},
		"repair":  {},
	}
}

func BenchmarkStrategies(b *testing.B) {
	for _, name := range []string{"truncation", "sliding_window", "selective_tool_call", "tool_result", "prune_tool_results", "handoff", "token_budget", "repair"} {
		for _, n := range []int{200, 10000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				t, load := long(n)
				p := benchmarked(b, n)[name]
				b.ReportAllocs()
				for b.Loop() {
					fresh := &Transcript{Entries: t.Entries, Counter: t.Counter}
					if _, err := p.Run(b.Context(), fresh, load); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func TestRunsInLinearTime(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	measure := func(name string, n int) time.Duration {
		tr, load := long(n)
		p := benchmarked(t, n)[name]
		best := time.Duration(1 << 62)
		for range 3 {
			fresh := &Transcript{Entries: tr.Entries, Counter: tr.Counter}
			start := time.Now()
			if _, err := p.Run(t.Context(), fresh, load); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	for name := range benchmarked(t, 100) {
		var small, large time.Duration
		linear := false
		for range 4 { // other work on the machine must not fail the test
			small, large = measure(name, 10_000), measure(name, 100_000)
			// Ten times the messages; quadratic would be a hundred times the time.
			if linear = large < 40*small; linear {
				break
			}
		}
		if !linear {
			t.Errorf("%s: %v for 10,000 messages, %v for 100,000", name, small, large)
		}
	}
}

func TestRealSessions(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("DATA_DIR")
	if dir == "" {
		dir = shared("data")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skipf("no sessions in %q: set DATA_DIR", dir)
	}
	sessions, mended := 0, 0
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for reader := chat.NewReader(f); ; {
			read, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			ms := read.Messages
			sessions++
			s := newModel()
			s.append(ms[:len(ms)/2]...)
			for i, name := range []string{"repair", "tool_result", "truncation", "token_budget", "sliding_window", "selective_tool_call", "handoff"} {
				if i == 2 {
					s.append(ms[len(ms)/2:]...)
				}
				r := s.run(t, benchmarked(t, max(len(s.view()), 16))[name], i%2 == 0)
				if err := s.invariants(true); err != nil {
					t.Fatalf("%s, session %d, %s: %v", filepath.Base(file), sessions, name, err)
				}
				if len(r.Repairs) > 0 {
					mended++
				}
			}
		}
	}
	t.Logf("%d sessions, %d runs with repairs", sessions, mended)
}

// shared is a folder of what stands beside the module.
func shared(folder string) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(filepath.Dir(dir), "shared", folder)
		}
	}
	return ""
}

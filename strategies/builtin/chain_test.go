package builtin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// long returns a transcript of n messages as an agent leaves them: turns of a user
// message, two tool calls with two results each and an answer.
func long(n int) (*plan.Transcript, plan.Loader) {
	s := sessiontest.New()
	s.Add(sessiontest.Sys("be good"))
	for i := 0; len(s.Metas) < n; i++ {
		a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
		s.Add(sessiontest.User("please do"), sessiontest.Thinks("hm"), sessiontest.Calls(a, b), sessiontest.Result(a, "yes"), sessiontest.Result(b, "no"),
			sessiontest.Calls("c"+a), sessiontest.Result("c"+a, strings.Repeat("data ", 20)), sessiontest.Says("done"))
	}
	return s.Transcript(false), s.Load
}

func benchmarked(tb testing.TB, n int) map[string]pipeline.Pipeline {
	tokens := func(t *plan.Transcript) chat.Tokens { _, x := t.Included(); return x }
	t, _ := long(n)
	half := int(tokens(t) / 2)
	registry := Registry()
	registry.Summarizer = answers("what was said")
	one := func(name string, p plan.Params) pipeline.Pipeline {
		s, err := registry.New(name, p)
		if err != nil {
			tb.Fatal(err)
		}
		return pipeline.Pipeline{Steps: []plan.Strategy{s}}
	}
	return map[string]pipeline.Pipeline{
		"truncation":          one("truncation", plan.Params{"max_n": half, "compact_to": half, "metric": "tokens"}),
		"sliding_window":      one("sliding_window", plan.Params{"keep_last_groups": 20}),
		"selective_tool_call": one("selective_tool_call", nil),
		"tool_result":         one("tool_result", nil),
		"prune_tool_results":  one("prune_tool_results", nil),
		"token_budget": one("token_budget", plan.Params{"token_budget": half, "strategies": []any{
			plan.Params{"strategy": "selective_tool_call", "params": plan.Params{"keep_last_tool_call_groups": n / 8}},
		}}),
		"summarization":  one("summarization", nil),
		"context_window": one("context_window", plan.Params{"max_context_window_tokens": half + 10, "max_output_tokens": 10}),
		"repair":         {},
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
	sessions, repaired := 0, 0
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
			s := sessiontest.New()
			s.Add(ms[:len(ms)/2]...)
			for i, name := range []string{"repair", "tool_result", "truncation", "token_budget", "sliding_window", "context_window", "summarization", "selective_tool_call"} {
				if i == 2 {
					s.Add(ms[len(ms)/2:]...)
				}
				r := s.Run(t, benchmarked(t, max(len(s.View()), 16))[name], i%2 == 0)
				if err := s.Invariants(true); err != nil {
					t.Fatalf("%s, session %d, %s: %v", filepath.Base(file), sessions, name, err)
				}
				if len(r.Repairs) > 0 {
					repaired++
				}
			}
		}
	}
	t.Logf("%d sessions, %d runs with repairs", sessions, repaired)
}

// shared returns a folder beside the module.
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

package builtin_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// compact runs one strategy behind the guard on a fresh transcript of the log.
func compact(tb testing.TB, l *strategiestest.Log, s plan.Strategy) pipeline.Result {
	tb.Helper()
	r, err := pipeline.Pipeline{Steps: []plan.Strategy{s}}.Run(tb.Context(), l.Transcript(), l.Load)
	if err != nil {
		tb.Fatalf("%s: %v", s.Name(), err)
	}
	return r
}

func strategy(tb testing.TB, l *strategiestest.Log, name string) plan.Strategy {
	tb.Helper()
	s, err := l.Default(strategiestest.Registry(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// BenchmarkStrategiesGrowth reports how the time of each strategy grows from 1,000 to
// 10,000 messages, and the same of copying and grouping them, which is linear: where
// that grows faster, the machine's caches are full.
func BenchmarkStrategiesGrowth(b *testing.B) {
	const small, large = 1_000, 10_000
	logs := map[int]*strategiestest.Log{small: strategiestest.Agent(small), large: strategiestest.Agent(large)}
	// The collector would run in each large measurement and in few of the small ones.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	b.Run("copying and grouping", func(b *testing.B) {
		growth.Report(b, small, large/small, func(n int) func() {
			return func() {
				t := logs[n].Transcript()
				t.Entries = slices.Clone(t.Entries)
				t.Groups()
			}
		})
	})
	for _, name := range builtin.Registry().Names() {
		b.Run(name, func(b *testing.B) {
			growth.Report(b, small, large/small, func(n int) func() {
				s := strategy(b, logs[n], name)
				return func() { compact(b, logs[n], s) }
			})
		})
	}
}

// Sessions of the data through every strategy with its default parameters, all of them with
// LONG_TESTS=1: the view is valid, and the last user message and the system prompts are in it.
func TestStrategiesOnRealSessions(t *testing.T) {
	t.Parallel()
	logs := realSessions(t)
	sample := 8
	if os.Getenv("LONG_TESTS") != "" {
		sample = 1
	}
	for n, name := range builtin.Registry().Names() {
		for i := n % sample; i < len(logs); i += sample { // others for each strategy
			l := logs[i]
			r := compact(t, l, strategy(t, l, name))
			if faults := chat.Check(r.View); len(faults) > 0 {
				t.Errorf("%s, session %d: %v", name, i, faults)
			}
			if lost := missing(l.Transcript().Entries, r.View); lost != "" {
				t.Errorf("%s, session %d: %s", name, i, lost)
			}
		}
	}
}

func realSessions(t *testing.T) []*strategiestest.Log {
	t.Helper()
	dir := os.Getenv("DATA_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skipf("no sessions in %q: set DATA_DIR", dir)
	}
	var out []*strategiestest.Log
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for reader := chat.NewReader(f); ; {
			s, err := reader.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			out = append(out, strategiestest.Of(s.Messages))
		}
		_ = f.Close()
	}
	return out
}

// missing describes a message that must stay and that a view lacks: a system message or the
// last user message. It returns "" if the view has them all.
func missing(log []plan.Entry, view []chat.Meta) string {
	in := make(map[chat.Seq]bool, len(view))
	for _, m := range view {
		in[m.Seq] = true
	}
	user := chat.Seq(0)
	for i := range log {
		switch m := &log[i]; {
		case m.Role == chat.RoleUser:
			user = m.Seq
		case m.Role == chat.RoleSystem && !in[m.Seq]:
			return fmt.Sprintf("system message %d is missing", m.Seq)
		}
	}
	if user > 0 && !in[user] {
		return fmt.Sprintf("the last user message %d is missing", user)
	}
	return ""
}

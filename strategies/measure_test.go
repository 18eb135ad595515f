package strategies_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/strategiestest"
)

// compact runs one strategy behind the guard on a fresh transcript of the log.
func compact(tb testing.TB, l *strategiestest.Log, s strategies.Strategy) strategies.Result {
	tb.Helper()
	r, err := strategies.Pipeline{Steps: []strategies.Strategy{s}}.Run(tb.Context(), l.Transcript(), l.Load)
	if err != nil {
		tb.Fatalf("%s: %v", s.Name(), err)
	}
	return r
}

func strategy(tb testing.TB, l *strategiestest.Log, name string) strategies.Strategy {
	tb.Helper()
	s, err := l.Default(strategiestest.Registry(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// BenchmarkStrategies measures each strategy behind the guard, on messages of 200
// characters with stored counts; those that read content also report MB/s of it.
func BenchmarkStrategies(b *testing.B) {
	for _, name := range strategies.Builtin().Names() {
		for _, n := range strategiestest.Sizes {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				l := strategiestest.Agent(n)
				s := strategy(b, l, name)
				compact(b, l, s)
				b.SetBytes(l.Loaded())
				b.ReportAllocs()
				for b.Loop() {
					compact(b, l, s)
				}
			})
		}
	}
}

// Over 1,000, 10,000 and 100,000 messages the time grows with their number to the power
// of 1.2 at most. Where copying and grouping them, measured beside each strategy, grows
// faster than by 1, that is the machine's caches and does not count.
func TestStrategiesGrowLinearly(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	const most = 1.2
	logs := map[int]*strategiestest.Log{}
	for _, n := range strategiestest.Sizes {
		logs[n] = strategiestest.Agent(n)
	}
	smallest := strategiestest.Sizes[0]
	// The collector would run in each large measurement and in few of the small ones.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, name := range strategies.Builtin().Names() {
		best, linear := map[int]time.Duration{}, map[int]time.Duration{}
		slope := 0.0
		for range 6 { // other work on the machine must not fail the test
			for n, l := range logs {
				s := strategy(t, l, name)
				runtime.GC()
				for range 1 + 20*smallest/n { // what is over fast is also disturbed fast
					fastest(best, n, func() { compact(t, l, s) })
					fastest(linear, n, func() { copied(l) })
				}
			}
			// What copying grows with beyond 1 is the machine's: its caches are full.
			if slope = slopeOf(best) - max(0, slopeOf(linear)-1); slope <= most {
				break
			}
		}
		t.Logf("%-24s slope %.2f", name, slope)
		if slope > most {
			t.Errorf("%s grows with a slope of %.2f: %v; copying and grouping takes %v", name, slope, best, linear)
		}
	}
}

// slopeOf is the exponent with which times grow over sizes, by least squares.
func slopeOf(times map[int]time.Duration) float64 {
	var n, x, y, xx, xy float64
	for size, took := range times {
		a, b := math.Log(float64(size)), math.Log(float64(took))
		n, x, y, xx, xy = n+1, x+a, y+b, xx+a*a, xy+a*b
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

func fastest(times map[int]time.Duration, n int, f func()) {
	took := timed(f)
	if best, known := times[n]; !known || took < best {
		times[n] = took
	}
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// copied copies the metadata and groups it, which is linear.
func copied(l *strategiestest.Log) {
	t := l.Transcript()
	t.Entries = slices.Clone(t.Entries)
	t.Groups()
}

// Every session of the data through every strategy with its default parameters:
// the view is valid, and the words of the last user message and of the system
// prompts are in it.
func TestStrategiesOnRealSessions(t *testing.T) {
	t.Parallel()
	logs := realSessions(t)
	for _, name := range strategies.Builtin().Names() {
		var took time.Duration
		changed := 0
		for i, l := range logs {
			s := strategy(t, l, name)
			start := time.Now()
			r := compact(t, l, s)
			took += time.Since(start)
			if faults := chat.Check(r.View); len(faults) > 0 {
				t.Errorf("%s, session %d: %v", name, i, faults)
			}
			if lost := l.Lost(r.View); lost != "" {
				t.Errorf("%s, session %d: %s", name, i, lost)
			}
			if !r.Plan.Empty() {
				changed++
			}
		}
		t.Logf("%-24s %3d of %d sessions changed, %v", name, changed, len(logs), took.Round(time.Millisecond))
	}
}

func realSessions(t *testing.T) []*strategiestest.Log {
	t.Helper()
	dir := os.Getenv("DATA_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
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

// Package growth measures in benchmarks how the running time of a function grows with the
// size of its input. It only reports: results depend on the machine and its load.
package growth

import (
	"math"
	"runtime"
	"testing"
	"time"
)

// Each size is measured at least leastRounds times in an iteration of a benchmark, and
// until the large one took leastTime in all. The fastest run counts, as other load can
// only slow a run down.
const (
	leastRounds = 2
	leastTime   = 50 * time.Millisecond
)

// Report measures the work that prepare returns for an input of size small and for one
// of size small*factor, and reports the metric x-linear: how many times as long the large
// one took as factor small ones. It is 1 for work that grows linearly and factor for work
// that grows quadratically. The time to prepare an input does not count.
func Report(b *testing.B, small, factor int, prepare func(n int) func()) {
	b.Helper()
	few, many := prepare(small), prepare(small*factor)
	low, high := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for b.Loop() {
		var spent time.Duration
		for n := 0; n < leastRounds || spent < leastTime; n++ {
			runtime.GC() // of earlier garbage
			// Both take about as long, so other load affects them alike.
			low = min(low, timed(func() {
				for range factor {
					few()
				}
			}))
			took := timed(many)
			high, spent = min(high, took), spent+took
		}
	}
	b.ReportMetric(float64(high)/float64(max(low, 1)), "x-linear")
	b.ReportMetric(0, "ns/op") // of both sizes together, which is meaningless
}

func timed(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

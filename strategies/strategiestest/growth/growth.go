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
// only slow a run down. One round is enough for work that takes longTime.
const (
	leastRounds = 4
	leastTime   = 20 * time.Millisecond
	longTime    = 100 * time.Millisecond
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
		for n := 0; n < leastRounds && spent < longTime || spent < leastTime; n++ {
			runtime.GC() // of earlier garbage
			low = min(low, repeated(few, factor))
			took := timed(many)
			high, spent = min(high, took), spent+took
		}
	}
	b.ReportMetric(float64(high)/float64(max(low, 1)), "x-linear")
	b.ReportMetric(0, "ns/op") // of the sum of both sizes, which is meaningless
}

// repeated returns how long n runs take. As long as one of the large size, so other load affects
// both alike; but where that is long, it measures a part of them.
func repeated(do func(), n int) time.Duration {
	begin := time.Now()
	for done := 1; ; done++ {
		do()
		if took := time.Since(begin); done == n || took > longTime {
			return took * time.Duration(n) / time.Duration(done)
		}
	}
}

func timed(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

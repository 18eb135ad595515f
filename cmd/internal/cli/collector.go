package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// collectorGrowth is the number of bytes by which a heap grows at least before the next
	// collection, within these shares: between two of a worker are a hundred small sessions.
	collectorGrowth = 16 << 20
	// mostPercent is for small heaps: a collection may come before adjustCollector knows of the last.
	mostPercent = 200
	// leastPercent is for large ones, which the sessions that are loaded dominate: 100 MB of
	// session within 250 MB.
	leastPercent = 33
)

var collector sync.Once

// setCollector has the garbage collector of a worker run seldom while its heap is small, and
// early while it is large. GOGC takes precedence.
func setCollector(environ []string) {
	if _, given := variables(environ)("GOGC"); !given {
		collector.Do(adjustCollector)
	}
}

// adjustCollector sets the growth until the next collection, after which it is called again:
// its own allocations are garbage by then.
func adjustCollector() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(growthPercent(int(live[0].Value.Uint64()))) //nolint:gosec // bytes of memory
	runtime.AddCleanup(new([16]byte), func(struct{}) { adjustCollector() }, struct{}{})
}

// growthPercent returns the share by which a heap grows of which so many bytes are in use.
func growthPercent(live int) int {
	return min(mostPercent, max(leastPercent, collectorGrowth*100/max(1, live)))
}

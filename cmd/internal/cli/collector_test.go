package cli

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

func TestTheCollectorFollowsTheHeap(t *testing.T) {
	t.Parallel()
	for live, want := range map[int]int{0: mostPercent, 4 << 20: mostPercent, 8 << 20: 200, 16 << 20: 100, 32 << 20: 50, 500 << 20: leastPercent} {
		if got := growthPercent(live); got != want {
			t.Errorf("%d bytes grow by %d %%, want %d", live, got, want)
		}
	}
	collector.Do(adjustCollector)
	large := make([]byte, 6*collectorGrowth)
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for range 1000 {
		runtime.GC()
		runtime.Gosched()
		if metrics.Read(percent); percent[0].Value.Uint64() == leastPercent {
			break
		}
	}
	if got := percent[0].Value.Uint64(); got != leastPercent {
		t.Errorf("a large heap grows by %d %%", got)
	}
	runtime.KeepAlive(large)
}

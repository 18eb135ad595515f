package cli

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

func TestTheCollectorFollowsTheHeap(t *testing.T) {
	t.Parallel()
	for live, want := range map[int]int{0: collectorGrowth * 100, 8 << 20: 400, 32 << 20: 100, 64 << 20: 50, 500 << 20: collectorPercent} {
		if got := growthPercent(live); got != want {
			t.Errorf("%d bytes grow by %d %%, want %d", live, got, want)
		}
	}
	collector.Do(adjustCollector)
	large := make([]byte, 3*collectorGrowth)
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for range 1000 {
		runtime.GC()
		runtime.Gosched()
		if metrics.Read(percent); percent[0].Value.Uint64() == collectorPercent {
			break
		}
	}
	if got := percent[0].Value.Uint64(); got != collectorPercent {
		t.Errorf("a large heap grows by %d %%", got)
	}
	runtime.KeepAlive(large)
}

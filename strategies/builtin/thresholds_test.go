package builtin

import (
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestThresholds(t *testing.T) {
	t.Parallel()
	for window, want := range map[chat.Tokens]Thresholds{
		200_000:   {100_000, 20_000, 10_000},
		64_000:    {54_400, 10_880, 3_200},
		128_000:   {64_000, 12_800, 6_400},
		1_000_000: {500_000, 100_000, 12_000},
		8_000:     {6_800, 1_360, 400},
	} {
		if got := ThresholdsWithin(window, 0.5, 0.2); got != want {
			t.Errorf("%d: %v, want %v", window, got, want)
		}
	}
	if got := ThresholdsWithin(200_000, 0.5, 0.95).Tail; got != 80_000 {
		t.Errorf("a ratio above 0.8 gives %d", got)
	}
}

package chat

import "testing"

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234: "-1,234", -123: "-123", 1_234_567: "1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

package term

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// integer permits all signed integer types.
type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64
}

// Count returns n with thousands separators: "12,345".
func Count[N integer](n N) string {
	return chat.Thousands(int64(n))
}

// Tokens returns n to three digits: "950", "12.3k", "1.2M".
func Tokens[N integer](n N) string {
	return scaled(float64(n), "", "k", "M", "G")
}

// Bytes returns n in decimal units: "512 B", "1.2 MB".
func Bytes[N integer](n N) string {
	return scaled(float64(n), " B", " kB", " MB", " GB", " TB")
}

// scaled returns n in the largest unit not above it, with one decimal below 100.
func scaled(n float64, units ...string) string {
	abs, i := math.Abs(n), 0
	for i < len(units)-1 && math.Round(abs) >= 1000 {
		abs, n, i = abs/1000, n/1000, i+1
	}
	if i == 0 || math.Abs(n) >= 99.95 {
		return strconv.FormatFloat(n, 'f', 0, 64) + units[i]
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + units[i]
}

// Duration returns d in at most two units: "340ms", "1.2s", "2m 5s", "3h 10m", "2d 4h", "2d".
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d == 0:
		return "0s"
	case d < time.Millisecond:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	case d < 59950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	units := func(d, large, small time.Duration, names string) string {
		text := fmt.Sprintf("%d%c", d/large, names[0])
		if n := d % large / small; n > 0 {
			text += fmt.Sprintf(" %d%c", n, names[1])
		}
		return text
	}
	if d = d.Round(time.Second); d < time.Hour {
		return units(d, time.Minute, time.Second, "ms")
	}
	if d = d.Round(time.Minute); d < day {
		return units(d, time.Hour, time.Minute, "hm")
	}
	return units(d.Round(time.Hour), day, time.Hour, "dh")
}

// Percent returns part as a percentage of whole: "37 %"; "–" if whole is 0.
func Percent[N integer](part, whole N) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", int64(math.Round(100*float64(part)/float64(whole)))) // as an integer, nothing is -0
}

// Plural returns a count with its noun: "1 session", "1,200 sessions".
func Plural[N integer](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

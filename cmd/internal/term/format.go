package term

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

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

// Clean returns text on one line without control characters: line breaks and tabs become
// spaces; other control characters and bidirectional controls are escaped as in Go, such as
// \x1b, so that what only they tell apart stays so.
func Clean(text string) string {
	control := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
	breaks := func(r rune) bool { return strings.ContainsRune("\n\t\r\u2028\u2029", r) }
	if !strings.ContainsFunc(text, func(r rune) bool { return control(r) || breaks(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case breaks(r):
			b.WriteByte(' ')
		case control(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// CleanLines returns text with each of its lines cleaned.
func CleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Clean(strings.TrimRight(line, "\r"))
	}
	return strings.Join(lines, "\n")
}

// format returns the text of a value, or of that which a pointer is to.
func format(v any) string {
	switch p := reflect.ValueOf(v); v.(type) {
	case error, *time.Time, fmt.Stringer:
		if t, ok := v.(*time.Time); ok && t != nil {
			v = *t
		} else if p.Kind() == reflect.Pointer && p.IsNil() {
			return ""
		}
	default:
		if p.Kind() == reflect.Pointer && p.IsNil() {
			return ""
		}
		if p.Kind() == reflect.Pointer {
			v = p.Elem().Interface()
		}
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case time.Duration:
		return Duration(v)
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format("2006-01-02 15:04:05Z")
	case fmt.Stringer:
		return v.String()
	case error:
		return v.Error()
	}
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return Count(r.Int())
	case r.CanUint() && r.Uint() < 1<<63:
		return Count(int64(r.Uint()))
	}
	return fmt.Sprint(v)
}

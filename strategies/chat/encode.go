package chat

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// appendString appends s as a JSON string. It does not escape HTML and replaces each
// invalid UTF-8 byte with U+FFFD.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		b := s[i]
		if b >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), `\ufffd`...)
				start = i + 1
			}
			i += n
			continue
		}
		if b >= 0x20 && b != '"' && b != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// timeLayouts lists the accepted forms of created_at, each with an optional fraction of a
// second. Times without a zone are UTC.
var timeLayouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05",
	"2006-01-02T15:04:05Z0700",
	"2006-01-02 15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05Z07",
	"2006-01-02 15:04:05 Z07:00",
	"2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05 MST",
}

// ParseTime parses a created_at: one of timeLayouts, or a Unix time in seconds, milli-,
// micro- or nanoseconds, distinguished by magnitude. It reports false for all other values
// and for the zero time, which means none.
func ParseTime(raw json.RawMessage) (time.Time, bool) {
	switch rawjson.Kind(raw) {
	case '"':
		s := rawjson.Text(raw)
		for _, layout := range timeLayouts {
			if t, err := time.Parse(layout, s); err == nil {
				if name, _ := t.Zone(); layout == "2006-01-02 15:04:05 MST" && name != "UTC" && name != "GMT" {
					return time.Time{}, false // Go takes a zone it does not know for UTC
				}
				return usable(t)
			}
		}
	case '0':
		if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return usable(unixTime(n))
		}
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || math.Abs(f) >= 1e17 {
			return time.Time{}, false
		}
		if math.Abs(f) < 1e11 {
			return usable(time.UnixMicro(int64(math.Round(f * 1e6))))
		}
		return usable(unixTime(int64(f)))
	}
	return time.Time{}, false
}

func unixTime(n int64) time.Time {
	switch {
	case n > -1e11 && n < 1e11: // until the year 5138
		return time.Unix(n, 0)
	case n > -1e14 && n < 1e14:
		return time.UnixMilli(n)
	case n > -1e17 && n < 1e17:
		return time.UnixMicro(n)
	}
	return time.Unix(0, n)
}

func usable(t time.Time) (time.Time, bool) {
	t = t.UTC()
	if t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, false
	}
	return t, true
}

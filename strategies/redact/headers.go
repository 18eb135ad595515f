package redact

import (
	"encoding/base64"
	"strings"
)

// headerValue returns the start of the value of the header whose name ends at i, or -1: after a colon, or after the name's
// quote and a colon, a comma or an arrow; and the quote around the value, 0 for none.
func headerValue(s string, i int) (value int, open byte) {
	gap := headerGap.end(s[:min(len(s), i+12)], i)
	between := s[i:gap]
	if !strings.ContainsAny(between, ":,=") || !strings.Contains(between, ":") && !strings.ContainsAny(between, "\"'") {
		return -1, 0
	}
	if last := s[gap-1]; gap-i > 2 && indexByte("\"'`", last) {
		return gap, last
	}
	return gap, 0
}

var headerGap = setOf(" \t\"'`\\:,=>[]")

// credential returns the bounds of the value of an Authorization header without its scheme.
func credential(s string, i int) (start, end int) {
	start, end = i, tokenSet.end(s, i)
	if next := blank.end(s, end); end > start && next > end && tokenSet.end(s, next) > next {
		return next, tokenSet.end(s, next)
	}
	return start, end
}

var tokenSet = setOf("\x01-\x08\x0e-\x1f!#-&(-\xff")

// decoded returns the text whose base64 v is, if it is printable, or "".
func decoded(v string) string {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v, "="))
	if err != nil || !printable.has(strings.TrimRight(string(b), "\n")) {
		return ""
	}
	return string(b)
}

// cookies finds the values of Cookie and Set-Cookie headers, except attributes and values
// that are only a word.
func cookies(t *source, e *edits) {
	s, end := t.s, 0
	for at := range t.places("cookie") {
		value, open := headerValue(s, at+len("cookie"))
		if value < 0 || at < end {
			continue
		}
		for end = lineEnd(s, value, open); value < end; value++ {
			stop := value + strings.IndexByte(s[value:end]+";", ';')
			start := blank.end(s, value)
			name := cookieName.end(s[:stop], start)
			if name == start || name == stop || s[name] != '=' {
				break // not a cookie
			}
			v := strings.TrimRight(s[name+1:stop], trailing)
			if !in("cookieattribute", s[start:name]) &&
				(len(v) >= 16 || len(v) >= 6 && digit.any(v)) && !placeholder(v) {
				e.mask(s, name+1, name+1+len(v), KindCookie)
			}
			value = stop
		}
	}
}

var cookieName = setOf("0-9A-Za-z_.$!-")

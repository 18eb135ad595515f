package identifier

import (
	"strings"
)

// Links calls yield with the half-open byte range of each URL of s, from left to right. It does not allocate.
func Links(s string, yield func(start, end int)) {
	for at := 0; ; {
		i := strings.Index(s[at:], "://")
		if i < 0 {
			return
		}
		i += at
		start := i
		for start > at && schemeChars.Has(s[start-1]) {
			start--
		}
		end := i + len("://")
		for end < len(s) && !endsLink(s[end]) {
			end++
		}
		at = end
		for end > i && strings.IndexByte(".,;:!?'*_)]}\\", s[end-1]) >= 0 {
			end--
		}
		if start < i && end > i+len("://") {
			yield(start, end)
		}
	}
}

// endsLink reports whether a byte ends a URL. Some of these characters are valid in URLs
// but rarely part of one.
func endsLink(c byte) bool {
	return c <= ' ' || c == 0x7f || strings.IndexByte("\"'`<>()[]{}|\\^,;", c) >= 0
}

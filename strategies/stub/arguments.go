package stub

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Truncated ends every truncated string.
const Truncated = "...[truncated]"

// Arguments truncates the strings in the arguments of a tool call if these have more than
// limit characters in all: each string value, at any depth, of more than leaf characters
// becomes its first leaf characters and Truncated. All other bytes are kept. Valid JSON
// stays valid, and invalid JSON is returned unchanged.
//
// Arguments is idempotent. A string that is only slightly too long may grow.
func Arguments(raw string, limit, leaf int) (shrunk string, changed bool) {
	leaf = max(leaf, 0)
	if len(raw) <= limit || utf8.RuneCountInString(raw) <= limit || !json.Valid([]byte(raw)) {
		return raw, false
	}
	var b strings.Builder
	done := 0 // raw[:done] is in b
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		end := stringEnd(raw, i)
		name := skipSpace(raw, end)
		if name == len(raw) || raw[name] != ':' {
			if at := i + 1 + cut(raw[i+1:end-1], leaf); at < end-1 && raw[at:end-1] != Truncated {
				b.WriteString(raw[done:at])
				b.WriteString(Truncated)
				done = end - 1
			}
		}
		i = end
	}
	if done == 0 {
		return raw, false
	}
	b.WriteString(raw[done:])
	return b.String(), true
}

// cut returns the number of bytes that the first n characters take in the inside of a
// JSON string, at most all of it.
func cut(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	i := 0
	for ; n > 0 && i < len(s); n-- {
		if s[i] != '\\' {
			_, size := utf8.DecodeRuneInString(s[i:])
			i += size
			continue
		}
		if s[i+1] != 'u' {
			i += 2
			continue
		}
		// A surrogate pair of two escapes is one character.
		high := strings.IndexByte("dD", s[i+2]) >= 0 && strings.IndexByte("89abAB", s[i+3]) >= 0
		i += 6
		if high && len(s)-i >= 6 && s[i:i+2] == `\u` &&
			strings.IndexByte("dD", s[i+2]) >= 0 && strings.IndexByte("cdefCDEF", s[i+3]) >= 0 {
			i += 6
		}
	}
	return i
}

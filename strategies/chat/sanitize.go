package chat

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// replacement is written in place of characters that Postgres cannot store.
const replacement = "\uFFFD"

// Sanitize replaces, in place, characters that Postgres cannot store in text or json: NUL
// and invalid UTF-8 bytes become U+FFFD, one for one, in every string and raw value of the
// message; in raw values so do the escape \u0000 and escapes of lone surrogates. It returns
// the number of repaired places. A place stored twice (a part's Text and Raw) counts once.
//
// Slices and maps that change are copied first, so that copies of *m are unaffected.
// Characters that encoding/json replaced while decoding are not counted; use SanitizeJSON
// before decoding for that.
func Sanitize(m *Message) (repairs int) {
	n := 0
	fix := func(s *string) {
		var k int
		*s, k = sanitizeString(*s)
		n += k
	}
	fix(&m.ID)
	fix((*string)(&m.Role))
	fix(&m.Name)
	fix(&m.Content.Text)
	fix(&m.ToolCallID)
	fix(&m.Reasoning)
	fix(&m.ReasoningKey)
	fix(&m.SourceID)
	if slices.ContainsFunc(m.Content.Parts, Part.dirty) {
		m.Content.Parts = slices.Clone(m.Content.Parts)
		for i := range m.Content.Parts {
			n += m.Content.Parts[i].sanitize()
		}
	}
	if slices.ContainsFunc(m.ToolCalls, ToolCall.dirty) {
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for i := range m.ToolCalls {
			n += m.ToolCalls[i].sanitize()
		}
	}
	return n + sanitizeExtra(&m.Extra)
}

func (p Part) dirty() bool { return p.sanitize() > 0 }

// sanitize returns the count of Raw if it has repairs, since the fields were read from it.
func (p *Part) sanitize() int {
	var k, l, n int
	p.Type, k = sanitizeString(p.Type)
	p.Text, l = sanitizeString(p.Text)
	if p.Raw, n = SanitizeJSON(p.Raw); n > 0 {
		return n
	}
	return k + l
}

func (c ToolCall) dirty() bool { return c.sanitize() > 0 }

func (c *ToolCall) sanitize() int {
	n := 0
	for _, s := range []*string{&c.ID, &c.Type, &c.Name, &c.Arguments} {
		var k int
		*s, k = sanitizeString(*s)
		n += k
	}
	raw, k := SanitizeJSON(c.Raw)
	c.Raw = raw
	if k > 0 {
		return k
	}
	return n
}

func sanitizeExtra(extra *map[string]json.RawMessage) int {
	n := 0
	clean := *extra
	for _, key := range slices.Sorted(maps.Keys(*extra)) {
		newKey, k := sanitizeString(key)
		raw, l := SanitizeJSON((*extra)[key])
		if k+l == 0 {
			continue
		}
		if n == 0 {
			clean = maps.Clone(*extra)
		}
		n += k + l
		if k > 0 {
			delete(clean, key)
			for _, taken := clean[newKey]; taken; _, taken = clean[newKey] {
				newKey += replacement
			}
		}
		clean[newKey] = raw
	}
	*extra = clean
	return n
}

// sanitizeString returns s itself if there is nothing to repair.
func sanitizeString(s string) (string, int) {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s, 0
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	n := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == 0 || r == utf8.RuneError && size == 1 {
			b.WriteString(replacement)
			n++
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String(), n
}

// SanitizeJSON repairs JSON text so that Postgres and strict decoders accept its strings:
// NUL bytes, invalid UTF-8 bytes, the escape \u0000 and escapes of lone surrogates each
// become U+FFFD. It never writes to raw, and returns raw itself if there is nothing to
// repair.
//
// It makes one linear pass. raw need not be valid JSON; if it is, so is the result.
func SanitizeJSON(raw []byte) (clean []byte, repairs int) {
	if bytes.IndexByte(raw, 0) < 0 && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) {
		return raw, 0
	}
	var out []byte
	from := 0 // raw[from:i] is clean and not yet copied
	replace := func(i, size int, by string) {
		if out == nil {
			out = make([]byte, 0, len(raw)+16)
		}
		out = append(append(out, raw[from:i]...), by...)
		from = i + size
		repairs++
	}
	for i := 0; i < len(raw); {
		b := raw[i]
		switch {
		case b == '\\':
			size, ok := escape(raw[i:])
			if !ok {
				replace(i, size, `\ufffd`)
			}
			i += size
		case b == 0:
			replace(i, 1, replacement)
			i++
		case b < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && size == 1 {
				replace(i, 1, replacement)
			}
			i += size
		}
	}
	if repairs == 0 {
		return raw, 0
	}
	return append(out, raw[from:]...), repairs
}

// escape returns the length of the escape at the start of s, counting a surrogate pair as
// one, and reports whether its character can be stored.
func escape(s []byte) (size int, ok bool) {
	if len(s) < 2 || s[1] < 0x20 || s[1] >= utf8.RuneSelf {
		return 1, true
	}
	r, isHex := hex4(s)
	switch {
	case !isHex:
		return 2, true
	case r == 0 || r >= 0xDC00 && r <= 0xDFFF:
		return 6, false
	case r >= 0xD800 && r <= 0xDBFF:
		low, paired := hex4(s[6:])
		if paired && low >= 0xDC00 && low <= 0xDFFF {
			return 12, true
		}
		return 6, false
	}
	return 6, true
}

// hex4 parses a \u escape with four hexadecimal digits at the start of s.
func hex4(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[2:6]), 16, 32)
	return rune(n), err == nil
}

package redact

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text that the passes read in place of another one: without the data of images and the like, or without
// one level of escapes. It maps its positions to those of the other text.
type view struct {
	s    string
	of   *view // nil for the text itself
	cuts []cut // in order
}

// cut says that the bytes of a view from at on come from those of the other text from origin on.
type cut struct{ at, origin int }

// between separates the parts of a view, so that no rule reads over the end of one.
const between = "\n.\n"

// origin returns the position in the text itself of the byte of a view at i. The bytes of a view that an escape
// stands for are all at its start or at its end, so that a span of the view is never a part of an escape.
func (v *view) origin(i int) int {
	for ; v.of != nil; v = v.of {
		n, ok := slices.BinarySearchFunc(v.cuts, i, func(c cut, i int) int { return c.at - i })
		if !ok {
			n--
		}
		i += v.cuts[n].origin - v.cuts[n].at
	}
	return i
}

// viewBuilder puts a view together from parts of another one.
type viewBuilder struct {
	view
	b []byte
}

// part begins a part of the view with the bytes from origin on.
func (w *viewBuilder) part(origin int) {
	if len(w.b) > 0 {
		w.b = append(w.b, between...)
	}
	w.cut(origin)
}

func (w *viewBuilder) cut(origin int) { w.cuts = append(w.cuts, cut{len(w.b), origin}) }

func (w *viewBuilder) done() *view {
	w.s = string(w.b)
	return &w.view
}

// withoutMedia returns the view of s without data: URLs of media.
func withoutMedia(s string) *view {
	v := &view{s: s}
	if !strings.Contains(s, ";base64,") {
		return v
	}
	w, at := viewBuilder{view: view{of: v}}, 0
	for _, head := range mediaHead.FindAllStringIndex(s, -1) {
		w.part(at)
		w.b = append(w.b, s[at:max(at, head[0])]...)
		at = base64Set.end(s, head[1])
	}
	if at == 0 {
		return v
	}
	w.part(at)
	w.b = append(w.b, s[at:]...)
	return w.done()
}

var mediaHead = regexp.MustCompile(`data:(?:image|audio|video|font|application/pdf)[^\s,]{0,96};base64,`)

// unescaped returns the view of the parts of v with escapes of JSON, without one level of them, or nil if there is none. A
// part is between quotes that have no backslash, on one line. With the source of v it leaves out parts without a word, a
// digit, an address and an option: the passes find nothing more in them.
func (v *view) unescaped(t *source) *view {
	s, w := v.s, viewBuilder{view: view{of: v}}
	var words []wordAt
	if t != nil {
		words = t.found()
	}
	for at := 0; ; {
		start := strings.IndexByte(s[at:], '\\') + at
		if start < at {
			break
		}
		end := start
		for start > at && s[start-1] != '"' && s[start-1] != '\n' {
			start--
		}
		for end < len(s) && s[end] != '"' && s[end] != '\n' {
			if s[end] == '\\' {
				end++
			}
			end++
		}
		at = min(len(s), end)
		for len(words) > 0 && words[0].end <= start {
			words = words[1:]
		}
		part := s[start:at]
		if t == nil ||
			len(words) > 0 && words[0].start < at || secretSigns.any(part) || strings.Contains(part, " -") {
			w.decode(part, start)
		}
	}
	if len(w.b) == 0 {
		return nil
	}
	return w.done()
}

// decode adds the part of a text that begins at start, unless it has no escape.
func (w *viewBuilder) decode(part string, start int) {
	if w.b == nil {
		w.b, w.cuts = make([]byte, 0, len(w.of.s)), make([]cut, 0, len(w.of.s)/32)
	}
	size, cuts, found := len(w.b), len(w.cuts), false
	w.part(start)
	done := 0
	for at := 0; ; {
		n := strings.IndexByte(part[at:], '\\')
		if n < 0 {
			break
		}
		at += n
		r, end := escapeAt(part, at)
		if end == at {
			at = min(len(part), at+2) // after an escaped backslash
			continue
		}
		w.b = append(w.b, part[done:at]...)
		was := len(w.b)
		w.b = utf8.AppendRune(w.b, r)
		for i := was + 1; i <= len(w.b); i++ { // each of its bytes is at the start of the escape or at its end
			w.cuts = append(w.cuts, cut{i, start + end})
		}
		done, at, found = end, end, true
	}
	if w.b = append(w.b, part[done:]...); !found {
		w.b, w.cuts = w.b[:size], w.cuts[:cuts]
	}
}

var secretSigns = setOf("0-9@")

const (
	escapes = `"\/bfnrt`
	escaped = "\"\\/\b\f\n\r\t"
)

// escapeAt returns the character that the escape of JSON at i stands for and its end, or i if there is none.
func escapeAt(s string, i int) (r rune, end int) {
	if i+1 >= len(s) || s[i] != '\\' {
		return 0, i
	}
	if n := strings.IndexByte(escapes, s[i+1]); n >= 0 {
		return rune(escaped[n]), i + 2
	}
	r, ok := hexEscape(s, i)
	if !ok {
		return 0, i
	}
	if low, ok := hexEscape(s, i+len(`\u0000`)); ok && utf16.IsSurrogate(r) {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, i + 2*len(`\u0000`)
		}
	}
	return r, i + len(`\u0000`)
}

// hexEscape returns the character of the escape \u0000 at i.
func hexEscape(s string, i int) (r rune, ok bool) {
	if i+6 > len(s) || s[i] != '\\' || s[i+1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(s[i+2 : i+6]) {
		switch {
		case digit[c]:
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// withoutHalves returns the span without a part of an escape at its start or at its end.
func withoutHalves(s string, start, end int) (int, int) {
	if i := escapeAround(s, start); i < start {
		_, start = escapeAt(s, i)
	}
	if i := escapeAround(s, end); i < end {
		end = max(i, start)
	}
	return start, end
}

// escapeAround returns the start of the escape that i is within, or i.
func escapeAround(s string, i int) int {
	slash := i
	for slash > 0 && i-slash < len(`u0000`) && alnum[s[slash-1]] {
		slash--
	}
	run := slash
	for run > 0 && s[run-1] == '\\' {
		run--
	}
	if (slash-run)%2 == 1 {
		if _, end := escapeAt(s, slash-1); end > i {
			return slash - 1
		}
	}
	return i
}

// isJSON reports whether s is an object or an array of JSON.
func isJSON(s string) bool {
	i := space.end(s, 0)
	return i < len(s) && (s[i] == '{' || s[i] == '[') && json.Valid([]byte(s))
}

// withinJSON confines the edits of JSON to its strings, and puts the mask of a number in quotes.
func (e *edits) withinJSON(s string) {
	var out edits
	at := 0
	for _, x := range e.list {
		for at < x.end {
			end := at + 1
			switch {
			case s[at] == '"':
				for end < len(s) && s[end] != '"' {
					if s[end] == '\\' {
						end++
					}
					end++
				}
				if x.start > at && x.end <= end {
					out.add(x.start, x.end, x.text, x.kind)
				} else {
					out.mask(s, max(at+1, x.start), min(end, x.end), x.kind)
				}
				end++
			case scalar[s[at]]:
				if end = scalar.end(s, at); end > x.start {
					out.add(at, end, `"`+hidden+`"`, x.kind)
				}
			}
			if end > x.end {
				break // the next edit may be of the same string
			}
			at = end
		}
	}
	e.list = out.list
}

var scalar = setOf("0-9A-Za-z+.-")

package redact

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// vendor is the format of a vendor's keys: a prefix and then bytes of a set, up to the end of the word.
type vendor struct {
	prefix string
	kind   Kind
	body   *set
	least  int  // bytes of the body
	exact  bool // no more than those
	dotted bool // with single dots within the key
}

// byFirst holds vendors by the first byte of their prefix.
type byFirst [256][]vendor

var vendors = vendorsOf(table["prefix"])

func vendorsOf(rows []row) (out byFirst) {
	for _, r := range rows {
		v := vendor{kind: Kind(r.kind), body: setOf(r.form), exact: strings.HasPrefix(r.size, "="), dotted: strings.HasSuffix(r.size, ".")}
		v.least, _ = strconv.Atoi(strings.Trim(r.size, "=."))
		for prefix := range strings.FieldsSeq(r.text) {
			v.prefix = prefix
			out[prefix[0]] = append(out[prefix[0]], v)
		}
	}
	return out
}

// seconds holds the second bytes of prefixes by their first.
var seconds = func() (out [256]*set) {
	for first, of := range vendors {
		for _, v := range of {
			if out[first] == nil {
				out[first] = &set{}
			}
			out[first][v.prefix[1]] = true
		}
	}
	return out
}()

// end returns the end of the key that starts at i, or i if there is none.
func (v *vendor) end(s string, i int) int {
	body := i + len(v.prefix)
	end := v.body.end(s, body)
	for v.dotted && end+1 < len(s) && s[end] == '.' && v.body[s[end+1]] {
		end = v.body.end(s, end+1)
	}
	switch {
	case end-body < v.least, end < len(s) && word[s[end]], v.exact && end-body != v.least:
		return i
	}
	return end
}

// withoutVendor returns v after the prefix of a vendor's keys, if it has one.
func withoutVendor(v string) string {
	longest := 0
	for _, of := range vendors[v[0]] {
		if n := len(of.prefix); n > longest && n < len(v) && strings.HasPrefix(v, of.prefix) {
			longest = n
		}
	}
	return v[longest:]
}

// vendorKeys finds words in the format of a vendor's key, except plain words.
func vendorKeys(t *source, e *edits) {
	s := t.s
	for i := 0; i < len(s); {
		second := seconds[s[i]]
		if !word[s[i]] && second == nil {
			i++
			continue
		}
		end, kind := i, Kind("")
		if second != nil && i+1 < len(s) && second[s[i+1]] {
			if end, kind = vendorEnd(s, i); end > i {
				e.mask(s, i, end, kind)
			}
		}
		next := word.end(s, max(i, end))
		if next-i >= leastLong {
			t.long = append(t.long, i)
		}
		i = max(next, i+1)
	}
}

const leastLong = 12 // letters and digits of a long word

// vendorEnd returns the end and the kind of the longest key of a vendor that begins at i, or i.
func vendorEnd(s string, i int) (end int, kind Kind) {
	end = i
	of := vendors[s[i]]
	for k := range of {
		if v := &of[k]; v.prefix[1] == s[i+1] && strings.HasPrefix(s[i:], v.prefix) {
			if stop := v.end(s, i); stop > end {
				end, kind = stop, v.kind
			}
		}
	}
	if v := s[i:end]; v == "" || plainWords(v) || placeholder(v) {
		return i, ""
	}
	return end, kind
}

// mark is a text within keys, and the least lengths before and after it.
type mark struct {
	text          string
	skip          int // bytes at its beginning that are no letters
	before, after int
	kind          Kind
}

var marked = func() (out []mark) {
	for _, r := range table["mark"] {
		before, after, _ := strings.Cut(r.size, ",")
		m := mark{kind: Kind(r.kind)}
		m.before, _ = strconv.Atoi(before)
		m.after, _ = strconv.Atoi(after)
		for m.text = range strings.FieldsSeq(r.text) {
			m.skip = len(m.text) - len(strings.TrimLeft(m.text, ".:/_"))
			out = append(out, m)
		}
	}
	return out
}()

// markedKeys finds keys that are known by a text within them.
func markedKeys(t *source, e *edits) {
	done := 0
	for _, w := range t.literals {
		m := w.word.literal.mark
		if m == nil || w.start-m.skip < max(done, e.end()) || t.s[w.start-m.skip] != m.text[0] {
			continue
		}
		start, stop := w.end, markedSet.end(t.s, w.end)
		if m.before > 0 {
			start = markedWord.start(t.s, w.start-m.skip, maxName)
		}
		if done = stop; stop-w.end >= m.after && (m.before == 0 || w.start-m.skip-start >= m.before) {
			e.mask(t.s, start, stop, m.kind)
		}
	}
}

var (
	markedSet  = setOf("0-9A-Za-z_/.~-")
	markedWord = setOf("0-9A-Za-z_")
)

// webTokens finds JSON web tokens: a header that is an object, and up to two more parts. Other objects in base64, such
// as the position in a list, have one part.
func webTokens(t *source, e *edits) {
	s, done := t.s, 0
	for at := range t.literal("eyJ") {
		if at < done {
			continue
		}
		end := word.end(s, at)
		if done = end; end-at < 13 ||
			at > 0 && base64Set[s[at-1]] && s[at-1] != '=' && !strings.HasPrefix(s[end:], ".eyJ") {
			continue // or within base64
		}
		parts := 0
		for ; parts < 2 && end < len(s) && s[end] == '.'; parts++ {
			next := wordEqual.end(s, end+1)
			if next-end < 5 {
				break
			}
			end = next
		}
		if parts > 0 || isHeader(s, at, end) {
			e.mask(s, at, end, KindJWT)
			done = end
		}
	}
}

// isHeader reports whether the base64 at s[at:end] may be the header of a token rather than another object.
func isHeader(s string, at, end int) bool {
	before := strings.TrimRight(s[max(0, at-maxCell):at], "\"'\\ :=")
	if strings.HasSuffix(s[:at], ";base64,") || isPage(before[wordDot.start(before, len(before), maxCell):]) {
		return false
	}
	plain := decoded(strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(s[at:end]), "="))
	return plain == "" || strings.Contains(plain, `"alg"`) || strings.Contains(plain, `"typ"`) || strings.Contains(plain, `"enc"`)
}

// A private key is a block from a begin to the next end, or as far as it goes on; one in base64 has no end.
var (
	keyHints = []string{"PRIVATE KEY", "Static key V1", "PuTTY-User-Key-File-", "Private-MAC:", "LS0tLS1CRUdJTi"}
	keyBegin = regexp.MustCompile(`-----BEGIN (?:[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----|---- BEGIN [A-Z0-9 ]*PRIVATE KEY ----|` +
		`PuTTY-User-Key-File-[0-9]|LS0tLS1CRUdJTi(?:BQUklW|BSU0Eg|BFQyBQ|BEU0Eg|BFTkNSWVB|BPUEVOU1N|BQR1AgUFJ)`)
	keyEnd = regexp.MustCompile(`-----END (?:[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----|---- END [A-Z0-9 ]*PRIVATE KEY ----|` +
		`Private-MAC: *[0-9a-f]+`)
	keyBody = regexp.MustCompile(`^(?:(?:\s|\\[nr])*(?:[0-9A-Za-z+/=]{16,}|[A-Z][A-Za-z-]*: .*))+`)
)

// privateKeys finds the blocks of private keys, complete or not.
func privateKeys(t *source, e *edits) {
	s := t.s
	begins := keyBounds(t, keyBegin)
	if len(begins) == 0 {
		return
	}
	ends := keyBounds(t, keyEnd)
	for _, begin := range begins {
		if begin[0] < e.end() {
			continue
		}
		for len(ends) > 0 && ends[0][0] < begin[1] {
			ends = ends[1:]
		}
		end := begin[1]
		if len(ends) > 0 && s[begin[0]] != 'L' {
			end = ends[0][1]
		} else {
			end += len(keyBody.FindString(s[end:]))
		}
		e.add(begin[0], end, hiddenKey, KindPrivateKey)
	}
}

// keyBounds returns the matches of an expression around the hints, in order.
func keyBounds(t *source, of *regexp.Regexp) (out [][2]int) {
	for _, hint := range keyHints {
		for at := range t.literal(hint) {
			low := max(0, at-maxMark)
			for _, m := range of.FindAllStringIndex(t.s[low:min(len(t.s), at+maxMark)], -1) {
				if m[0]+low <= at && at < m[1]+low {
					out = append(out, [2]int{m[0] + low, m[1] + low})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b [2]int) int { return a[0] - b[0] })
	return out
}

const maxMark = 96 // bytes of the begin or the end of a block

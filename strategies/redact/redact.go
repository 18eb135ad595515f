package redact

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Version identifies the rules and changes whenever they do. It is part of the hash of a
// request for a summary.
const Version = "redact/16"

// Redact masks likely secrets and counts them by kind: keys in the format of a vendor,
// private keys, JSON web tokens, values of secret names (environment, configuration, code,
// JSON, YAML, command lines, form bodies, tables, prose of many languages), credentials in
// headers and cookies, passwords in connection strings and web addresses, tokens in query
// strings, webhook addresses, hashes of passwords, card numbers and phone numbers. What it
// finds in one place it masks in all of the text, as Secrets does.
//
// It keeps values that are known not to be secret: references to variables, templates,
// placeholders, names of types, messages about a secret, counts of tokens and pagination
// tokens (NEXT_TOKEN), hashes of files, added lines of a diff that are numbers, and images and
// audio in data: URLs.
//
// A secret of less than 32 characters becomes "***". A longer one keeps its first six and last four,
// so that different secrets stay distinguishable. Redact accepts any text, is idempotent,
// keeps UTF-8 and JSON valid, takes linear time and is safe for concurrent use. The rules are
// heuristics and do not find every secret.
func Redact(s string) (string, Found) {
	var secrets Secrets
	return secrets.Redact(s)
}

// masking masks the secrets of one text.
type masking struct {
	secrets *Secrets
	s       string
	found   Found
	checked bool // json is set
	json    bool // s is JSON and stays so
}

// find applies the passes to the views of the text, and remembers what they find. Of findings that overlap it takes that
// of the first pass; what is left of another one is found in the masked text.
func (m *masking) find() {
	var t *source
	depth := 0
	for v := m.view(0); v != nil; v = v.unescaped(t) {
		var all, e edits
		t = &source{s: v.s}
		t.found()
		vendorKeys(t, &all)
		for i := range passes {
			if p := &passes[i]; p.needed(t) {
				e.list = e.list[:0]
				p.find(t, &e)
				all.merge(e)
			}
		}
		for _, x := range all.list {
			m.secrets.remember(v.s[x.start:x.end], x.kind)
			m.secrets.rememberDecoded(v.s[x.start:x.end], x.kind)
		}
		if len(all.list) > 0 {
			m.apply(v, &all)
			if v, t = m.view(depth), nil; v == nil {
				return
			}
		}
		depth++
	}
}

// view returns the view without a number of levels of escapes, or nil if there are fewer.
func (m *masking) view(depth int) *view {
	v := withoutMedia(m.s)
	for ; depth > 0 && v != nil; depth-- {
		v = v.unescaped(nil)
	}
	return v
}

// apply applies edits of a view to the text.
func (m *masking) apply(v *view, e *edits) {
	for i := range e.list {
		x := &e.list[i]
		x.start, x.end = v.origin(x.start), v.origin(x.end)
	}
	if !m.checked {
		m.json, m.checked = isJSON(m.s), true
	}
	if m.json {
		e.withinJSON(m.s)
	}
	m.s = e.apply(m.s)
	e.count(m.found)
}

const maxRounds = 16

// pass finds secrets in a text.
type pass struct {
	find func(t *source, e *edits)
	// signs are bytes of which one is in each text that has such a secret, "" for a text with words or literals of the table.
	signs string
}

// passes find secrets. Those that recognise a secret by its format come before those that recognise it by its context.
var passes = []pass{
	{privateKeys, ""},
	{markedKeys, ""},
	{urls, "@"},
	{cookies, ""},
	{bots, ":"},
	{passFiles, ":"},
	{webTokens, ""},
	{queries, "?&"},
	{options, "-"},
	{tables, ""},
	{introduced, ""},
	{named, ""},
	{near, ""},
	{cards, "0123456789"},
	{phones, "+"},
}

// needed reports whether the text may have such a secret.
func (p *pass) needed(t *source) bool {
	if p.signs == "" {
		return len(t.words) > 0 || len(t.literals) > 0
	}
	for i := range len(p.signs) {
		if t.seen[p.signs[i]] {
			return true
		}
	}
	return false
}

// edit replaces s[start:end] with text.
type edit struct {
	start, end int
	text       string
	kind       Kind
}

// edits holds the findings of a pass, in order and without overlap.
type edits struct {
	list []edit
}

// mask masks s[start:end], unless it is masked or overlaps a finding, and reports whether it did.
func (e *edits) mask(s string, start, end int, k Kind) bool {
	if start, end = withoutHalves(s, start, end); start >= end || start < e.end() || masked(s[start:end]) {
		return false
	}
	e.add(start, end, mask(s[start:end]), k)
	return true
}

func (e *edits) add(start, end int, text string, k Kind) {
	e.list = append(e.list, edit{start, end, text, k})
}

// end returns the end of the last finding.
func (e *edits) end() int {
	if n := len(e.list); n > 0 {
		return e.list[n-1].end
	}
	return 0
}

// merge adds the edits of more that overlap none.
func (e *edits) merge(more edits) {
	if len(more.list) == 0 {
		return
	}
	var out edits
	rest := e.list
	for _, x := range more.list {
		for len(rest) > 0 && rest[0].end <= x.start {
			out.list, rest = append(out.list, rest[0]), rest[1:]
		}
		if len(rest) == 0 || x.end <= rest[0].start {
			out.list = append(out.list, x)
		}
	}
	e.list = append(out.list, rest...)
}

func (e *edits) count(found Found) {
	for _, x := range e.list {
		found[x.kind]++
	}
}

func (e *edits) apply(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	done := 0
	for _, x := range e.list {
		b.WriteString(s[done:x.start])
		b.WriteString(x.text)
		done = x.end
	}
	b.WriteString(s[done:])
	return b.String()
}

const (
	hidden       = "***"
	hiddenMiddle = "..."
	shown, last  = 6, 4 // characters
	minShown     = 32   // of a secret whose ends are shown: of one that a person chose they would be half
	hiddenKey    = "[REDACTED PRIVATE KEY]"
	redactedWord = "[REDACTED"
)

// mask returns the replacement for a secret.
func mask(secret string) string {
	secret = strings.TrimRight(secret, trailing)
	if utf8.RuneCountInString(secret) < minShown {
		return hidden
	}
	head, tail := text.Head(secret, shown), text.Tail(secret, last)
	if unprintable.any(head) || unprintable.any(tail) { // without an escape in JSON
		return hidden
	}
	return head + hiddenMiddle + tail
}

var unprintable = setOf("\x00-\x1f\"\\")

// masked reports whether a value, or its part after the last colon, is a result of mask, possibly followed by quotes and
// punctuation.
func masked(value string) bool {
	if len(value) > 64 {
		return false
	}
	value = strings.TrimRight(value, trailing)
	value = value[strings.LastIndexByte(value, ':')+1:]
	if value == hidden || strings.HasPrefix(value, redactedWord) {
		return true
	}
	middle := len(text.Head(value, shown))
	return strings.HasPrefix(value[middle:], hiddenMiddle) &&
		utf8.RuneCountInString(value[middle+len(hiddenMiddle):]) == last
}

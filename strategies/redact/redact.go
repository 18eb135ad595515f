package redact

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Version names the rules. It is part of the hash of what a model is asked and changes
// whenever they do.
const Version = "redact/1"

// Redact masks what looks like a secret and counts what it masked by kind: keys in a
// vendor's form, private keys, JSON web tokens, values of secret names (environment,
// configuration, code, JSON, YAML, command lines, form bodies, prose), credentials in
// headers and cookies, passwords in connection strings and web addresses, tokens in
// query strings, webhook addresses and phone numbers.
//
// It leaves alone what is known to be no secret: references to variables, placeholders,
// counts of tokens and places in a list (NEXT_TOKEN), hashes, added lines of a diff that
// are numbers, and images and sounds in data: URLs.
//
// A short secret becomes "***". A longer one keeps its first six and last four
// characters, so that it can still be told from another one. Redact never refuses a
// text, is idempotent, keeps UTF-8 and takes time linear in the text. It is safe for
// concurrent use. Its rules are heuristics: they do not find every secret.
func Redact(s string) (string, Found) {
	found := Found{}
	if !strings.Contains(s, ";base64,") {
		return redact(s, found), found
	}
	var b strings.Builder
	for len(s) > 0 {
		start, end := mediaURL(s)
		b.WriteString(redact(s[:start], found))
		b.WriteString(s[start:end])
		s = s[end:]
	}
	return b.String(), found
}

// redact applies the passes until none finds anything, and adds what they masked to
// found.
func redact(s string, found Found) string {
	// What a mask leaves behind is rarely a secret by another rule. A text that is
	// made to be one shrinks with each round.
	for range maxRounds {
		n := 0
		for _, pass := range passes {
			var e edits
			pass(s, &e)
			if len(e.list) > 0 {
				s = e.apply(s)
				n += len(e.list)
				e.count(found)
			}
		}
		if n == 0 {
			break
		}
	}
	return s
}

const maxRounds = 16

// pass finds secrets in a text.
type pass func(s string, e *edits)

// passes are applied in order, each to what the ones before it left. Passes that
// recognise the form of a secret come before those that recognise its surroundings.
var passes = []pass{
	privateKeys, morePrivateKeys, vendorKeys, hooks, authorizations, cookies, urls, connections, assignments, fields,
	webPasswords, webTokens, bearers, queries, formBodies, flags, spoken, assigned, phones,
}

// edit puts text in the place of s[start:end].
type edit struct {
	start, end int
	text       string
	kind       Kind
}

// edits are what a pass found, in order and without overlap.
type edits struct {
	list []edit
}

// mask hides s[start:end], unless that is hidden already or was by this pass.
func (e *edits) mask(s string, start, end int, k Kind) {
	if start < end && start >= e.end() && !masked(s[start:end]) {
		e.add(start, end, mask(s[start:end]), k)
	}
}

func (e *edits) add(start, end int, text string, k Kind) {
	e.list = append(e.list, edit{start, end, text, k})
}

// end returns the index behind what was hidden last.
func (e *edits) end() int {
	if n := len(e.list); n > 0 {
		return e.list[n-1].end
	}
	return 0
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
	hiddenKey    = "[REDACTED PRIVATE KEY]"
	redactedWord = "[REDACTED"
)

// behind are what a value may be taken with that ends at white space.
const behind = "\"'`,;)\\"

// mask returns what a secret is shown as.
func mask(secret string) string {
	secret = strings.TrimRight(secret, behind)
	if utf8.RuneCountInString(secret) < 18 {
		return hidden
	}
	return text.Head(secret, shown) + hiddenMiddle + text.Tail(secret, last)
}

// masked reports whether a value is what mask made, perhaps with quotes and the like
// behind it.
func masked(value string) bool {
	if len(value) > 64 {
		return false
	}
	value = strings.TrimRight(value, behind)
	if value == hidden || strings.HasPrefix(value, redactedWord) {
		return true
	}
	middle := len(text.Head(value, shown))
	return strings.HasPrefix(value[middle:], hiddenMiddle) &&
		utf8.RuneCountInString(value[middle+len(hiddenMiddle):]) == last
}

// mediaURL returns where the first data: URL of a medium in s is, or the end of s twice.
func mediaURL(s string) (start, end int) {
	for at := 0; ; {
		n := strings.Index(s[at:], "data:")
		if n < 0 {
			return len(s), len(s)
		}
		start = at + n
		at = start + len("data:")
		head := s[at:min(len(s), at+maxName)]
		body := strings.Index(head, ";base64,")
		if body < 0 {
			continue
		}
		kind, _, _ := strings.Cut(head, "/")
		if !slices.Contains([]string{"image", "audio", "video", "font"}, kind) && !strings.HasPrefix(head, "application/pdf") {
			continue
		}
		if end = base64Set.end(s, at+body+len(";base64,")); end-at > body {
			return start, end
		}
	}
}

var base64Set = setOf("0-9A-Za-z+/=")

package summarize

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/str"
)

// Redact masks what looks like a secret and counts what it masked: keys with a
// vendor's prefix, values assigned to secret names (environment, configuration,
// JSON, YAML, HTTP headers, form bodies), passwords and tokens in URLs, JSON web
// tokens, bot tokens, private keys and phone numbers. Query strings and user:password
// in web URLs stay: taking them out breaks links that the conversation is about.
//
// A short secret becomes "***", a longer one keeps its first six and last four
// characters, so that it can still be told from another one. Redacting again changes
// nothing. Text that is UTF-8 stays UTF-8. The time is linear in the text.
//
// It is a net with holes, made for what goes to a model; it is no vault.
func Redact(s string) (string, int) {
	found := Found{}
	s = mend(s, passes, false, found)
	return s, found.Total()
}

// mend applies passes until there is nothing left to hide, and counts what was.
func mend(s string, passes []pass, careful bool, found Found) string {
	// What a mask leaves behind is rarely a secret by another rule. A text that is
	// made to be one shrinks with each round.
	for range maxRounds {
		n := 0
		for _, pass := range passes {
			e := edits{careful: careful}
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

// passes are those of Redact, each for what the ones before it left.
var passes = []pass{
	privateKeys, vendorKeys, assignments, fields, urls, webTokens, formBodies, phones,
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
	// careful: what looks like a secret to Redact, and is known to be none, stays.
	careful bool
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

// end is the index behind what was hidden last.
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

// mask is what a secret is shown as.
func mask(secret string) string {
	secret = strings.TrimRight(secret, behind)
	if utf8.RuneCountInString(secret) < 18 {
		return hidden
	}
	return str.Head(secret, shown) + hiddenMiddle + str.Tail(secret, last)
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
	middle := len(str.Head(value, shown))
	return strings.HasPrefix(value[middle:], hiddenMiddle) &&
		utf8.RuneCountInString(value[middle+len(hiddenMiddle):]) == last
}

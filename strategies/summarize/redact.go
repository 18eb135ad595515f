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
	total := 0
	// What a mask leaves behind is rarely a secret by another rule. A text that is
	// made to be one shrinks with each round.
	for range maxRounds {
		n := 0
		for _, pass := range passes {
			var e edits
			pass(s, &e)
			if len(e) > 0 {
				s = e.apply(s)
				n += len(e)
			}
		}
		total += n
		if n == 0 {
			break
		}
	}
	return s, total
}

const maxRounds = 16

// passes find secrets, each in what the ones before it left.
var passes = []func(s string, e *edits){
	privateKeys, vendorKeys, assignments, fields, urls, webTokens, formBodies, phones,
}

// edit puts text in the place of s[start:end].
type edit struct {
	start, end int
	text       string
}

// edits are in order and do not overlap.
type edits []edit

// mask hides s[start:end], unless that is hidden already or was by this pass.
func (e *edits) mask(s string, start, end int) {
	if start < end && start >= e.end() && !masked(s[start:end]) {
		*e = append(*e, edit{start, end, mask(s[start:end])})
	}
}

// end is the index behind what was hidden last.
func (e *edits) end() int {
	if n := len(*e); n > 0 {
		return (*e)[n-1].end
	}
	return 0
}

func (e *edits) apply(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	done := 0
	for _, x := range *e {
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

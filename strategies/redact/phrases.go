package redact

import (
	"slices"
	"strings"
)

// phraseWords lists the words for a secret in phrases.
var phraseWords = []string{"password", "passwd", "passphrase", "token", "secret", "key", "salt", "pwd", "auth"}

// phrases finds secrets in phrases: the password is x, login y password x, set('token', 'x'),
// <password>x</password>, key="apiKey" value="x", and a name with its value on the next line,
// as in the environment of a container.
func phrases(t *source, e *edits) {
	s := t.s
	for _, w := range t.found() {
		if !w.word.phrase || w.start < e.end() || w.start > 0 && letters[s[w.start-1]] && (lowerOnly[s[w.start]] || !lowerOnly[s[w.start-1]]) {
			continue
		}
		if upper := underscoreUpper.end(s[:min(len(s), w.end+maxCell)], w.end); upper > w.end && s[w.end] == '_' && upper < len(s) && indexByte("'\"", s[upper]) && upperOnly[s[w.start]] {
			phraseValue(s, w.start, upper, true, e) // "SECRET_KEY_BASE", "x"
		} else if w.end == len(s) || !letters[s[w.end]] {
			end := w.end
			if n := digit.end(s[:min(len(s), w.end+2)], w.end); n < len(s) && s[n] == '"' {
				end = n // password2
			}
			named := w.word.text != "salt" && (w.word.text != "auth" || strings.HasSuffix(s[:w.start], "_") && upperOnly[s[w.start]]) && (w.word.text != "key" || keyOf(s[max(0, w.start-12):w.start]))
			if named || w.end < len(s) && indexByte("'\"", s[w.end]) {
				phraseValue(s, w.start, end, named, e)
			}
		}
	}
}

func hasFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// keyOf reports whether the text before "key" ends in a word that makes it a secret.
func keyOf(before string) bool {
	before = before[:keyGap.start(before, len(before), len(before))]
	if before == "" || !keyEnds[before[len(before)-1]|0x20] {
		return false
	}
	before = strings.ToLower(before)
	return slices.ContainsFunc(keyWords, func(w string) bool { return strings.HasSuffix(before, w) })
}

var keyGap = setOf(" _0-9-")

var underscoreUpper = setOf("A-Z_")

// keyEnds has the last letters of keyWords, so that few texts are compared with all of them.
var keyEnds = func() (ends set) {
	for _, w := range keyWords {
		ends[w[len(w)-1]] = true
	}
	return ends
}()

// phraseValue masks the value of the name at s[start:end], if one follows: that of a name that is not
// secret by itself only if it is like a salt.
func phraseValue(s string, start, end int, named bool, e *edits) {
	rest := s[end:min(len(s), end+2*maxGap)]
	var value int
	var stop byte
	switch {
	case strings.HasPrefix(rest, " is ") || strings.HasPrefix(rest, " was "):
		value = end + strings.IndexByte(rest[1:], ' ') + 2
	case strings.HasPrefix(rest, " ") && strings.Contains(s[max(0, start-64):start], "login "):
		value = end + 1
	case strings.HasPrefix(rest, ">"):
		value, stop = end+1, '<'
	default:
		value, stop = pairOf(end, rest)
	}
	if value < 0 {
		return
	}
	value = blank.end(s, value)
	if stop == 0 && value < len(s) && strings.IndexByte("\"'`", s[value]) >= 0 {
		value, stop = value+1, s[value]
	}
	if stop == '"' || stop == '\'' {
		if last := lineEnd(s[:min(len(s), value+maxGap)], value, stop); isSalt(s[value:last]) {
			e.mask(s, value, last, KindAssignment)
			return
		}
	}
	if !named {
		return
	}
	last := phraseSet.end(s[:min(len(s), value+512)], value)
	if stop == 0 {
		last = value + len(strings.TrimRight(s[value:last], ".,:;!?"))
	} else if last == len(s) || s[last] != stop && !hasAnyPrefix(s[last:], `\r`, `\n`) {
		return
	}
	// A word is a secret in an element, in capitals or in a file of netrc.
	word := isPassword(s[start:end]) && isTyped(s[value:last]) &&
		(stop == '<' || stop != 0 && upperOnly[s[start]] || strings.Contains(s[max(0, start-64):start], "machine "))
	if v := s[value:last]; len(v) >= 6 && (word || mixed(v) || jagged(v) || stop == '"' && strings.HasPrefix(rest, `" value="`) && isPIN(s[start:end], v)) && !technical(v) && !placeholder(v) && !reference(s[value:min(len(s), last+1)]) && !isColour(v) {
		e.mask(s, value, last, KindAssignment)
	}
}

// pairOf returns the start of the value of a quoted name that ends at end and is followed by
// rest, and the byte that ends it: after a comma, in another attribute, or on the next line. It
// returns -1 if there is none.
func pairOf(end int, rest string) (value int, stop byte) {
	quote := byte(0)
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		quote = rest[0]
		rest = rest[1:]
		end++
	}
	after := blank.end(rest, 0)
	switch {
	case quote == 0 && strings.HasPrefix(rest, `, "`): // {:password, "x"}
		return end + len(`, "`), '"'
	case quote != 0 && typed(rest) > 0:
		n := typed(rest)
		return end + n + 1, rest[n]
	case strings.HasPrefix(rest, ` value="`):
		return end + len(` value="`), '"'
	case quote != 0 && strings.HasPrefix(rest[after:], ","):
		after = blank.end(rest, after+1)
		if option := letters.end(rest, after); option > after && option < len(rest) && rest[option] == '=' { // '--password', default='x'
			after = option + 1
		}
		if strings.HasPrefix(rest[after:], `"\"`) { // in a file of Gradle
			return end + after + len(`"\"`), '\\'
		}
		if name := letters.end(rest, min(len(rest), after+1)); after < len(rest) && indexByte("'\"", rest[after]) && !strings.HasPrefix(strings.TrimLeft(rest[name:], "\"' "), ":") { // or another field
			return end + after + 1, rest[after]
		}
	case strings.HasPrefix(rest, "\n"):
		if after = blank.end(rest, 1); strings.HasPrefix(rest[after:], "value: ") {
			return end + after + len("value: "), 0
		}
	}
	if quote == 0 { // within a selector, in front of the rest of a prompt
		n := promptEnd.end(rest[:min(len(rest), 4)], 0)
		if n == 0 || n == len(rest) || !indexByte("'\"", rest[n]) {
			return -1, 0
		}
		rest, end = rest[n+1:], end+n+1
		if n = typed(rest); n > 0 {
			return end + n + 1, rest[n]
		}
	}
	return besideName(end, rest)
}

// typed returns the index of the quote of a text that a call of typings at the beginning of rest, the end of another
// call, takes, or 0.
func typed(rest string) int {
	call := strings.TrimLeft(rest, ")]")
	if n := len(rest) - len(call); n > 0 {
		for _, typing := range typings {
			if i := n + len(typing); strings.HasPrefix(call, typing) && i < len(rest) && indexByte("'\"", rest[i]) {
				return i
			}
		}
	}
	return 0
}

var promptEnd = setOf(":?*]) ")

// besideName returns what pairOf does if the value is in another attribute of a tag, field of an object, or
// command: name="password" … value="x".
func besideName(end int, rest string) (value int, stop byte) {
	for i := 0; i < len(rest); i++ {
		switch {
		case letters[rest[i]]:
			stop := word.end(rest, i)
			if isAny(rest[i:stop], valueFields) {
				sign := escapedQuote.end(rest, stop)
				if at := fieldGap.end(rest, sign); at > sign && at < len(rest) && indexByte("'\"", rest[at]) && (sign == stop || strings.IndexByte(":=", rest[blank.end(rest, sign)]) >= 0) {
					return end + at + 1, rest[at]
				}
			}
			i = stop - 1
		case indexByte(">}]);", rest[i]), rest[i] == '\n' && i+1 < len(rest) && (rest[i+1] == '\n' || strings.HasPrefix(rest[blank.end(rest, i+1):], "-")):
			return -1, 0
		}
	}
	return -1, 0
}

var (
	valueFields  = strings.Fields("value text default content send")
	escapedQuote = setOf(`\"'`)
	fieldGap     = setOf(" \t:=\\")
)

// typings are calls of tests of pages that type a text in the field that they found, and calls that
// give a value in place of one that is not set.
var typings = strings.Fields(".send_keys( .sendKeys( .type( .fill( .setValue( .val( .orElse( .getOrElse( .unwrap_or(")

// isSalt reports whether v is long and of any characters, as the keys and salts of WordPress.
func isSalt(v string) bool {
	signs := 0
	for i := range len(v) {
		if !alnum[v[i]] && v[i] != ' ' {
			signs++
		}
	}
	return len(v) >= 32 && signs*6 >= len(v) && threeKinds(v) && strings.Count(v, " ") < 8
}

var phraseSet = setOf("!#-&*-;=?-Z^-z|~")

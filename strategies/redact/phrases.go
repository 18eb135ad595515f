package redact

import "strings"

// spokenWords are what a secret is called where it is told rather than assigned.
var spokenWords = []string{"password", "passwd", "passphrase", "token", "secret", "key"}

// spoken are secrets that are told: the password is x, login y password x, set('token',
// 'x'), <password>x</password>, key="apiKey" value="x", and a name with its value on the
// next line, as in the environment of a container.
func spoken(s string, e *edits) {
	for i := 0; i < len(s); i++ {
		switch s[i] | 0x20 {
		case 'p', 't', 's', 'k':
		default:
			continue
		}
		if i < e.end() || i > 0 && letters[s[i-1]] && (lowerOnly[s[i]] || !lowerOnly[s[i-1]]) {
			continue
		}
		for _, w := range spokenWords {
			if !hasFold(s[i:], w) {
				continue
			}
			if end := i + len(w); (end == len(s) || !letters[s[end]]) && (w != "key" || keyOf(s[max(0, i-12):i])) {
				told(s, i, end, e)
			}
			break
		}
	}
}

func hasFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// keyOf reports a word in front of "key" that makes it a secret.
func keyOf(before string) bool {
	before = strings.ToLower(strings.TrimRight(before, " -_"))
	for _, w := range keyWords {
		if strings.HasSuffix(before, w) {
			return true
		}
	}
	return false
}

// told masks the value of the name at s[start:end], if one follows.
func told(s string, start, end int, e *edits) {
	rest := s[end:min(len(s), end+96)]
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
	last := toldSet.end(s[:min(len(s), value+512)], value)
	if stop == 0 {
		last = value + len(strings.TrimRight(s[value:last], ".,:;!?"))
	} else if last == len(s) || s[last] != stop {
		return
	}
	if v := s[value:last]; len(v) >= 6 && mixed(v) && !placeholder(v) && !reference(s[value:min(len(s), last+1)]) && !isColour(v) {
		e.mask(s, value, last, KindAssignment)
	}
}

// pairOf returns where the value begins of a quoted name that ends at end, with rest behind
// it: behind a comma, in another attribute or on the next line, and what ends it; -1
// for none.
func pairOf(end int, rest string) (value int, stop byte) {
	quote := byte(0)
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		quote = rest[0]
		rest = rest[1:]
		end++
	}
	after := blank.end(rest, 0)
	switch {
	case quote != 0 && strings.HasPrefix(rest[after:], ","):
		after = blank.end(rest, after+1)
		if after < len(rest) && (rest[after] == '"' || rest[after] == '\'') {
			return end + after + 1, rest[after]
		}
	case quote != 0 && strings.HasPrefix(rest[after:], `value="`):
		return end + after + len(`value="`), '"'
	case strings.HasPrefix(rest, "\n"):
		if after = blank.end(rest, 1); strings.HasPrefix(rest[after:], "value: ") {
			return end + after + len("value: "), 0
		}
	}
	return -1, 0
}

var toldSet = setOf("!#-&*-;=?-Z^-z|~")

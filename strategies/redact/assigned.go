package redact

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// flags finds the secrets after options of a command, separated by a space, and those of
// single-letter options of some commands.
func flags(t *source, e *edits) {
	s := t.s
	for at := range places(s, "-") {
		if at > 0 && !space[s[at-1]] || e.end() > at {
			continue
		}
		end := wordDot.end(s[:min(len(s), at+maxName)], at)
		start, stop, ok := optionValue(s, at, end)
		if !ok {
			continue
		}
		if v := s[start:stop]; len(v) >= 6 && mixed(v) && !placeholder(v) && !reference(v) && v[0] != '-' {
			e.mask(s, start, stop, KindAssignment)
		}
	}
}

// optionValue returns the bounds of the secret of the option at s[at:end], if it has one.
func optionValue(s string, at, end int) (start, stop int, ok bool) {
	name := strings.TrimLeft(s[at:end], "-")
	before := s[max(0, at-96):at]
	if name == "p" && end < len(s) && indexByte("'\"", s[end]) && (strings.Contains(before, "mysql") || strings.Contains(before, "sshpass")) {
		start, stop, ok = valueAt(s, end)
		return start, stop, ok
	}
	if strings.HasPrefix(name, "u") && end < len(s) && s[end] == ':' && strings.Contains(before, "curl") { // -uname:password
		start, stop, _ = valueAt(s, end+1)
		return start, stop, true
	}
	if strings.HasPrefix(name, "p") && s[at+1] != '-' && strings.Contains(before, "mysql") {
		if start, stop = (&values{s: s[:min(len(s), at+1024)]}).at(at+len("-p"), false); start < stop {
			return start, stop, true
		}
	}
	if strings.HasPrefix(name, "p") && s[at+1] != '-' && archiver(before) {
		start, stop, _ = valueAt(s, at+len("-p"))
		return start, stop, start < stop
	}
	if name == "" || end == len(s) || s[end] != ' ' {
		return 0, 0, false
	}
	start, stop = (&values{s: s[:min(len(s), end+1024)]}).at(blank.end(s, end), false)
	switch {
	case name == "u" || name == "user":
		user, _, pair := strings.Cut(s[start:stop], ":")
		return start + len(user) + 1, stop, pair && user != "" && strings.Contains(before, "curl")
	case name == "P" || name == "w" || name == "c":
		return start, stop, slices.ContainsFunc(letterOptions[name], func(command string) bool { return strings.Contains(before, command) })
	case name == "U":
		user, _, pair := strings.Cut(s[start:stop], "%")
		return start + len(user) + 1, stop, pair && (strings.Contains(before, "smbclient") || strings.Contains(before, "rpcclient"))
	case name == "p" || name == "a":
		return start, stop, strings.Contains(before, "sshpass") || strings.Contains(before, "login") || strings.Contains(before, "redis-cli") || strings.Contains(before, "mongo") || strings.Contains(before, "cqlsh")
	case s[at+1] != '-' && len(name) < 6 || !secretName(name) || isAny(lastWord(name), aboutSecrets) || strings.HasSuffix(name, "stdin"):
		return 0, 0, false
	}
	return start, stop, true
}

// letterOptions lists the commands whose option of one letter is a secret.
var letterOptions = map[string][]string{
	"P": {"zip ", "sqlcmd", "bcp ", "isql"},
	"w": {"ldapsearch", "ldapmodify", "ldapadd", "ldapwhoami", "ldapdelete"},
	"c": {"snmp"},
}

// archiver reports whether the command before an option is one of those with the password
// right behind -p.
func archiver(before string) bool {
	return strings.Contains(before, "7z") || strings.Contains(before, "rar ")
}

// assigned finds the values in code and data that assignments and fields do not: a quoted
// literal after a secret name anywhere, and a random value after a name that ends in key, salt
// or the like.
func assigned(t *source, e *edits) {
	s := t.s
	for _, i := range t.names() {
		if i < e.end() {
			continue
		}
		end := i
		for end > 0 && (space[s[end-1]] && s[end-1] != '\n' || s[end-1] == '"' || s[end-1] == '\'' || s[end-1] == ':' || s[end-1] == '?') && i-end < 8 {
			end--
		}
		name := wordDot.start(s, end, maxName)
		if name == end {
			continue
		}
		for i+1 < len(s) && (s[i+1] == '=' || s[i+1] == '>') {
			i++
		}
		strong := secretName(s[name:end])
		if !strong && !weakName(s[name:end]) {
			continue
		}
		value := blank.end(s, i+1)
		quote := byte(0)
		if value < len(s) && strings.IndexByte("\"'`", s[value]) >= 0 {
			quote = s[value]
			value++
		}
		stop := valueSet.end(s[:min(len(s), value+512)], value)
		v := s[value:stop]
		if quote != 0 && (stop == len(s) || s[stop] != quote) {
			if !strong || quote == '`' {
				continue
			}
			if stop = lineEnd(s[:min(len(s), value+512)], value, quote); stop == len(s) || s[stop] != quote {
				continue
			}
			v = s[value:stop]
		}
		if secretValue(v, strong, quote != 0) && !spared(s[name:end], v, quote != 0) {
			e.mask(s, value, stop, KindAssignment)
		}
	}
}

var valueSet = setOf("0-9A-Za-z_+/=.~-")

// weakNames lists the ends of names whose value is a secret only if it is random.
var weakNames = []string{"key", "salt", "auth", "cert", "signature", "credential", "key-data", "keydata", "hmac", "seed", "nonce", "session", "sessionid", "sid", "pat"}

func weakName(name string) bool {
	for _, w := range weakNames {
		if n := len(name) - len(w); n >= 0 && strings.EqualFold(name[n:], w) {
			return true
		}
	}
	return false
}

// secretValue reports whether a value looks generated. strong is set for a secret name.
func secretValue(v string, strong, quoted bool) bool {
	switch {
	case len(v) < 8 || len(v) > 512 || strings.ContainsAny(v, " {}()<>$%\t"):
		return false
	case strong && quoted:
		return mixed(v) || jagged(v)
	case strong:
		return len(v) >= 16 && (mixed(v) || jagged(v)) && entropy(v) >= 3
	}
	return len(v) >= 20 && !isHex(v) && threeKinds(v) && entropy(v) >= 3.8 && (strings.Count(v, "/") < 3 || jagged(v)) && strings.Count(v, ".") < 2
}

// mixed reports whether v has letters and also digits or signs; of letters outside of ASCII, which
// a sentence without blanks has too, with two digits at the end.
func mixed(v string) bool {
	if letters.any(v) {
		return strings.ContainsAny(v, "0123456789!@#^&*?")
	}
	n := len(v)
	return n > 2 && digit[v[n-1]] && digit[v[n-2]] && strings.ContainsFunc(v, unicode.IsLetter)
}

// jagged reports whether a long v changes between capitals, small letters and digits as often as
// generated values do. Names and paths do so less.
func jagged(v string) bool {
	changes, last := 0, (*set)(nil)
	for i := range len(v) {
		for _, kind := range []*set{lowerOnly, upperOnly, digit} {
			if kind[v[i]] && last != kind {
				changes, last = changes+1, kind
			}
		}
	}
	return len(v) >= 16 && changes*5 >= len(v)*2
}

// threeKinds reports whether v has capitals, lower-case letters and digits.
func threeKinds(v string) bool {
	return upperOnly.any(v) && lowerOnly.any(v) && digit.any(v)
}

// entropy returns the entropy of v in bits per byte.
func entropy(v string) float64 {
	var counts [256]int
	for i := range len(v) {
		counts[v[i]]++
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(v))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

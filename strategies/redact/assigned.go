package redact

import (
	"math"
	"strings"
	"unicode"
)

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
		for end > 0 && (space[s[end-1]] && s[end-1] != '\n' || s[end-1] == '"' || s[end-1] == '\'' || s[end-1] == ':' || s[end-1] == '?' || s[end-1] == ']') && i-end < 8 {
			end--
		}
		name := wordDot.start(s, end, maxName)
		if name == end {
			continue
		}
		for i+1 < len(s) && (s[i+1] == '=' || s[i+1] == '>') {
			i++
		}
		if hasFold(s[max(0, name-len("public ")):name], "public ") || inARN(s, name) {
			continue
		}
		strong := secretName(s[name:end])
		if hasFold(s[max(0, name-len("site ")):name], "site ") && strings.EqualFold(s[name:end], "key") {
			continue // public
		}
		if !strong && (!weakName(s[name:end]) || hasAnySuffix(s[:name], "<script ", "<style ")) {
			continue
		}
		value := literalAfter(s, blank.end(s, i+1))
		if s[i] == ':' && !indexByte("\"'`", s[i-1]) {
			if typed := typeSet.end(s[:min(len(s), value+maxGap)], value); typed > value && strings.HasPrefix(s[typed:], "= ") {
				if at := literalAfter(s, typed+len("= ")); at < len(s) && indexByte("'\"", s[at]) {
					value = at // password: str = "x"
				}
			}
		}
		quote := byte(0)
		if value < len(s) && strings.IndexByte("\"'`", s[value]) >= 0 {
			quote = s[value]
			value++
		}
		stop := valueSet.end(s[:min(len(s), value+512)], value)
		v := s[value:stop]
		if quote == 0 && stop < len(s) && indexByte("([{", s[stop]) {
			continue // a call
		}
		if quote != 0 && (stop == len(s) || s[stop] != quote) {
			if !strong || quote == '`' {
				continue
			}
			if stop = lineEnd(s[:min(len(s), value+512)], value, quote); stop == len(s) || s[stop] != quote {
				continue
			}
			v = s[value:stop]
		}
		if (secretValue(v, strong, quote != 0) || len(v) >= 8 && alnum.has(v) && digit.any(v) && letters.any(v) && isRandomOf(s[name:end], v) || quote != 0 && isPassword(s[name:end]) && (isTyped(v) || isShort(v))) && !spared(s[name:end], v, quote != 0) && !isParsed(s, name, v) {
			e.mask(s, value, stop, KindAssignment)
			if strong && quote != 0 {
				maskList(s, s[name:end], stop, e)
			}
		}
		if rest, ok := strings.CutPrefix(s[stop:min(len(s), stop+maxGap)], `" -> "`); ok && quote == '"' { // the new value in a plan
			start := stop + len(`" -> "`)
			if end, _, ok := strings.Cut(rest, `"`); ok && secretValue(end, strong, true) {
				e.mask(s, start, start+len(end), KindAssignment)
			}
		}
	}
}

// maskList masks the values of a list behind the first one of a name, of which the quote is at i.
func maskList(s, name string, i int, e *edits) {
	for {
		start := listGap.end(s[:min(len(s), i+maxCell)], i+1)
		if start == len(s) || i >= start || s[start] != s[i] || !strings.Contains(s[i:start], ",") {
			return
		}
		stop := quoteEnd(s[:min(len(s), start+512)], start+1, s[i:i+1])
		if next := listGap.end(s[:min(len(s), stop+maxCell)], min(len(s), stop+1)); next == len(s) || s[next] != s[i] && s[next] != ']' || !secretValue(s[start+1:stop], true, true) || spared(name, s[start+1:stop], true) {
			return
		}
		e.mask(s, start+1, stop, KindAssignment)
		i = stop
	}
}

// literalAfter returns where the literal begins that the value at i wraps, Some("x"), or that it falls back
// on, getenv("X") || "x", or i.
func literalAfter(s string, i int) int {
	if at := unwrapped(s, i); at < len(s) && indexByte("'\"`", s[at]) {
		return at
	}
	if i == len(s) || !letters[s[i]] && s[i] != '$' {
		return i
	}
	for at := i; at < min(len(s), i+maxName) && s[at] != '\n' && s[at] != ';'; at++ {
		if at > i+3 && s[at-1] == ' ' && indexByte("'\"`", s[at]) && isAny(s[at-3:at-1], []string{"||", "??", "or", "?:"}) {
			return at
		}
	}
	return i
}

// unwrapped returns the index behind the calls and the prefix of a literal at i: Some("x"), b"x".
func unwrapped(s string, i int) int {
	at := i + len(s[i:]) - len(strings.TrimPrefix(s[i:], "[]"))
	for range 3 {
		end := callSet.end(s[:min(len(s), at+maxCell)], at)
		if end == len(s) || s[end] != '(' || !isAny(lastWord(strings.TrimRight(s[at:end], "!")), wrappers) {
			break
		}
		at = end + 1
	}
	if at+1 < len(s) && indexByte("buL@N", s[at]) && indexByte("'\"", s[at+1]) {
		at++ // the prefix of a literal
	}
	return at
}

var (
	callSet  = setOf("0-9A-Za-z_.:&! ")
	wrappers = strings.Fields("some just ok of optional secret byte str string text from ptr pointer buffer bytes trim space box")
)

var typeSet = setOf("0-9A-Za-z_&.<>[]?| '")

var valueSet = setOf("0-9A-Za-z_+/=.~-")

// weakNames lists the ends of names whose value is a secret only if it is random.
var weakNames = []string{"key", "salt", "auth", "cert", "signature", "credential", "key-data", "keydata", "hmac", "seed", "nonce", "session", "sessionid", "session_id", "sid", "pat", "cookie", "dockerconfigjson", "dockercfg", "encrypt", "secure"}

func weakName(name string) bool {
	for _, w := range weakNames {
		if n := len(name) - len(w); n >= 0 && strings.EqualFold(name[n:], w) {
			return !identifies(name)
		}
	}
	return false
}

// identifies reports whether a name is that of a key which tells things apart, rather than opens them.
func identifies(name string) bool {
	last := lastWord(name)
	return strings.EqualFold(last, "key") && (isAny(wordBefore(name), identifying) || hasFold(name, "sec-websocket")) || strings.EqualFold(last, "sitekey")
}

var identifying = strings.Fields("idempotency dedup deduplication dedupe sort partition cache primary foreign range object row group lookup natural surrogate composite unique join map index sharding shard distribution translation message")

// isAppKey reports whether a name is that of the key of an app: a secret if it is random, also in
// hexadecimal, and its name otherwise.
func isAppKey(name string) bool {
	return strings.HasSuffix(name, "_PAT") || strings.EqualFold(lastWord(name), "key") && isAny(wordBefore(name), []string{"app", "application", "consumer", "routing", "integration", "service"})
}

// isRandomOf reports whether letters and digits are a secret of a name of which others are not.
func isRandomOf(name, v string) bool {
	return len(v) >= 20 && hasAnySuffix(name, "SESSID", "SESSIONID", "COOKIE", "_cookie") || len(v) >= 32 && isAppKey(name) || isRandom(v) && strings.EqualFold(lastWord(name), "salt")
}

// secretValue reports whether a value looks generated. strong is set for a secret name.
func secretValue(v string, strong, quoted bool) bool {
	switch {
	case len(v) < 8 || len(v) > 512 || strings.ContainsAny(v, " {}()<>\t") || expands(v) || formats(v) && !jagged(v) || !quoted && strings.ContainsAny(v, "$%"):
		return false
	case strong && quoted:
		return mixed(v) || jagged(v)
	case strong:
		return len(v) >= 16 && (mixed(v) || jagged(v)) && entropy(v) >= 3
	}
	return len(v) >= 20 && !strings.Contains(strings.TrimRight(v, "="), "=") && !isHex(v) && (threeKinds(v) || len(v) >= 24 && alnum.has(v) && digit.any(v) && isRandom(v)) && entropy(v) >= 3.8 && (strings.Count(v, "/") < 3 || jagged(v)) && strings.Count(v, ".") < 2
}

// mixed reports whether v has letters and also digits or signs, or is random letters; of letters outside of ASCII, which
// a sentence without blanks has too, with two digits at the end, or one if they have two cases.
func mixed(v string) bool {
	if letters.any(v) {
		return strings.ContainsAny(v, "0123456789!@#^&*?") || isRandom(v)
	}
	n := len(v)
	return n > 2 && digit[v[n-1]] && (digit[v[n-2]] && strings.ContainsFunc(v, unicode.IsLetter) || strings.ContainsFunc(v, unicode.IsLower))
}

// jagged reports whether a long v changes between capitals, small letters and digits as often as
// generated values do. Names and paths do so less.
func jagged(v string) bool {
	return len(v) >= 16 && kindChanges(v)*3 >= len(v)-1 && !isCamel(v)
}

// kindChanges returns how often v changes between capitals, small letters and digits.
func kindChanges(v string) int {
	changes, last := 0, (*set)(nil)
	for i := range len(v) {
		for _, kind := range []*set{lowerOnly, upperOnly, digit} {
			if kind[v[i]] && last != kind {
				changes, last = changes+1, kind
			}
		}
	}
	return changes
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

// isCamel reports whether v is capitalised words in one, or with dots between, perhaps with a number behind.
func isCamel(v string) bool {
	v = strings.TrimRight(v, "0123456789")
	capitals := 0
	for i := range len(v) {
		if !letters[v[i]] && v[i] != '.' || i > 0 && upperOnly[v[i]] && upperOnly[v[i-1]] {
			return false
		}
		if upperOnly[v[i]] {
			capitals++
		}
	}
	return capitals*3 <= len(v)
}

package redact

import "strings"

// assignments finds name=value with a secret name: names in capitals anywhere, others where
// they look like configuration rather than prose or a query string.
func assignments(t *source, e *edits) {
	s := t.s
	v := values{s: s}
	for _, i := range t.names() {
		if s[i] != '=' || i < e.end() || i+1 < len(s) && (s[i+1] == '=' || s[i+1] == '>') { // or compared, not assigned
			continue
		}
		end := i
		if end > 0 && (s[end-1] == ':' || s[end-1] == '?') {
			end--
		}
		gap := blank.start(s, end, maxBlank)
		name := wordDot.start(s, gap, maxName)
		if name == gap {
			continue
		}
		value := blank.end(s, i+1)
		spaced := gap < end || value > i+1
		upper := upperName(s, name, gap)
		if upper < gap && upperSecret(s[upper:gap]) {
			start, stop := v.at(value, false)
			stop = beforeQuote(s, upper, start, stop)
			v, key := s[start:stop], s[upper:gap]
			if key == "PASS" && mixed(v) {
				key = "PASSWORD" // rather than a count of tests
			}
			if spared(key, v, start > value) || len(v) < 6 && (letters.has(v) || spaced && digits(v)) && !isPassword(key) || len(v) < leastPIN && digits(v) || spaced && start == value && start < stop && indexByte("[{(", v[0]) {
				continue // or a switch, a list
			}
			e.mask(s, start, stop, KindAssignment)
			continue
		}
		property := hasAnyPrefix(s[name:gap], "-D", "-P") // of Java, of Gradle
		if property {
			name += len("-D")
		}
		secret := secretName(s[name:gap])
		if upper == name || !secret && (!strings.HasSuffix(s[name:gap], "_key") || !weakName(s[name:gap])) || !property && !configured(s, name, gap) {
			continue
		}
		start, stop := v.at(value, true)
		stop = beforeQuote(s, name, start, stop)
		variable := s[i-1] == ':' && start == value && wordDot.has(s[start:stop]) && !digit.any(s[start:stop]) // name := other
		if variable || spared(s[name:gap], s[start:stop], start > value) {
			continue
		}
		if spaced && start == value && isOperand(s, name, start, stop) {
			continue
		}
		if code := spaced && start == value; isPIN(s[name:gap], s[start:stop]) || !harmless(s[start:stop], !secret, code) {
			e.mask(s, start, stop, KindAssignment)
		}
	}
}

// upperName returns the start of the name in capitals that ends at end.
func upperName(s string, start, end int) int {
	for end > start && (upperDigit[s[end-1]] || s[end-1] == '_') {
		end--
	}
	return end
}

// configured reports whether the name at s[start:end] looks like configuration: it has several
// parts, or begins a line, a flag or an entry of a list.
func configured(s string, start, end int) bool {
	before := byte('\n')
	if start > 0 {
		before = s[start-1]
	}
	if before == '?' || before == '&' {
		return false // a query string
	}
	return strings.IndexByte(";='\"`", before) >= 0 || strings.HasPrefix(s[start:end], "--") ||
		strings.ContainsAny(s[start:end], "._") || lineStart(s, start)
}

// lineStart reports whether only white space, a line number, "export" or the dash of a list
// precede i on its line.
func lineStart(s string, i int) bool {
	if colon := blank.start(s, max(0, i-1), 1); i > 0 && s[i-1] == '"' && colon > 1 && s[colon-1] == ':' && s[colon-2] == '"' {
		return true // of a string of JSON
	}
	i = blank.start(s, i, maxBlank)
	if j := i - len("export"); j >= 0 && s[j:i] == "export" {
		i = blank.start(s, j, maxBlank)
	}
	if i > 0 && s[i-1] == '-' {
		i = blank.start(s, i-1, maxBlank)
	}
	if i > 0 && (s[i-1] == '|' || s[i-1] == ':' || s[i-1] == '\t') {
		i--
	}
	i = blank.start(s, digit.start(s, i, 12), maxBlank)
	return i == 0 || s[i-1] == '\n' || s[i-1] == '\r' || s[i-1] == 'n' && i > 1 && s[i-2] == '\\'
}

// isRole reports whether s begins with a role of reStructuredText: :meth:`x`.
func isRole(s string) bool {
	end := letters.end(s, min(len(s), 1))
	return end > 1 && strings.HasPrefix(s[end:], ":`")
}

// values finds the ends of values. It keeps the last end of each kind, which all values that
// start before it share, so that one long word is not read once for each of them.
type values struct {
	s     string
	known [2]struct{ start, end int }
}

// at returns the bounds of the value at i: within its quotes, or up to white space, the end of
// the JSON string around it, or, if pairs is set, the separator of pairs.
func (v *values) at(i int, pairs bool) (start, end int) {
	if i == len(v.s) || space[v.s[i]] {
		return i, i
	}
	if start, end = literal(v.s, i); start > i {
		return leftToView(v.s, start, end)
	}
	known := &v.known[0]
	if pairs {
		known = &v.known[1]
	}
	if i < known.start || i >= known.end {
		known.start, known.end = i, i
		for known.end < len(v.s) && !v.ends(known.end, pairs) {
			known.end++
		}
	}
	return leftToView(v.s, i, known.end)
}

// leftToView returns the bounds of a value, or nothing if it begins with an escape, or has one of a sign, and is in the
// same part of a view without escapes as its name: the rules then read that one.
func leftToView(s string, start, end int) (int, int) {
	if start < end && (start == 0 || s[start-1] != '"') && (strings.HasPrefix(s[start:end], `\"`) || strings.Contains(s[start:min(end, start+maxName)], `\u00`)) {
		return start, start
	}
	return start, end
}

// literal returns the bounds of the text in the quotes at i, which may be three, or i twice if
// there are none on the line. A quote within is doubled or follows a backslash.
func literal(s string, i int) (start, end int) {
	if !indexByte("\"'`", s[i]) || isCommand(s, i) {
		return i, i
	}
	if q := s[i:min(len(s), i+3)]; q == strings.Repeat(q[:1], 3) {
		line, _, _ := strings.Cut(s[i+3:min(len(s), i+maxUser)], "\n")
		if n := strings.Index(line, q); n > 0 {
			return i + 3, i + 3 + n
		}
	}
	if end = libpqEnd(s, i); end > i {
		return i + 1, end
	}
	return i, i
}

// isCommand reports whether the back-tick at i, behind an equals sign, begins a command of a shell rather than a
// text: NAME=`cat x`.
func isCommand(s string, i int) bool {
	return s[i] == '`' && i > 0 && s[i-1] == '=' && strings.ContainsAny(s[i:max(i, libpqEnd(s[:min(len(s), i+maxBlank)], i))], " ")
}

func (v *values) ends(i int, pairs bool) bool {
	next := byte(0)
	if i+1 < len(v.s) {
		next = v.s[i+1]
	}
	switch c := v.s[i]; c {
	case '&', ';':
		return pairs
	case ',':
		return (pairs || upperOnly[next]) && nextPair(v.s[i:min(len(v.s), i+32)])
	case '"':
		return next == ',' || next == '}' || next == ']' || next == ':'
	case '\\':
		return next == 'n' || next == 'r' || next == 't' || next == '"'
	default:
		return space[c]
	}
}

// harmless reports whether the value of a secret name in lower case is not a secret but code
// or a count. weak is set if the name is not secret by itself.
func harmless(v string, weak, code bool) bool {
	if len(v) < 10 && digits(strings.TrimRight(v, behind)) {
		return true
	}
	v = v[:min(len(v), 256)]
	if code && strings.ContainsAny(v, "([{") {
		return true
	}
	return weak && (len(v) < 16 || strings.ContainsAny(v, "([{ ") || !strings.ContainsAny(v, "0123456789"))
}

// isPIN reports whether v is a number that is the password of a name rather than a count.
func isPIN(name, v string) bool {
	v = strings.TrimRight(v, behind)
	return isPassword(name) && !strings.EqualFold(name, "pass") && len(v) >= leastPIN && len(v) <= 12 && digits(v)
}

const leastPIN = 4

// prose reports whether the value at s[start:end] is the first word of several without digits.
func prose(s string, start, end int) bool {
	return letter.end(strings.TrimRight(s[start:end], ","), 0) >= end-start-1 && end+1 < len(s) && s[end] == ' ' && letter[s[end+1]]
}

var letter = setOf("A-Za-z\x80-\xff") // of any language

func digits(v string) bool { return digit.end(v, 0) == len(v) }

// bots finds the tokens of bots, which are a number, a colon and the secret, and passwords behind a user and a colon.
func bots(t *source, e *edits) {
	s := t.s
	for i := range places(s, ":") {
		if i > 1 && i+1 < len(s) && alnum[s[i-1]] && pairStart[s[i+1]] && (!digit[s[i-1]] || !digit[s[i+1]]) { // or a time
			maskPair(s, i, e)
		}
		if i == 0 || !digit[s[i-1]] {
			continue
		}
		first := digit.start(s, i, 20)
		if first > 0 && s[first-1] == '-' { // the key of a cache of Nix, cache.example.org-1:x; a public one is shorter
			if end := base64Set.end(s[:min(len(s), i+96)], i+1); end-i-1 == 88 && strings.HasSuffix(s[:end], "==") {
				e.mask(s, i+1, end, KindProviderKey)
			}
		}
		if i-first < 8 {
			continue
		}
		if end := word.end(s, i+1); end-i > 30 && (!isHex(s[i+1:end]) || end-i == 33 && first > 0 && s[first-1] == '/') { // or of Asana
			e.mask(s, i+1, end, KindProviderKey)
		}
	}
}

// fields finds name: value with a secret name: quoted names, lines of YAML, headers.
func fields(t *source, e *edits) {
	s := t.s
	v := values{s: s}
	for _, i := range t.names() {
		if s[i] != ':' || i < e.end() || i+1 < len(s) && (s[i+1] == ':' || s[i+1] == '=') || strings.HasPrefix(s[i+1:], "//") { // or code, a URL
			continue
		}
		gap := blank.start(s, i, maxBlank)
		if gap > 0 && (s[gap-1] == '"' || s[gap-1] == '\'') {
			quotedField(s, gap, i+1, e)
			continue
		}
		name := wordDot.start(s, gap, maxName)
		value := blank.end(s, i+1)
		switch n := s[name:gap]; {
		case name == gap:
		case isAny(n, authorizationHeaders), isAny(strings.TrimLeft(n, "-."), headers):
			start, end := credential(s, value)
			if !isAny(n, authorizationHeaders) {
				if start, end = v.at(value, false); spared(n, s[start:end], start > value) || isStored(s[name:end]) {
					continue
				}
			}
			if v := s[start:end]; !placeholder(v) && !reference(v) && !isAny(strings.TrimRight(v, behind), constants) && (len(v) >= 12 || !lowerOnly.has(v) || hasFold(n, "x-")) {
				e.mask(s, start, end, KindAuthorization)
			}
		case secretName(n) && !strings.EqualFold(n, "auth") && n != "PASS" && lineStart(s, name):
			if maskBlock(s, name, gap, value, e) {
				continue
			}
			if anchor := word.end(s, min(len(s), value+1)); value < len(s) && s[value] == '&' && anchor < len(s) && s[anchor] == ' ' {
				value = anchor + 1
			}
			start, end := v.at(value, true)
			if last := passphraseEnd(s, start); last > start && isPassword(n) {
				e.mask(s, start, last, KindAssignment)
				continue
			}
			if start == value && strings.HasSuffix(s[start:end], ",") && isOperand(s, name, start, end) || isRole(s[i:]) {
				continue
			}
			if (isPIN(n, s[start:end]) && !isUnit(s[end:]) || !harmless(s[start:end], false, false)) && !prose(s, start, end) && !spared(n, s[start:end], start > value) && !isParsed(s, name, s[start:end]) {
				e.mask(s, start, end, KindAssignment)
			}
		}
	}
}

// quotedField finds "name": "value" with the quotes of JSON or Python, also within a JSON
// string, where they have a backslash. end is after the name's quote, value after the colon.
func quotedField(s string, end, value int, e *edits) {
	q := s[end-1 : end]
	end--
	if end > 0 && s[end-1] == '\\' {
		end--
		q = `\` + q
	}
	name := wordDot.start(s, end, maxName)
	if name < len(q) || s[name-len(q):name] != q {
		return
	}
	kind := KindAssignment
	if isAny(s[name:end], headers) || strings.EqualFold(s[name:end], "authorization") {
		kind = KindAuthorization
	} else if s[name:end] == "key" && strings.Contains(s[max(0, name-maxGap):name], `"username`) { // of Kaggle
		if start, stop, quoted := valueAt(s, value); quoted && stop-start == 32 && lowerHex.has(s[start:stop]) {
			e.mask(s, start, stop, kind)
		}
		return
	} else if !secretName(s[name:end]) {
		return
	}
	value = space.end(s, value)
	if strings.HasPrefix(s[value:], q) {
		start := value + len(q)
		stop := quoteEnd(s, start, q)
		if !placeholder(s[start:stop]) && (kind != KindAssignment || !spared(s[name:end], s[start:stop], true)) {
			e.mask(s, start, stop, kind)
		}
	}
}

// quoteEnd returns the end of the quoted text that starts at start: the next such quote or the
// end of the line.
func quoteEnd(s string, start int, quote string) int {
	for j := start; j < len(s); j++ {
		switch {
		case strings.HasPrefix(s[j:], quote), s[j] == '\n':
			return j
		case s[j] == '\\':
			j++
		}
	}
	return len(s)
}

// credential returns the bounds of the value of an Authorization header without its scheme.
func credential(s string, i int) (start, end int) {
	token := func(i int) int {
		for i < len(s) && !space[s[i]] && s[i] != '"' && s[i] != '\'' {
			i++
		}
		return i
	}
	start, end = i, token(i)
	if next := blank.end(s, end); end > start && next > end && token(next) > next {
		return next, token(next)
	}
	return start, end
}

// beforeQuote returns the end of the value s[start:stop]: before the quote that also is in front of
// its name, if any.
func beforeQuote(s string, name, start, stop int) int {
	if name > 0 && indexByte("\"'`", s[name-1]) && !indexByte("\"'`", s[max(0, start-1)]) {
		if n := strings.IndexByte(s[start:stop], s[name-1]); n > 0 {
			return start + n
		}
	}
	return stop
}

package redact

import "strings"

// nameAt is the name of a secret in a text, and the word in it that was found.
type nameAt struct {
	t          *source
	s          string
	w          wordAt
	start, end int
}

// named finds the values of names for secrets, in the notations of settings, code and sentences.
func named(t *source, e *edits) {
	for _, w := range t.found() {
		if w.start < e.end() {
			continue
		}
		n := nameAt{t: t, s: t.s, w: w, start: w.start, end: w.end}
		if !w.word.language {
			n.start, n.end = wordDot.start(t.s, w.start, maxName), wordDot.end(t.s[:min(len(t.s), w.end+maxName)], w.end)
		}
		if inARN(t.s, n.start) {
			continue
		}
		if !n.setting(e) && !n.weak(e) {
			n.told(e)
		}
	}
}

func (n *nameAt) text() string { return n.s[n.start:n.end] }

// sign returns the index of the colon or the equals sign of the name, or -1, and the text between.
func (n *nameAt) sign() (at int, between string) {
	for i := n.end; i < min(len(n.s), n.end+maxBlank); i++ {
		if n.s[i] == ':' || n.s[i] == '=' {
			return i, n.s[n.end:i]
		}
		if !separated[n.s[i]] {
			break
		}
	}
	return -1, ""
}

var separated = setOf(" \t\v\f\r\"'\\?`*]")

// setting masks the value of the name if the name is one of a setting, and reports whether it did: name=value, name: value of
// a header or on a line of YAML, and "name": "value".
func (n *nameAt) setting(e *edits) bool {
	i, between := n.sign()
	if i < 0 || n.w.word.language {
		return false
	}
	next := n.s[min(len(n.s), i+1):min(len(n.s), i+3)]
	switch between = strings.TrimRight(between, " \t"); {
	case between == `"`, between == "'", between == `\"`, between == `\'`:
		return n.s[i] == ':' && n.field(i+1, between, e)
	case between != "" && between != "?":
		return false
	case hasAnyPrefix(next, "=") && n.s[i] == ':':
		return n.assignment(i+1, e)
	case !hasAnyPrefix(next, "=", ">", "::", "//") && !n.header(i, e): // not compared
		return n.assignment(i, e)
	}
	return false
}

// assignment masks the value after the sign at i: of names in capitals anywhere, of others where they look like configuration
// rather than prose or a query string.
func (n *nameAt) assignment(i int, e *edits) bool {
	s, begin, assigned, value := n.s, n.start, n.s[i] == '=', blank.end(n.s, i+1)
	upper := upperName(s, begin, n.end)
	capitals := assigned && upper < n.end && upperSecret(s[upper:n.end])
	if capitals {
		begin = upper
	} else if assigned && hasAnyPrefix(n.text(), "-D", "-P") { // of Java, of Gradle
		begin += len("-D")
	}
	key := s[begin:n.end]
	strong := secretName(key)
	switch {
	case capitals:
	case !strong && (!assigned || !strings.HasSuffix(key, "_key") || !weakName(key)), key == "PASS", strings.EqualFold(key, "auth"):
		return false
	case assigned && upper == n.start, !assigned && !lineStart(s, begin):
		return false
	case assigned && begin == n.start && !configured(s, begin, n.end):
		return false
	}
	start, stop := n.t.settingAt(value, !capitals)
	stop = beforeQuote(s, begin, start, stop)
	v, bare, spaced := s[start:stop], start == value, s[n.end] != s[i] || value > i+1
	if key == "PASS" && mixed(v) {
		key = "PASSWORD" // rather than a count of tests
	}
	switch {
	case spared(key, v, !bare), isRole(s[i:]), isParsed(s, begin, v):
		return false
	case capitals:
		return !isSwitch(key, v, spaced, bare) && e.mask(s, start, stop, KindAssignment)
	case bare && s[i-1] == ':' && wordDot.has(v) && !digit.any(v): // name := other
		return false
	case bare && (spaced && assigned || strings.HasSuffix(v, ",")) && isOperand(s, begin, start, stop):
		return false
	case !assigned && (len(v) < leastPIN || beginsProse(s, start, stop)):
		return false
	case isPIN(key, v) && !isUnit(s[stop:]):
		return e.mask(s, start, stop, KindAssignment)
	}
	return !harmless(v, !strong, assigned && bare && spaced) && e.mask(s, start, stop, KindAssignment)
}

// header masks the credential of a header after the colon at i, and reports whether it did.
func (n *nameAt) header(i int, e *edits) bool {
	s, key, value := n.s, n.text(), blank.end(n.s, i+1)
	isKey := in("header", strings.TrimLeft(key, "-."))
	if s[i] != ':' || !isKey && !in("authorization", key) {
		return false
	}
	start, end := credential(s, value)
	if scheme := word.end(s, value); in("params", s[value:scheme]) {
		start, end = blank.end(s, scheme), lineEnd(s, value, '\n')
		if n.start > 0 && indexByte("\"'", s[n.start-1]) {
			end = quoteEnd(s[:end], value, s[n.start-1:n.start])
		}
	} else if isKey {
		start, end = n.t.settingAt(value, false)
	}
	v := s[start:end]
	switch {
	case isKey && (spared(key, v, start > value) || isTrap(s[n.start:end], "value")), placeholder(v), reference(v):
		return false
	case len(v) < 12 && lowerOnly.has(v) && !hasFold(key, "x-"), in("constant", strings.TrimRight(v, trailing)): // a word
		return false
	}
	return e.mask(s, start, end, KindAuthorization)
}

// isSwitch reports whether the value of a name in capitals is too short for a secret: a word, a count or a list.
func isSwitch(key, v string, spaced, bare bool) bool {
	switch {
	case len(v) < leastPIN && digits(v), spaced &&
		bare && v != "" && indexByte("[{(", v[0]):
		return true
	case len(v) >= 6 || isPassword(key):
		return false
	}
	return letters.has(v) || spaced && digits(v)
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
	return indexByte(";='\"`", before) || strings.HasPrefix(s[start:end], "--") || strings.ContainsAny(s[start:end], "._") || lineStart(s, start)
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

// harmless reports whether the value of a secret name in lower case is not a secret but code
// or a count. weak is set if the name is not secret by itself.
func harmless(v string, weak, code bool) bool {
	if len(v) < 10 && digits(strings.TrimRight(v, trailing)) {
		return true
	}
	v = v[:min(len(v), 256)]
	if code && strings.ContainsAny(v, "([{") {
		return true
	}
	return weak && (len(v) < 16 || strings.ContainsAny(v, "([{ ") || !digit.any(v))
}

// isPIN reports whether v is a number that is the password of a name rather than a count.
func isPIN(name, v string) bool {
	v = strings.TrimRight(v, trailing)
	return isPassword(name) && !strings.EqualFold(name, "pass") &&
		len(v) >= leastPIN && len(v) <= 12 && digits(v)
}

const leastPIN = 4

// beginsProse reports whether the value at s[start:end] is the first word of several without digits.
func beginsProse(s string, start, end int) bool {
	if letter.end(strings.TrimRight(s[start:end], ","), 0) < end-start-1 {
		return false
	}
	return end+1 < len(s) && s[end] == ' ' && letter[s[end+1]]
}

// field masks the value of "name": "value" with the quotes of JSON or Python, also within a JSON
// string, where they have a backslash.
func (n *nameAt) field(value int, quote string, e *edits) bool {
	s, key, kind := n.s, n.text(), KindAssignment
	if !strings.HasSuffix(s[:n.start], quote) {
		return false
	}
	switch {
	case in("header", key), strings.EqualFold(key, "authorization"):
		kind = KindAuthorization
	case !secretName(key):
		return false
	}
	if value = space.end(s, value); !strings.HasPrefix(s[value:], quote) {
		return false
	}
	start := value + len(quote)
	stop := quoteEnd(s, start, quote)
	v := s[start:stop]
	return !placeholder(v) && (kind != KindAssignment || !spared(key, v, true)) && e.mask(s, start, stop, kind)
}

// passphraseEnd returns the end of a passphrase that begins at i: four to 24 words up to the
// end of a sentence or of a line, of which none is typical of sentences. It returns i without one.
func passphraseEnd(s string, i int) int {
	rest := s[i:min(len(s), i+maxBlank)]
	at := 0
	for n := 1; n <= 24; n++ {
		end := lowerDigit.end(rest, at)
		if end-at < 3 || end-at > 12 || isProse(rest[at:end]) || digits(rest[at:end]) {
			return i
		}
		if n >= 4 && (end == len(rest) || indexByte("\n\r\\.,;\"'`)", rest[end])) {
			return i + end
		}
		if end == len(rest) || rest[end] != ' ' {
			return i
		}
		at = end + 1
	}
	return i
}

// isOperand reports whether the value at s[start:end] of the name at s[name:], after an equals sign with blanks around it
// or a colon, is a variable of a program rather than a word that someone chose: a file of settings may hold any word.
func isOperand(s string, name, start, end int) bool {
	v := strings.TrimLeft(strings.TrimRight(s[start:end], ",;"), "&*")
	if v == "" || !identifier.has(v) {
		return false
	}
	line, _, _ := strings.Cut(s[start+strings.IndexByte(s[start:end], v[0]):min(len(s), end+maxCell)], "\n")
	rest := strings.TrimLeft(line[min(len(line), len(v)):], " \t")
	before := s[max(0, name-maxName):name]
	before = strings.TrimRight(before[strings.LastIndexByte(before, '\n')+1:], " \t")
	property := s[name:max(name, strings.LastIndexByte(s[name:start], '.')+name)]
	switch {
	case len(v) < leastPIN, in("variable", v), s[start] == '&', v[0] == '_':
		return true
	case hasAnyPrefix(rest, ";", "//", "and ", "or ", "if ", "? ", "+ ", "|| ", "?? ", "-> ", ", "), rest == ",":
		return true // of a statement, of a literal with fields, one of several
	case strings.HasSuffix(before, ",") || hasAnyPrefix(before, "let", "const", "var "), before == "if":
		return true
	case property == "self", property == "this", s[name] == '.', property != "" && upperOnly.any(s[name+len(property):name+len(property)+2]):
		return true // of an object
	}
	return isStatement(lineBefore(s, name)) || isStatement(lineAfter(s, end))
}

// isStatement reports whether a line is one of a program, rather than of settings or a sentence.
func isStatement(line string) bool {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return false
	}
	first := line[:letters.end(line, 0)]
	if first == "return" || hasAnyPrefix(line, "//", "/*", "} ", "self.", "this.", "@") || in("keyword", first) && hasAnySuffix(line, "{", ":") {
		return true
	}
	call := strings.IndexByte(line, '(')
	return strings.HasSuffix(line, ";") || call > 0 && alnum[line[call-1]] && indexByte("(){", line[len(line)-1])
}

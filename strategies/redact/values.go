package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// settingAt returns the bounds of the value of a setting at i: within its quotes, or up to white space, the end of
// the JSON string around it, or, if pairs is set, the separator of pairs. It keeps the last end of each kind, which all
// values that start before it share, so that one long word is not read once for each of them.
func (t *source) settingAt(i int, pairs bool) (start, end int) {
	s, known := t.s, &t.ends[0]
	if pairs {
		known = &t.ends[1]
	}
	if i == len(s) || space[s[i]] {
		return i, i
	}
	if start, end = literal(s, i); start > i {
		return leftToView(s, start, end)
	}
	if i < known.start || i >= known.end {
		for end = i; end < len(s) && !endsSetting(s, end, pairs); {
			end++
		}
		known.start, known.end = i, end
	}
	return leftToView(s, i, known.end)
}

// endsSetting reports whether the value of a setting ends before the byte at i.
func endsSetting(s string, i int, pairs bool) bool {
	next := byte(0)
	if i+1 < len(s) {
		next = s[i+1]
	}
	switch c := s[i]; c {
	case '&', ';':
		return pairs
	case ',':
		return (pairs || upperOnly[next]) && nextPair(s[i:min(len(s), i+32)])
	case '"':
		return indexByte(",}]:", next)
	case '\\':
		return indexByte(`nrt"`, next)
	default:
		return space[c]
	}
}

// nextPair reports whether s begins with an ampersand in front of an entity, or with a sign in
// front of another parameter.
func nextPair(s string) bool {
	end := wordDot.end(s, 1)
	return end < len(s) &&
		(s[end] == '=' || s[end] == ';' || s[end] == ':' && end > 1)
}

// leftToView returns the bounds of a value, or nothing if it begins with an escape, or has one of a sign, and is in the
// same part of a view without escapes as its name: the rules then read that one.
func leftToView(s string, start, end int) (int, int) {
	if start == end || start > 0 && s[start-1] == '"' {
		return start, end
	}
	if strings.HasPrefix(s[start:end], `\"`) || strings.Contains(s[start:min(end, start+maxName)], `\u00`) {
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
	if end = doubledEnd(s, i); end > i {
		return i + 1, end
	}
	return i, i
}

// isCommand reports whether the back-tick at i, after an equals sign, begins a command of a shell rather than a
// text: NAME=`cat x`.
func isCommand(s string, i int) bool {
	if s[i] != '`' || i == 0 || s[i-1] != '=' {
		return false
	}
	end := doubledEnd(s[:min(len(s), i+maxBlank)], i)
	return strings.Contains(s[i:max(i, end)], " ")
}

// doubledEnd returns the end of the value whose quote is at s[i], in which a quote is doubled or
// follows a backslash, or i if it does not end on the line.
func doubledEnd(s string, i int) int {
	for j := i + 1; j < len(s) && s[j] != '\n'; j++ {
		switch {
		case s[j] == '\\', s[j] == s[i] && j+1 < len(s) && s[j+1] == s[i]:
			j++
		case s[j] == s[i]:
			return j
		}
	}
	return i
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

// lineEnd returns the end of a value that starts at i: the closing quote, any quote if it is
// unquoted, the end of the line, or 4096 bytes.
func lineEnd(s string, i int, open byte) int {
	most := min(len(s), i+4096)
	for ; i < most; i++ {
		switch c := s[i]; {
		case c == '\n' || c == '\r', open != 0 && c == open, open == 0 &&
			(c == '"' || c == '\''):
			return i
		case c == '\\' && i+1 < most &&
			(indexByte("nr", s[i+1]) || s[i+1] == '"' && open != '\n'):
			return i
		}
	}
	return i
}

// lineBreak returns the length of the end of a line at i, also of one that is escaped.
func lineBreak(s string, i int) int {
	for _, end := range []string{"\n", "\r\n", `\n`, `\r\n`} {
		if strings.HasPrefix(s[i:], end) {
			return len(end)
		}
	}
	return 0
}

// endsLine reports whether a line or the string of JSON that has it ends at i.
func endsLine(s string, i int) bool { return i == len(s) || s[i] == '"' || lineBreak(s, i) > 0 }

// lineStart reports whether only white space, a line number, "export" or the dash of a list
// precede i on its line.
func lineStart(s string, i int) bool {
	i = blank.start(s, i, maxBlank)
	if strings.HasSuffix(s[:i], "export") {
		i = blank.start(s, i-len("export"), maxBlank)
	}
	if i > 0 && s[i-1] == '-' {
		i = blank.start(s, i-1, maxBlank)
	}
	if i > 0 && indexByte("|:\t", s[i-1]) {
		i--
	}
	i = blank.start(s, digit.start(s, i, 12), maxBlank)
	return i == 0 || indexByte("\n\r", s[i-1]) || strings.HasSuffix(s[:i], `\n`)
}

// lineBefore returns the line above the one with i.
func lineBefore(s string, i int) string {
	s = strings.ReplaceAll(s[max(0, i-maxBlank):i], `\n`, "\n")
	end := max(0, strings.LastIndexByte(s, '\n'))
	return s[strings.LastIndexByte(s[:end], '\n')+1 : end]
}

// lineAfter returns the line below the one with i.
func lineAfter(s string, i int) string {
	_, s, _ = strings.Cut(strings.ReplaceAll(s[i:min(len(s), i+maxBlank)], `\n`, "\n"), "\n")
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// lastLine returns the line that a text ends with, also of one with escapes.
func lastLine(s string) string {
	for _, end := range []string{"\n", `\n`} {
		if n := strings.LastIndex(s, end); n >= 0 {
			s = s[n+len(end):]
		}
	}
	return s
}

// openers are marks around a value, each with the one that closes it.
var openers = []struct{ open, closing string }{
	{`\\\"`, `\\\"`},
	{`\"`, `\"`},
	{`"`, `"`},
	{"'", "'"},
	{"`", "`"},
	{"「", "」"},
	{"『", "』"},
	{"«", "»"},
	{"“", "”"},
	{"„", "“"},
	{"‘", "’"},
	{"**", "**"},
	{"{", "}"},
}

// valueSet has the bytes of a value in a sentence.
var valueSet = setOf("!#-'*-:=?-Z\\^_a-z~@|")

// valueAt returns the bounds of the value at i, and whether it is in quotes.
func valueAt(s string, i int) (start, end int, quoted bool) {
	limit := min(len(s), i+512)
	i = valueStart(s[:limit], i)
	for _, o := range openers {
		if !strings.HasPrefix(s[i:limit], o.open) || o.open == "**" && strings.HasPrefix(s[i:limit], hidden) {
			continue
		}
		if o.open == "{" && i+1 < limit && indexByte(" \"'\\\n", s[i+1]) { // an object
			return i, i, false
		}
		start = i + len(o.open)
		if n := strings.Index(s[start:limit], o.closing); n > 0 && !strings.Contains(s[start:start+n], "\n") {
			end = start + len(strings.TrimRight(s[start:start+n], " "))
			start, end = leftToView(s, min(end, blank.end(s, start)), end)
			return start, end, true
		}
	}
	for end = i; end < limit; {
		r, size := utf8.DecodeRuneInString(s[end:])
		if r < utf8.RuneSelf && !valueSet[s[end]] ||
			r >= utf8.RuneSelf && (r >= firstScript || !unicode.IsLetter(r)) {
			break
		}
		if s[end] == '\\' && end+1 < limit && indexByte(`nrt"`, s[end+1]) ||
			indexByte("&,", s[end]) && nextPair(s[end:min(limit, end+32)]) {
			break
		}
		end += size
	}
	for end > i && indexByte(".,:;!?*_", s[end-1]) {
		end--
	}
	start, end = leftToView(s, i, end)
	return start, end, false
}

// valueStart returns where a value at i begins: inside of marks, an element, a list or a dump.
func valueStart(s string, i int) int {
	i = blank.end(s, i)
	if i < len(s) && s[i] == '<' {
		if tag := letters.end(s, i+1); tag < len(s) && s[tag] == '>' && in("mark", s[i+1:tag]) {
			i = tag + 1
		}
	}
	if i < len(s) && indexByte("[(N", s[i]) {
		if next := blank.end(s, i+1); next < len(s) && indexByte("'\"", s[next]) && (s[i] != 'N' || next == i+1) {
			i = next
		}
	}
	return i
}

// literalAfter returns where the literal begins that the value at i wraps, Some("x"), or that it falls back
// on, getenv("X") || "x", or i.
func literalAfter(s string, i int) int {
	if at := unwrapped(s, i); at < len(s) && indexByte("'\"`", s[at]) {
		return at
	}
	for at := i; at < min(len(s), i+maxName) && s[at] != '\n' && s[at] != ';'; at++ {
		if at > i+3 && s[at-1] == ' ' && indexByte("'\"`", s[at]) && isFold(s[at-3:at-1], "||", "??", "or", "?:") {
			return at
		}
	}
	return i
}

// unwrapped returns the index after the calls and the prefix of a literal at i: Some("x"), b"x".
func unwrapped(s string, i int) int {
	at := i + len(s[i:]) - len(strings.TrimPrefix(s[i:], "[]"))
	for range 3 {
		end := callSet.end(s[:min(len(s), at+maxCell)], at)
		if end == len(s) || s[end] != '(' || !in("wrapper", lastWord(strings.TrimRight(s[at:end], "!"))) {
			break
		}
		at = end + 1
	}
	if at+1 < len(s) && indexByte("buL@N", s[at]) && indexByte("'\"", s[at+1]) {
		at++ // the prefix of a literal
	}
	return at
}

var callSet = setOf("0-9A-Za-z_.:&! ")

// Scripts without cases.
const (
	firstScript = 0x600 // the first scripts without cases
)

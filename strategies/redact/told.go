package redact

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// told finds values with letters and digits after a word for a secret in any language and any
// notation: after a colon or an equals sign anywhere in a line, also a full-width one, after
// a verb, in the next cell of a table, in an element, and in quotes.
func told(t *source, e *edits) {
	s := t.s
	shell := sync.OnceValue(func() bool { return strings.Contains(s, "$ ") || strings.Contains(s, "PS ") })
	for _, w := range t.found() {
		if w.start < e.end() {
			continue
		}
		name, end, ok := nameOf(s, w)
		if !ok {
			if w.word.text == "cookie" && shell() {
				maskPrinted(s, w.start, w.end, e)
			}
			continue
		}
		toldBefore(s, w, e)
		if shell() {
			maskPrinted(s, w.start, end, e)
		}
		value, gap := valueAfter(s, end, w.word.language)
		following := strings.HasSuffix(s[:name], " following ")
		if below, ok := lineAfter(s, end, value, gap, following); ok {
			toldBelow(s, s[name:end], w, below, following || gap <= assigns && end-name <= maxBelow && lineStart(s, name), e)
		}
		if following {
			continue
		}
		if rest, ok := strings.CutPrefix(s[end:min(len(s), end+maxGap)], " from "); ok && w.word.password { // from x to y
			if v, _, _ := strings.Cut(rest, " "); isShort(v) && (isPersonal(v) || isChosen(v) && alnum.has(v)) && strings.HasPrefix(rest[len(v):], " to ") && !isParsed(s, w.start, v) {
				e.mask(s, end+len(" from "), end+len(" from ")+len(v), KindAssignment)
				continue
			}
		}
		if start, stop := chosenNear(s, end); start < stop && (w.word.typed || w.word.password) && end-name == len(w.word.text) {
			e.mask(s, start, stop, KindAssignment)
			continue
		}
		if gap == noValue {
			continue
		}
		if (gap == assigns || gap == says) && isAny(w.word.text, pairWords) { // credentials: user / password
			if slash := strings.IndexByte(s[value:min(len(s), value+maxGap)], '/'); slash > 0 && !strings.ContainsAny(s[value:value+slash], ".\n:") {
				value += slash + 1
			}
		}
		if w.word.text == "login" && !strings.HasSuffix(s[:value], " /") && (gap != assigns || !isOpaque(s[value:])) {
			continue // a user alone
		}
		if isAny(w.word.text, []string{"mnemonic", "seed", "wallet words"}) {
			if maskMnemonic(s, value, e) || gap == follows {
				continue
			}
		}
		if start := blank.end(s, value); gap == assigns || gap == says && w.word.text == "passphrase" {
			inSentence := s[value-1] == '=' && !lineStart(s, name) // I have password=x here
			if stop := passphraseEnd(s, start); stop > start && !inSentence && (w.word.typed || w.word.password) {
				e.mask(s, start, stop, KindAssignment)
				continue
			}
		}
		if start, stop, quoted := valueAt(s, value); tellable(s, s[name:end], start, stop, gap, quoted, w) {
			e.mask(s, start, stop, KindAssignment)
			if quoted && gap == assigns && strings.HasSuffix(s[:start-1], "[") {
				maskList(s, s[name:end], stop, e)
			}
		}
	}
}

// lineAfter returns the end of the line with the name that ends at i, if its value may be below: nothing is behind
// the name, the sign or the verb, at value, or it is a question, or any words and a colon are behind the name.
func lineAfter(s string, i, value int, gap gap, words bool) (end int, ok bool) {
	limit := min(len(s), i+maxGap)
	switch {
	case words:
		end = i + strings.IndexByte(s[i:limit], ':') + 1
	case gap == assigns || gap == says:
		end = stars.end(s[:limit], value)
	case lineBreak(s, i) > 0:
		end = i
	default:
		if end = questionEnd(s[:limit], i); end < 0 {
			return 0, false
		}
	}
	return end, lineBreak(s, end) > 0
}

// questionEnd returns the end of a question that ends with the name that ends at i, perhaps with what it is for, or -1.
func questionEnd(s string, i int) int {
	n := 0
	if first := letters.end(s, min(len(s), i+1)); first > i+1 && s[i] == ' ' && isAny(s[i+1:first], prepositions) {
		n = strings.IndexAny(s[i:], "?.\n")
	}
	if n < 0 || i+n == len(s) || s[i+n] != '?' {
		return -1
	}
	return i + n + 1
}

var stars = setOf(" \t*`")

// maskMnemonic masks twelve to 24 words, as from which wallets derive their keys, that begin at i or
// behind the next sign, and reports whether there are any. They may be in a list with numbers.
func maskMnemonic(s string, i int, e *edits) bool {
	s = s[:min(len(s), i+512)]
	for _, at := range []int{i, i + max(0, strings.IndexAny(s[i:min(len(s), i+maxGap)], ":=[\"'`\n"))} {
		start := wordGap(s, at)
		end, n, prose := start, 0, 0
		for at = start; n < 24; n, at = n+1, wordGap(s, end) {
			stop := lowerOnly.end(s, at)
			if stop-at < 3 || stop-at > 8 || n > 1 && strings.Contains(s[end:at], "\n") && !strings.Contains(s[start:end], "\n") {
				break
			}
			if isProse(s[at:stop]) {
				prose++
			}
			end = stop
		}
		if n >= 12 && prose < 3 {
			e.mask(s, start, end, KindAssignment)
			return true
		}
	}
	return false
}

// wordGap returns the index behind what separates the words of a list at i.
func wordGap(s string, i int) int {
	i = mnemonicGap.end(s[:min(len(s), i+8)], i)
	if n := digit.end(s[:min(len(s), i+2)], i); n > i && n < len(s) && indexByte(".):", s[n]) {
		i = blank.end(s[:min(len(s), n+4)], n+1)
	}
	return i
}

var mnemonicGap = setOf(" \t\r\n\"'`,:=[")

// nameOf returns the bounds of the name with a word, if it denotes a secret.
func nameOf(s string, w wordAt) (start, end int, ok bool) {
	if w.word.language {
		last, _ := utf8.DecodeLastRuneInString(s[:w.end])
		if r, _ := utf8.DecodeRuneInString(s[w.end:]); last < firstScript && r < 0x250 && unicode.IsLetter(r) {
			return 0, 0, false // part of a longer word
		}
		before, _ := utf8.DecodeLastRuneInString(s[:w.start])
		if hasAnyPrefix(s[w.end:], otherKeyKinds...) {
			return 0, 0, false
		}
		return w.start, w.end, s[w.start] >= 0x80 || !unicode.IsLetter(before) || before > 0x250
	}
	start = wordDot.start(s, w.start, maxName)
	end = wordDot.end(s[:min(len(s), w.end+maxName)], w.end)
	for end > w.end && !alnum[s[end-1]] {
		end--
	}
	name := s[start:end]
	if inARN(s, start) {
		return 0, 0, false
	}
	if name == w.word.text && w.word.secret && name != "auth" {
		return start, end, true
	}
	if end-start > len(w.word.text) && isAny(lastWord(name), aboutSecrets) {
		return 0, 0, false
	}
	return start, end, secretName(name) && !strings.EqualFold(name, "auth") || strings.EqualFold(name, "key") && (keyOf(s[max(0, start-12):start]) || s[start:end] == "key" && strings.HasPrefix(s[end:], " is ") && isWireless(s[max(0, start-maxCell):start])) || isAny(name, toldNames) || isNumberName(name) || strings.HasSuffix(name, ".login")
}

// otherKeyKinds are the beginnings of what follows a word for a key that is not secret: clave primaria, clé publique.
var otherKeyKinds = []string{" primari", " primár", " primai", " foráne", " étrang", " estrang", " públic", " publi", " pubbli"}

// isWireless reports whether the sentence before a name is about a wireless network.
func isWireless(before string) bool {
	before = strings.ToLower(before[strings.LastIndexAny(before, ".\n")+1:])
	return strings.Contains(before, "wifi") || strings.Contains(before, "wi-fi") || strings.Contains(before, "wlan")
}

// toldNames lists names of secrets that are secret only in the notations of told.
var toldNames = []string{"psk", "login", "pin", "pin code", "otp", "totp", "mnemonic", "seed", "seed_phrase", "seed phrase", "creds", "passcode", "key content", "wallet words", "alarm code", "door code", "gate code", "safe code", "entry code", "setup code", "pairing code", "access code", "unlock code", "verification code", "subscription-key", "ocp-apim-subscription-key"}

// settings lists names of secrets with a blank in front of the value.
var settings = []string{"requirepass", "masterauth", "storepass", "keypass"}

// gap is what is between a name and its value.
type gap int

const (
	noValue  gap = iota
	assigns      // a colon, an equals sign, an arrow
	says         // a verb
	follows      // blanks
	encloses     // the tags of an element, the bar of a table, an empty line
)

// valueAfter returns the start of the value of a name that ends at i, and what is between.
func valueAfter(s string, i int, language bool) (int, gap) {
	limit := min(len(s), i+maxGap)
	if strings.HasPrefix(s[i:limit], "'s ") { // the password's x
		return i + len("'s "), says
	}
	quoted := i
	for i < limit && strings.IndexByte("*_`\"'\\)]", s[i]) >= 0 {
		i++
	}
	closed := i > quoted
	if closed && strings.ContainsAny(s[quoted:i], `"'`) {
		if rest := strings.TrimPrefix(s[i:limit], "\r"); strings.HasPrefix(rest, "\n\n") || strings.HasPrefix(rest, "\n\r\n") { // of a form in parts
			return space.end(s, i), encloses
		}
		if after := space.end(s[:limit], i); after < limit && s[after] == ':' {
			i = after
		}
	}
	if n := separator(s[i:limit]); n > 0 {
		return i + n, assigns
	}
	if n := element(s[i:limit]); n > 0 {
		return i + n, encloses
	}
	after := blank.end(s[:limit], i)
	if after < limit && indexByte("[(", s[after]) { // key [None]: x
		if n := strings.IndexAny(s[after:min(limit, after+maxBelow)], "])"); n > 0 && after+n+1 < limit && s[after+n+1] == ':' {
			return after + n + 2, assigns
		}
	}
	if numbered := digit.end(s[:min(limit, after+3)], after); after > i && numbered > after && numbered < limit && s[numbered] == ':' { // key 2: x
		return numbered + 1, assigns
	}
	if after < limit && (s[after] == '|' || s[after] >= 0x80) {
		for _, bar := range []string{"|", "│", "║", "┃"} {
			if strings.HasPrefix(s[after:limit], bar) {
				return after + len(bar), encloses
			}
		}
	}
	if !language && after == i || closed {
		return 0, noValue
	}
	if n := verb(s[after:limit]); n > 0 {
		return after + n, says
	}
	if after+2 < limit && indexByte("05789", s[after]) && s[after+1] == ' ' { // the kind of a password of Cisco
		return after + 2, says
	}
	for _, prefix := range []string{"ENC ", "<(echo "} { // of Fortinet, of a shell
		if strings.HasPrefix(s[after:limit], prefix) {
			return after + len(prefix), says
		}
	}
	if rest := s[after:limit]; hasFold(rest, "id") && separator(rest[len("id"):]) > 0 && strings.EqualFold(s[i-min(i, len("secret")):i], "secret") { // of Nomad
		return after + len("id") + separator(rest[len("id"):]), assigns
	}
	if strings.HasPrefix(s[after:limit], "for the [") { // of Elasticsearch
		const reset = "reset.\nNew value: "
		if n := strings.Index(s[after:limit], reset); n > 0 {
			return after + n + len(reset), assigns
		}
	}
	if n := filler(s[after:limit]); n > 0 {
		return pastWords(s[:limit], after+n)
	}
	if end := letter.end(s[:limit], after); language && end > after && !isProse(s[after:end]) { // mdp admin : x
		if value, gap := pastWords(s[:limit], blank.end(s[:min(limit, end+1)], end)); gap != noValue {
			return value, gap
		}
	}
	return after, follows
}

// pastWords returns the start of the value behind the words between a name and a separator or verb at i.
func pastWords(s string, i int) (int, gap) {
	if n := max(separator(s[i:]), verb(s[i:])); n > 0 {
		return i + n, says
	}
	return 0, noValue
}

const (
	maxGap   = 96
	maxBelow = 24 // bytes of a name on a line of its own
)

// separator returns the length of blanks and a sign between a name and a value.
func separator(s string) int {
	i := blank.end(s, 0)
	if strings.HasPrefix(s, " - ") {
		i = 0
	}
	rest := s[i:]
	if rest == "" || !separatorStart[rest[0]] {
		return 0
	}
	for _, sign := range []string{":=", "=>", "->", " - ", ":", "=", "：", "＝", "—", "–", "→", "👉", "? It's "} {
		if strings.HasPrefix(rest, sign) {
			if n := len(sign); n < len(rest) && strings.IndexByte("=:/~", rest[n]) >= 0 {
				return 0 // a comparison, an address
			}
			if isRole(rest) {
				return 0
			}
			return i + len(sign)
		}
	}
	return 0
}

var separatorStart = setOf("=:? \xe2\xef\xf0-")

// element returns the length of the end of a tag and, in a property list, the tag of the value.
func element(s string) int {
	if s == "" || !indexByte("<>& ", s[0]) || strings.IndexByte(s, '>') < 0 && s[0] != '&' {
		return 0
	}
	if rest, ok := strings.CutPrefix(s, "</Key>"); ok { // of a store of passwords
		if at := space.end(rest, 0); strings.HasPrefix(rest[at:], "<Value") {
			if n := strings.IndexByte(rest[at:], '>'); n > 0 {
				return len(s) - len(rest) + at + n + 1
			}
		}
	}
	for _, open := range []string{">", "&gt;", "</key>"} {
		rest, ok := strings.CutPrefix(s, open)
		if !ok {
			continue
		}
		for _, tag := range []string{"<Value>", "<value>", "<string>"} { // within another
			if at := space.end(rest, 0); strings.HasPrefix(rest[at:], tag) {
				return len(open) + at + len(tag)
			}
		}
		return len(open)
	}
	if strings.HasPrefix(s, " ") {
		if n := strings.IndexAny(s, "<>\n"); n > 0 && s[n] == '>' && s[n-1] != '/' && strings.Contains(s[:n], `="`) {
			return n + 1
		}
	}
	return 0
}

// verb returns the length of a verb before a value.
func verb(s string) int {
	if s == "" {
		return 0
	}
	for _, v := range verbsByFirst[s[0]] {
		if rest, ok := strings.CutPrefix(s, v); ok && (v[0] >= 0xe3 || rest != "" && indexByte(" :\r\n\\", rest[0])) {
			rest = strings.TrimLeft(rest, " :")
			if end := strings.IndexByte(rest, ' '); end > 0 && slices.Contains(adverbs, rest[:end]) {
				rest = rest[end+1:]
			}
			return len(s) - len(rest)
		}
	}
	return 0
}

// filler returns the length of words between a name and a separator or verb: a preposition and
// up to four more.
func filler(s string) int {
	i := 0
	for n := range 6 {
		end := fillerWord.end(s, i) - i
		if end == 0 || i+end == len(s) || s[i+end] == '\n' || strings.IndexByte(s[i:i+end], '%') >= 0 && s[i] != '\'' {
			return 0
		}
		if n == 0 && !isAny(s[i:i+end], prepositions) {
			return 0
		}
		if i += end; s[i] != ' ' {
			return i
		}
		if n > 0 && (verb(s[i+1:]) > 0 || separator(s[i:]) > 0) {
			return i + 1
		}
		i++
	}
	return 0
}

// fillerWord has the bytes of the words of filler.
var fillerWord = setOf("\x00-\t\x0b-\x1f!-9;<>-\xff")

// marks are the elements of HTML for a value.
var marks = []string{"b", "i", "em", "strong", "code", "span", "td", "kbd", "pre", "tt"}

// openers are marks around a value, each with the one that closes it.
var openers = []struct{ open, closing string }{
	{`\\\"`, `\\\"`}, {`\"`, `\"`}, {`"`, `"`}, {"'", "'"}, {"`", "`"}, {"「", "」"}, {"『", "』"}, {"«", "»"}, {"“", "”"}, {"„", "“"}, {"‘", "’"}, {"**", "**"}, {"{", "}"},
}

// valueAt returns the bounds of the value at i, and whether it is in quotes.
func valueAt(s string, i int) (start, end int, quoted bool) {
	limit := min(len(s), i+512)
	i = blank.end(s[:limit], i)
	if strings.HasPrefix(s[i:limit], "** ") {
		i += len("** ")
	}
	if i < limit && s[i] == '<' {
		if tag := letters.end(s[:limit], i+1); tag < limit && s[tag] == '>' && isAny(s[i+1:tag], marks) {
			i = tag + 1
		}
	}
	if next := space.end(s[:limit], i); next > i && strings.HasPrefix(s[next:limit], "string(") { // of PHP
		if n := strings.Index(s[next:limit], ") \""); n > 0 && n < maxBelow {
			i = next + n + len(") ")
		}
	}
	if i < limit && indexByte("[(N", s[i]) {
		if next := blank.end(s[:limit], i+1); next < limit && indexByte("'\"", s[next]) && (s[i] != 'N' || next == i+1) {
			i = next
		}
	}
	if i < limit && s[i] == '{' {
		if end := alnum.end(s[:limit], i+1); end > i+1 && end+1 < limit && s[end] == '}' && alnum[s[end+1]] {
			i = end + 1 // behind its kind: {AES}x
		}
	}
	for _, o := range openers {
		if !strings.HasPrefix(s[i:limit], o.open) {
			continue
		}
		if o.open == "{" && i+1 < limit && strings.IndexByte(" \"'\\\n", s[i+1]) >= 0 { // an object
			if n := objectValue(s[i:limit]); n > 0 {
				return valueAt(s, i+n)
			}
			return i, i, false
		}
		start = i + len(o.open)
		if n := strings.Index(s[start:limit], o.closing); n > 0 && !strings.Contains(s[start:start+n], "\n") {
			end = start + n
			for end > start && s[end-1] == ' ' {
				end--
			}
			start, end = leftToView(s, blank.end(s[:end], start), end)
			return start, end, true
		}
	}
	end = scriptEnd(s[:limit], i)
	for end < limit {
		r, size := utf8.DecodeRuneInString(s[end:])
		if r >= utf8.RuneSelf && (r >= 0x600 || !unicode.IsLetter(r)) || r < utf8.RuneSelf && !toldSet[s[end]] {
			break
		}
		if s[end] == '\\' && end+1 < limit && indexByte(`nrt"`, s[end+1]) || (s[end] == '&' || s[end] == ',') && nextPair(s[end:min(limit, end+32)]) {
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

// objectValue returns the index after "value": in the object at the beginning of s, or 0.
func objectValue(s string) int {
	s, _, _ = strings.Cut(s, "}")
	for _, name := range []string{`"value":`, `\"value\":`, `'value':`} {
		if n := strings.Index(s, name); n > 0 && strings.Count(s[:n], "{") == 1 {
			return n + len(name)
		}
	}
	return 0
}

// nextPair reports whether s begins with an ampersand in front of an entity, or with a sign in
// front of another parameter.
func nextPair(s string) bool {
	end := wordDot.end(s, 1)
	return end < len(s) && (s[end] == '=' || s[end] == ';' || s[end] == ':' && end > 1)
}

var toldSet = setOf("!#-'*-:=?-Z\\^_a-z~@|")

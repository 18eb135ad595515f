package redact

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tellable reports whether s[start:end] looks like the secret of a word.
func tellable(s, name string, start, end int, g gap, quoted bool, w wordAt) bool {
	v := s[start:end]
	if g == follows && !quoted && !mixed(v) && !jagged(v) {
		return false // the next word, as in most sentences
	}
	spaced := strings.Contains(v, " ")
	least := 6
	number := len(v) >= leastPIN && digits(v) && (w.word.typed || isPassword(name) || isNumberName(name))
	if number {
		least = leastPIN
	}
	if !number && isNumberName(name) && positionSet.has(v) && strings.Count(v, "-") > 0 && len(v) >= 8 && g == assigns {
		return !isDate(v) // 717-37-738
	}
	first, _ := utf8.DecodeRuneInString(v)
	switch {
	case start == end, v[0] == '@' && g == encloses, isCommand(s, start-1), len(v) < least, len(v) > 512, w.word.text == "seed", w.word.text == "wallet words", spared(name, v, quoted), reference(s[start:min(len(s), end+1)]):
		return false
	case strings.ContainsAny(v, "<>") || strings.Contains(v, "://") || isPath(v) || technical(v) || selfNamed(v) || isParsed(s, w.start, v):
		return false
	case strings.HasSuffix(s[:start], "→ ") && len(v) <= maxShortCommit && isHex(v): // what a commit about a token became
		return false
	case quoted && spaced:
		return (mixed(v) && (len(v) >= 10 || inDSN(s, start, end)) || passphraseEnd(v, 0) == len(v)) && g != follows
	case digits(v):
		return number && len(v) <= 12 && (g == assigns || g == says) && !strings.EqualFold(name, "pass") && !isUnit(s[end:])
	case first >= firstScript:
		return (g == assigns || g == says) && isScriptSecret(s, start, end)
	case (g == follows || g == says && !hasAnySuffix(s[:start], "is ", "was ", ": ")) && strings.EqualFold(name, "pass"): // or a verb
		return mixed(v) && digit.any(v) && aboutUser(s[max(0, w.start-maxCell):w.start])
	case g == follows && mixed(v) && digit.any(v) && !plainWords(v) && ((quoted || endsLine(s, end)) && aboutUser(s[max(0, w.start-maxCell):w.start]) || endsSecret(name) && isSetting(s, w.start, end)):
		return true
	case g == assigns && isTyped(v) && (w.word.typed || isPassword(name)) && strings.ContainsAny(s[w.end:start], ":=") && aboutUser(s[max(0, w.start-maxCell):w.start]):
		return true
	case g == says && isTyped(v) && isPassword(name) && len(v) >= 8 && isOwn(s[max(0, w.start-maxCell):w.start]) && !isAdjective(v) && (end == len(s) || indexByte(".,;\n", s[end])):
		return true
	case g == assigns && (isPassword(name) || w.word.typed) && letters.has(v) && len(v) >= 8 && upperOnly.any(v) && lowerOnly.any(v) && !isCamel(v) && kindChanges(v) >= 3:
		return !isVariable(name, v)
	case g == encloses && !quoted && upperName(name, 0, len(name)) == 0 && endsSecret(name) && len(v) >= 12 && isTyped(v):
		return true
	case g == follows && quoted && s[w.start:w.end] == "PASSWORD": // of SQL
		return isTyped(v) || s[start-1] == '\'' && !secretName(v) && !isProse(v)
	case g == says && quoted && isTyped(v):
		return w.word.typed || isPassword(name)
	case g == assigns && w.word.typed && isTyped(v):
		script, _ := utf8.DecodeRuneInString(s[w.start:])
		return script >= firstGreek // the letters of the value are not those of the text
	case !mixed(v) && !jagged(v) || !digit.any(v) && !isRandom(v) && !jagged(v) && g != assigns:
		return false
	case end < len(s) && indexByte("([{<", s[end]) && (g != encloses && s[start-1] != '>' || s[end] != '<') || !quoted && expands(v):
		return false
	case g == encloses && !quoted && strings.Contains(s[max(0, start-2):start], "|"):
		return len(v) >= 8
	case g == follows && quoted && (plainWords(v) || w.word.text == "secret" && strings.Contains(v, "-") && resourceSet.has(v) && shortNumbers(v)), isHex(v) && strings.HasSuffix(s[:start], ") = "): // the name of a secret, the hash of a file
		return false
	case g == follows && (quoted && isPassword(name) || upperName(name, 0, len(name)) == 0 && strings.Contains(name, "_") && upperSecret(name) && endsLine(s, end)) && isShort(v):
		return true
	case g == follows:
		return (len(v) >= 8 || len(v) == 7 && w.word.language) && (quoted || w.word.language || threeKinds(v) || jagged(v) || lowerOnly.any(v) && (isAny(s[w.start:w.end], []string{"password", "pw"}) || isAny(name, settings)) ||
			len(v) >= 32 && isHex(v) && !upperOnly.any(v))
	}
	return true
}

// endsLine reports whether a line or the string of JSON that has it ends at i.
func endsLine(s string, i int) bool { return i == len(s) || s[i] == '"' || lineBreak(s, i) > 0 }

// maxSelfNamed bounds what selfNamed reads: a value may be as long as the text, and another
// one begin with each of its characters.
const maxSelfNamed = 64

// aboutUser reports whether the line that a text ends with names a user.
func aboutUser(before string) bool {
	before = strings.ToLower(lastLine(before))
	return slices.ContainsFunc(userWords, func(w string) bool { return strings.Contains(before, w) })
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

var userWords = strings.Fields("user login identifiant utilisateur usuario utente benutzer gebruiker логин 用户名 账号")

// isOwn reports whether a text ends in words for what belongs to who says so: my laptop.
func isOwn(before string) bool {
	words := strings.FieldsFunc(before[strings.LastIndexAny(before, ".!?\n")+1:], func(r rune) bool { return r < 'A' })
	return slices.ContainsFunc(words[max(0, len(words)-3):], func(w string) bool { return isAny(w, []string{"my", "our"}) })
}

// isAdjective reports whether v ends as words do that tell of a password.
func isAdjective(v string) bool {
	return hasAnySuffix(v, "ed", "ing", "able", "ible", "ful", "ory", "ive", "ant", "ent", "al", "ous", "ly", "ic", "less", "en", "ult", "ough", "ere", "ong")
}

// isSetting reports whether a line of a file of settings is the name at i and a value that ends at end.
func isSetting(s string, i, end int) bool {
	return lineStart(s, wordDot.start(s, i, maxName)) && endsLine(s, end) && lowerOnly[s[i]]
}

// selfNamed reports whether v is a name such as token2 or password_1.
func selfNamed(v string) bool {
	if len(v) > maxSelfNamed {
		return false
	}
	bare := strings.TrimRight(v, "0123456789")
	name := strings.TrimRight(bare, "_-")
	return len(v)-len(bare) < 3 && secretName(name) && !joined(lastWord(name)) && 2*kindChanges(v) <= len(v) // not X0Pw0m
}

// technical reports whether v is a measure such as 2048-bit, or the name of a format or of an
// algorithm with its number, alone or with other words.
func technical(v string) bool {
	v = strings.TrimLeft(v, "*&")
	if n := digit.end(v, 0); n > 0 && n < len(v) && (v[n] == '-' || v[n] == '.' || v[n] == '/' || v[n] == ',') && lowerDot.end(v, n+1) == len(v) {
		return true
	}
	n := letters.end(v, 0)
	first := n + len(v[n:]) - len(strings.TrimPrefix(v[n:], "-")) // SHA-256
	m := digit.end(v, first)
	if m == first || m < len(v) && alnum[v[m]] {
		return false
	}
	return isAny(v[:n], []string{"sha", "md", "hs", "rs", "es", "ps", "aes", "rsa", "utf", "ipv", "oauth", "base", "ed", "k", "x", "v", "h", "log", "argon", "pbkdf", "bcrypt", "python", "node", "php", "tls", "ssl", "http", "uint", "int", "float", "complex"}) &&
		(m == len(v) || strings.IndexByte("-_.,/", v[m]) >= 0 && resourceSet.has(strings.TrimRight(v[m+1:], ",")))
}

// toldBefore masks a secret in front of a word for it: x is the password, use x as the password, MOVE "x" TO DB-PASSWORD.
func toldBefore(s string, w wordAt, e *edits) {
	if !w.word.password && !w.word.typed {
		return
	}
	name := wordDot.start(s, w.start, maxName)
	for _, verb := range []string{" to ", " into "} {
		if end := name - len(verb); end > 0 && s[name-1] == ' ' && indexByte("'\"", s[end-1]) && hasFold(s[end:], verb) {
			start := end - 1 - len(s[max(0, end-1-maxGap):end-1]) + strings.LastIndexByte(s[max(0, end-1-maxGap):end-1], s[end-1]) + 1
			if isShort(s[start : end-1]) {
				e.mask(s, start, end-1, KindAssignment)
			}
		}
	}
	if w.start == 0 || s[w.start-1] != ' ' || w.word.language || !w.word.password {
		return
	}
	before, ok := s[max(0, w.start-maxGap):w.start], false
	for _, verb := range []string{" is ", " as "} {
		for _, article := range []string{"", "the ", "my ", "our ", "your "} {
			if rest, found := strings.CutSuffix(before, verb+article); found {
				before, ok = strings.TrimRight(rest, "\"'`"), true
			}
		}
	}
	if rest := s[w.end:min(len(s), w.end+8)]; !ok || strings.HasPrefix(rest, " ") && !hasAnyPrefix(rest[1:], "for ", "of ", "on ", "to ", "in ", "and ") {
		return
	}
	end := w.start - len(s[max(0, w.start-maxGap):w.start]) + len(before)
	start := end
	for start > 0 && end-start < maxGap && toldSet[s[start-1]] {
		start--
	}
	if isChosen(s[start:end]) {
		e.mask(s, start, end, KindAssignment)
	}
}

// isChosen reports whether v looks like a password that someone chose, without a name for it.
func isChosen(v string) bool { return len(v) >= 8 && isShort(v) }

// isShort is isChosen for a place where passwords are, so that a shorter one is one too.
func isShort(v string) bool {
	return len(v) >= 6 && (digit.any(v) || isRandom(v)) && mixed(v) && !technical(v) && !isPath(v) && !selfNamed(v) && !placeholder(v) && !reference(v) && !isHex(v)
}

// isPersonal reports whether v has signs as passwords have, is a word with capitals, digits and any sign, or is random.
func isPersonal(v string) bool {
	return chosenSigns(v) || threeKinds(v) && !alnum.has(v) || isRandom(v)
}

// toldBelow masks the secret that is alone on a line below the one with its name that ends at i: on the next, or
// behind an empty one, the fence of a block of code, or the name of who says it. plain is set where any password
// may follow, rather than one with signs.
func toldBelow(s, name string, w wordAt, i int, plain bool, e *edits) {
	limit, sign := min(len(s), i+maxGap), i > 0 && s[i-1] == ':'
	for range 3 {
		size := lineBreak(s, i)
		if size == 0 {
			break
		}
		i = quoteMarks.end(s[:limit], i+size)
		if strings.HasPrefix(s[i:limit], "```") {
			i = letters.end(s[:limit], i+len("```"))
		}
	}
	if speaker := letters.end(s[:limit], i); speaker > i && speaker < limit && s[speaker] == ':' {
		i = speaker + 1
	}
	start, end, quoted := valueAt(s, i)
	signed := end < len(s) && s[end] == '!' && !quoted
	if last := behindSet.end(s[:min(len(s), end+4)], end); last < len(s) && lineBreak(s, last) == 0 {
		return
	}
	v := s[start:end]
	chosen := (w.word.typed || isPassword(name)) && (plain || w.word.text != "pass") && len(v) >= 8 && digit.any(v) && mixed(v) && (plain || signed || isPersonal(v))
	if (chosen || jagged(v) && threeKinds(v) || sign && isOpaque(v)) && !spared(name, v, quoted) && !technical(v) && !selfNamed(v) && positionSet.end(v, 0) < len(v) {
		e.mask(s, start, end, KindAssignment)
	}
}

var quoteMarks = setOf(" \t>*")

var behindSet = setOf("`*\"'.,!?")

// numberNames lists names of secrets that are numbers.
var numberNames = []string{"pin", "pin code", "otp", "totp", "alarm code", "door code", "gate code", "safe code", "entry code", "setup code", "pairing code", "access code", "unlock code", "verification code"}

// isNumberName reports whether a name is one of numberNames.
func isNumberName(name string) bool {
	return name != "" && indexByte("enp", name[len(name)-1]|0x20) && isAny(strings.ReplaceAll(name, "_", " "), numberNames)
}

// isTyped reports whether v is a word that may be a password, rather than one about passwords.
func isTyped(v string) bool {
	return len(v) >= 6 && lowerOnly.end(v, 0) == len(v) && !isAny(v, examples) && !isAny(v, constants) && !isProse(v) && !secretName(v)
}

// isUnit reports whether s begins with a noun in the plural, of which a number in front of it is
// the count.
func isUnit(s string) bool {
	if !strings.HasPrefix(s, " ") && !strings.HasPrefix(s, "-") {
		return false
	}
	end := letters.end(s[:min(len(s), 24)], 1)
	w := s[1:end]
	return len(w) > 4 && w[len(w)-1] == 's' || isAny(w, []string{"char", "digit", "bit", "byte", "bits", "zeichen", "tegn", "tecken"}) || end == 1 && len(s) > 1 && s[1] >= 0x80
}

// Scripts without cases.
const (
	firstGreek  = 0x370 // the first letters that are not Latin
	firstScript = 0x600 // the first scripts without cases
)

// scriptEnd returns the end of a run of letters without cases at i if a digit is next, or i:
// words of such a script often follow a value without a blank.
func scriptEnd(s string, i int) int {
	end := i
	for range 16 {
		r, size := utf8.DecodeRuneInString(s[end:])
		if r < firstScript || !unicode.In(r, unicode.L, unicode.M) {
			break
		}
		end += size
	}
	if end < len(s) && digit[s[end]] {
		return end
	}
	return i
}

// isScriptSecret reports whether letters without cases and digits behind them at s[start:end] are
// a secret rather than words and a number, such as a least length.
func isScriptSecret(s string, start, end int) bool {
	v := s[start:end]
	n := len(v) - len(strings.TrimRight(v, "0123456789"))
	if n < 2 || n == 2 && strings.ContainsAny(v, "少低最上长長度限以超") {
		return false
	}
	next, _ := utf8.DecodeRuneInString(s[end:])
	return next < firstScript || !unicode.IsLetter(next) || hasAnyPrefix(s[end:], "です", "でした", "に", "입니다", "이에요", "예요", "로", "了", "吧")
}

// chosenNear returns the bounds of a password that someone chose among the words that follow i in a
// sentence, such as after a verb of change: password of x changed to y. They are the same without one.
func chosenNear(s string, i int) (start, end int) {
	if i+1 < len(s) && s[i] == ',' && s[i+1] == ' ' {
		i++
	}
	limit := wordsOfSentence.end(s[:min(len(s), i+maxGap)], i)
	if !passwordSigns.any(s[i:limit]) {
		return i, i
	}
	for range 7 {
		start = scriptEnd(s[:limit], blank.end(s[:limit], i))
		end = start
		for end < limit && !space[s[end]] && s[end] < 0x80 {
			end++
		}
		if start == i && i > 0 && i < limit && s[i] < 0x80 && s[i-1] < 0x80 {
			break // of the same word
		}
		v := strings.TrimRight(s[start:end], ".,:;!?")
		if end+1 < limit && lowerOnly[s[end+1]] { // the sentence goes on
			v = strings.TrimRight(s[start:end], ".,:;")
		}
		if isChosen(v) && letters.any(v) && (chosenSigns(v) || passwordSigns[v[len(v)-1]] && threeKinds(v)) {
			return start, start + len(v)
		} else if end == start && end < limit {
			for end < limit && !space[s[end]] && (s[end] >= 0x80 || !alnum[s[end]]) { // a word of another script
				end++
			}
		}
		if i = end; i == limit || indexByte(".!?:", s[i-1]) {
			break
		}
	}
	return i, i
}

// chosenSigns reports whether v has signs as passwords have, rather than those of names.
func chosenSigns(v string) bool {
	v = strings.TrimLeft(v[:len(v)-1], "*&") // of a pointer
	if strings.Contains(v, "@") && strings.Contains(v[strings.IndexByte(v, '@'):], ".") {
		return false // a mail address
	}
	return passwordSigns.any(v)
}

var (
	// wordsOfSentence are the characters of a sentence without quotations, code and lists.
	wordsOfSentence = setOf("\x01-\t\r !#$%&*+,./0-9:?@A-Z^_a-z~\x80-\xff-")
	// passwordSigns are the signs of passwords rather than names.
	passwordSigns = setOf("!#$%&*+^~@?")
)

// maxShortCommit is the length of the longest short id of a commit.
const maxShortCommit = 12

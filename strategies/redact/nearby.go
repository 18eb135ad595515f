package redact

import (
	"slices"
	"strings"
)

// near finds random words behind a word for a secret on the same line, with other words between: the argument of a
// command, a header in the settings of a server, what a log tells.
func near(t *source, e *edits) {
	s, words := t.s, t.found()
	before, last := 0, -1 // the place of the long word before, the last word in front of this one
	for _, i := range t.long {
		start := nearSet.start(s, i, i-before)
		same := start == before
		if before = i; same {
			continue // a part of it
		}
		for last+1 < len(words) && words[last+1].end <= start {
			last++
		}
		if (last < 0 || words[last].start <= start-maxGap) && (start < leastKnown || s[start-1] != ' ' && s[start-2] != ' ') {
			continue // neither behind a word nor in a header nor an argument
		}
		if !upperOnly.any(s[i:min(len(s), i+minShown)]) {
			continue // a hash
		}
		end := nearSet.end(s, i)
		end = base64Pad.end(s[:min(len(s), end+2)], end)
		if end-start >= leastCertain && threeKinds(s[start:end]) && (end == len(s) || !indexByte("([{:", s[end])) &&
			(named(s, words[:last+1], start) || inHeader(s, start) || inConstructor(s, start)) && isCertain(s[start:end]) {
			e.mask(s, start, end, KindAssignment)
		}
	}
}

// named reports whether the last word for a secret is soon in front of i, with nothing between but words that are not
// about something else.
func named(s string, words []wordAt, i int) bool {
	for n := len(words) - 1; n >= 0 && words[n].start > i-maxGap; n-- {
		if !words[n].word.near {
			continue
		}
		start := wordDot.start(s, words[n].start, maxName)
		end := wordDot.end(s[:i], words[n].end)
		name := s[start:end]
		if words[n].word.text == "sid" && end > words[n].end {
			return false // inside
		}
		return plainGap(s[end:i]) && !isAny(lastWord(s[max(0, start-maxCell):max(0, start-1)]), publicWords) && !isAny(lastWord(name), aboutSecrets) &&
			!isAny(lastWord(name), publicWords) && !strings.Contains(strings.ToLower(name), "pub") && !identifies(name) && !isPage(name) && !inARN(s, start)
	}
	return false
}

// inHeader reports whether the value at i is that of a header of a service that does not tell things apart.
func inHeader(s string, i int) bool {
	if i < 3 || s[i-1] != ' ' || s[i-2] != ':' {
		return false
	}
	name := s[hyphen.start(s, i-2, maxName) : i-2]
	return hasFold(name, "x-") && !slices.ContainsFunc(strings.Split(name, "-"), func(w string) bool {
		return isAny(w, publicWords) || isAny(w, pageWords) || isAny(w, []string{"request", "trace", "amz", "goog", "served", "cache"})
	})
}

// inConstructor reports whether the value at i is in quotes and an argument of a constructor of which the ones before
// are in quotes too: Pusher('12', 'k', 'x').
func inConstructor(s string, i int) bool {
	if i < leastKnown || !indexByte("'\"", s[i-1]) || s[i-3:i-1] != ", " {
		return false
	}
	line := lastLine(s[max(0, i-maxGap) : i-3])
	open := strings.LastIndexByte(line, '(')
	if open <= 0 || !upperOnly[line[alnum.start(line, open, maxCell):][0]] || strings.Contains(line[open:], "+") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(line[open+1:], ", "), func(v string) bool {
		return len(v) < 3 || v[0] != s[i-1] || v[len(v)-1] != s[i-1]
	})
}

// plainGap reports whether a text begins with a blank or a sign and has nothing but a few words that are not about
// something public, nor a field of an object.
func plainGap(s string) bool {
	for at, n := 0, 0; ; n++ {
		start := nearGap.end(s, at)
		if start == at {
			return false
		} else if start == len(s) {
			return true
		}
		at = nearSet.end(s, start)
		if v := s[start:at]; isAny(v, valueFields) {
			continue
		} else if n == maxBetween || !nameSet.has(strings.TrimRight(v, ".")) || isAny(lastWord(v), publicWords) || strings.HasPrefix(s[at:], `":`) {
			return false
		}
	}
}

const maxBetween = 5 // words

// nearWords are those of near that are no names of secrets by themselves.
var nearWords = strings.Fields("key auth cookie unseal sid")

var (
	nearSet = setOf("0-9A-Za-z_+/.~-")
	nearGap = setOf(" \t\"'`:=(,>")
	// publicWords are those for random words that are not secret.
	publicWords = strings.Fields("public pub fingerprint thumbprint hash checksum digest sum sha md id ids uuid guid cursor etag page next version integrity commit revision nonce site path file url uri image")
)

// isCertain reports whether v is random whatever it is the value of, and no hash, no public key and no id of a service.
func isCertain(v string) bool {
	if len(v) < leastCertain || len(v) > 512 || !jagged(v) || isHex(v) || entropy(v) < 3.5 || hasAnyPrefix(v, "AAAA", "MII", "sha", "SHA") || isPath(v) || strings.Count(v, "/")*8 > len(v) {
		return false
	}
	prefix := lowerOnly.end(v, 0)
	return 7*rarePairs(v[:min(len(v), maxName)]) >= min(len(v), maxName) && (prefix < 2 || prefix > 8 || prefix == len(v) || !indexByte("_-", v[prefix]))
}

const (
	leastCertain = 20
	leastLong    = 12 // letters and digits of such a word without other signs
)

// maskPair masks the password of a user and a password with the colon at i between, behind a word for an account.
func maskPair(s string, i int, e *edits) {
	user := mailSet.start(s, i, 64)
	if user == 0 || i < e.end() || !letters[s[user]] || !pairGap[s[user-1]] {
		return
	}
	end := i + 1
	for end < min(len(s), i+maxName) && !space[s[end]] && !indexByte("\"'`,;<>", s[end]) {
		end++
	}
	if v := strings.TrimRight(s[i+1:end], behind+".:?"); isShort(v) && (isPersonal(v) || !strings.ContainsAny(v, "-.") || !isAny(lastWord(strings.TrimRight(s[max(0, user-maxCell):user], pairSigns)), []string{"user", "users"})) && !versionSet.has(v[:2]) && !strings.ContainsAny(v, "/(){}[]") && isAccountBefore(s[max(0, user-maxCell):user]) {
		e.mask(s, i+1, i+1+len(v), KindConnection)
	}
}

var (
	pairStart = setOf("!#-%*+0-9=?-Z^_a-z~")
	pairGap   = setOf(" =:\"'`(\\")
)

// isAccountBefore reports whether a text ends in a word for an account, perhaps with a verb or a sign behind it.
func isAccountBefore(s string) bool {
	s = s[strings.LastIndexByte(s, '\n')+1:]
	for range 2 {
		s = strings.TrimRight(s, pairSigns)
		start := letters.start(s, len(s), maxName)
		if isAny(lastWord(s[start:]), pairNames) {
			return true
		}
		if !isAny(s[start:], []string{"are", "is", "with", "as", "add", "basic"}) {
			break
		}
		s = s[:start]
	}
	return false
}

const pairSigns = " \t=:\"'`(\\*"

// pairNames name a user and a password with a colon between.
var pairNames = strings.Fields("user users userpwd login auth basicauth creds credential credentials cred account proxyuser userinfo userpass encode btoa basic")

// sections finds random values in the tables and objects whose name is one of secrets, whatever the names in them are:
// "tokens": {"ci": "x"}, [secrets] of INI and TOML, credentials: of YAML; and values behind the name key.
func sections(t *source, e *edits) {
	s, done := t.s, 0
	for _, w := range t.found() {
		if w.start < e.end() || !w.word.near || w.end+3 > len(s) {
			continue
		}
		if w.word.text == "key" && !word[s[w.end]] {
			maskKey(s, w, e)
		}
		last := w.end
		if s[last]|0x20 == 's' {
			last++
		}
		if w.start < done || !opensSection(s, last) {
			continue
		}
		name := wordDot.start(s, w.start, maxName)
		if w.word.text != "auth" && !secretName(s[name:last]) {
			continue
		}
		start, end := section(s[:min(len(s), w.end+maxBlock)], name, last)
		for at := max(start, e.end()); at < end; at++ {
			if s[at] != ':' && s[at] != '=' {
				continue
			}
			before := strings.TrimRight(s[start:at], "\"'\\ \t")
			field := before[wordDot.start(before, len(before), maxName):]
			if from, to, quoted := valueAt(s, at+1); to <= end && isSectionSecret(field, s[from:to], quoted) {
				e.mask(s, from, to, KindAssignment)
				at = to
			}
		}
		done = max(done, end)
	}
}

// opensSection reports whether what follows the name that ends at i may be a table.
func opensSection(s string, i int) bool {
	next := closers.end(s[:min(len(s), i+8)], i)
	return next > i && next < len(s) && (s[next] == '{' || s[next] == '\n') || strings.HasPrefix(s[i:], "]\n")
}

// section returns the bounds of the table or object whose name is s[name:end], or nothing.
func section(s string, name, end int) (from, to int) {
	next := closers.end(s, end)
	switch {
	case next < len(s) && next > end && s[next] == '{' && strings.ContainsAny(s[end:next], ":="): // of JSON, of code
		if n := strings.IndexByte(s[next:], '}'); n > 0 {
			return next, next + n
		}
	case name > 0 && s[name-1] == '[' && strings.HasPrefix(s[end:], "]\n"):
		rest, _, _ := strings.Cut(s[end:], "\n[")
		return end + len("]\n"), end + len(rest)
	case strings.HasPrefix(s[end:], ":\n"):
		indent := indentOf(s, name)
		from = end + len(":\n")
		for to = from; to < len(s); {
			if start := blank.end(s, to); start-to <= indent && start < len(s) && s[start] != '\n' {
				break
			}
			n := strings.IndexByte(s[to:], '\n')
			if n < 0 {
				return from, len(s)
			}
			to += n + 1
		}
		return from, to
	}
	return 0, 0
}

var closers = setOf("\"'\\ :=>")

// isSectionSecret reports whether the value of a field in a table of secrets is one.
func isSectionSecret(field, v string, quoted bool) bool {
	if field == "" || len(v) < 8 || strings.ContainsAny(v, " <>(){}") || spared("token", v, quoted) || isAny(lastWord(field), aboutSecrets) || isAny(lastWord(field), publicWords) {
		return false
	}
	return jagged(v) || isHex(v) && digit.any(v) && len(v) >= 32 || isChosen(v) && (isPersonal(v) || isRandom(v))
}

// maskKey masks a value that looks like a password behind the name key, in quotes or behind an equals sign.
func maskKey(s string, w wordAt, e *edits) {
	start := keySigns.end(s[:min(len(s), w.end+8)], w.end)
	if start == w.end || start == len(s) || !indexByte("'\"=", s[start-1]) || !digit.any(s[start:min(len(s), start+minShown)]) || w.start > 0 && alnum[s[w.start-1]] || identifies(s[wordDot.start(s, w.start, maxName):w.end]) {
		return
	}
	if s[start-1] != '=' {
		start-- // at the quote
	}
	start, end, _ := valueAt(s, start)
	if v := s[start:end]; isShort(v) && (strings.HasSuffix(s[:start], " KEY '") || ofNetwork(s[max(0, w.start-maxGap):w.start])) || isChosen(v) && threeKinds(v) && (strings.ContainsAny(v, "!#$%^&*@?") && !strings.ContainsAny(v, " /=*") || len(v) >= 10 && alnum.has(v) && isRandom(v)) || isHexKey(v) && isEncryption(s[max(0, w.start-maxGap):w.start]) {
		e.mask(s, start, end, KindAssignment)
	}
}

var keySigns = setOf(" \t\"'=>:")

// ofNetwork reports whether a text is about a wireless network.
func ofNetwork(s string) bool {
	s = strings.ToLower(s)
	return strings.Contains(s, "wifi") || strings.Contains(s, "wireless") || strings.Contains(s, "ssid")
}

// isEncryption reports whether a text ends in the name of a table for an encryption.
func isEncryption(s string) bool {
	s = strings.TrimRight(s, " \t\r\n\"'{[(:=>")
	return isAny(lastWord(s[letters.start(s, len(s), maxCell):]), []string{"crypt", "encrypt", "encryption", "cipher", "signing", "jwt", "hmac"})
}

// isRandom reports whether v, of letters and digits, is random rather than words and numbers: its pairs of letters are
// rare ones, and it changes between capitals, small letters and digits.
func isRandom(v string) bool {
	if len(v) < 8 || len(v) > maxName || isHex(v) || !letters.any(v) {
		return false
	}
	rare := rarePairs(v)
	if !digit.any(v) {
		rare--
	}
	if 3*rare >= len(v) {
		return true
	}
	return 10*rare+6*kindChanges(v) >= leastRandom && !isCamel(v) && (rare > 1+len(v)/leastCertain || numbersIn(v) > 2)
}

// rarePairs returns how many pairs of letters in v are rare in words.
func rarePairs(v string) int {
	rare := 0
	for i := 1; i < len(v); i++ {
		if a, b := v[i-1]|0x20, v[i]|0x20; letters[v[i-1]] && letters[v[i]] && strings.IndexByte(pairsOfWords[a-'a'], b) < 0 {
			rare++
		}
	}
	return rare
}

// numbersIn returns how many runs of digits v has.
func numbersIn(v string) int {
	n := 0
	for i := range len(v) {
		if digit[v[i]] && (i == 0 || !digit[v[i-1]]) {
			n++
		}
	}
	return n
}

const leastRandom = 42

// pairsOfWords has the letters that often follow each letter in words.
var pairsOfWords = strings.Fields(`abcdefgiklmnprstuvwxy abceijlorsuy abcdefghiklmoprstuv abcdefilmnoprstu abcdefghiklmnopqrstuvwxy acdefilorstu aceghilnoprstu aeiorstu
	abcdefglmnoprstvxz e aeis acdefilopstuvy abcdeilmopstuy abcdefgiklmnoprstuv abcdefgiklmnoprstuvw acehiloprstuy u abcdefgiklmnoprstuvy
	acdefghiklmnoprstuwy abcdefhilmnoprstuwxy abcdefgilmnprst aeio aehinors aceipt lmnpst e`)

// strong finds passwords with signs among random letters and digits, whatever is around them.
func strong(t *source, e *edits) {
	s := t.s
	var all []int
	for _, sign := range []string{"!", "#", "$", "@", "^"} {
		for at := range places(s, sign) {
			if at == 0 || at+1 == len(s) || !alnum[s[at-1]] || !alnum[s[at+1]] {
				continue
			}
			all = append(all, at)
		}
	}
	slices.Sort(all)
	for _, at := range all {
		start := strongSet.start(s, at, maxCode)
		end := strongSet.end(s[:min(len(s), at+maxCode)], at)
		if start < e.end() || start > 0 && !strongStart[s[start-1]] || end < len(s) && !strongEnd[s[end]] {
			continue
		}
		if v := strings.TrimRight(s[start:end], ".,?"); len(v) <= minShown && !indexByte("?.#@%$-", v[0]) && !strings.Contains(v, "%") && isGenerated(v) && isRandom(v) && !isHex(v[strings.LastIndexByte(v, s[at])+1:]) && (start > 0 || end < len(s)) {
			e.mask(s, start, start+len(v), KindAssignment)
		}
	}
}

var (
	strongSet   = setOf("0-9A-Za-z!#$%&*?@^~_.+-")
	strongStart = setOf(" \t\n\"'`=:(>")
	strongEnd   = setOf(" \t\r\n\"'`,;)<\\")
)

// connects finds the passwords in calls that take a host, a user and a password in quotes.
func connects(t *source, e *edits) {
	s := t.s
	for _, quote := range []string{"'", `"`} {
		var own edits
		gap := quote + ", " + quote
		for at := range places(s, gap) {
			first, user := hostSet.start(s, at, 64), at+len(gap)
			if first < 3 || s[first-1] != quote[0] || s[first-2] != '(' || !alnum[s[first-3]] || !isHost(s[first:at]) {
				continue
			}
			next := mailSet.end(s[:min(len(s), user+64)], user)
			if next == user || !strings.HasPrefix(s[next:], gap) {
				continue
			}
			start := next + len(gap)
			if end := quoteEnd(s[:min(len(s), start+maxName)], start, quote); end < len(s) && isShort(s[start:end]) && !isFile(s[start:end]) {
				own.mask(s, start, end, KindAssignment)
			}
		}
		e.merge(own)
	}
}

// isFile reports whether v ends like the name of a file: the last of the parts of a path.
func isFile(v string) bool {
	dot := strings.LastIndexByte(v, '.')
	return dot > 0 && dot+2 < len(v) && len(v)-dot <= 6 && lowerOnly.has(v[dot+1:])
}

// isHost reports whether v is the name or the number of a host.
func isHost(v string) bool {
	return v == "localhost" || strings.Contains(v, ".") && hostSet.has(v) && (versionSet.has(v) || lowerOnly.has(v[strings.LastIndexByte(v, '.')+1:]))
}

var hostSet = setOf("0-9a-z.-")

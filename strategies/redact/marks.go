package redact

import (
	"strconv"
	"strings"
)

// mailLogins finds the passwords that clients of SMTP and the like answer to a server's question
// for them, which is in base64.
func mailLogins(t *source, e *edits) {
	const question = "UGFzc3dvcmQ6" // Password:
	s := t.s
	for at := range t.literal(question) {
		next := at + len(question)
		size := lineBreak(s, next)
		if size == 0 {
			continue
		}
		start := promptSet.end(s[:min(len(s), next+maxCell)], next+size)
		if hasAnyPrefix(s[start:], "C: ", "C> ") { // of the client
			start += len("C: ")
		}
		if end := base64Set.end(s, start); end-start >= 8 {
			e.mask(s, start, end, KindAuthorization)
		}
	}
}

var promptSet = setOf(" \t<>~*-")

// wifiPasswords finds the passwords in the text of a code for a wireless network, WIFI:S:x;P:y;;.
func wifiPasswords(t *source, e *edits) {
	s := t.s
	for at := range t.literal("WIFI:") {
		line, _, _ := strings.Cut(s[at+len("WIFI:"):min(len(s), at+maxBlank)], "\n")
		start := strings.Index(";"+line, ";P:")
		if start < 0 {
			continue
		}
		start += len("P:")
		end := start
		for end < len(line) && line[end] != ';' {
			if line[end] == '\\' {
				end++
			}
			end++
		}
		if v := line[start:min(end, len(line))]; !placeholder(v) {
			at += len("WIFI:")
			e.mask(s, at+start, at+start+len(v), KindAssignment)
		}
	}
}

// accountPairs finds the passwords behind a user and a slash: behind a mail address, or behind any word in a
// sentence about an account.
func accountPairs(t *source, e *edits) {
	s := t.s
	for at := range places(s, "/ ") { // the slash first, as it is rare
		if at--; at < 0 || s[at] != ' ' {
			continue
		}
		user := toldSet.start(s, at, maxGap)
		start, end, quoted := valueAt(s, at+len(" / "))
		for !quoted && start < end && end < len(s) && indexByte("!*?", s[end]) {
			end++
		}
		if v := s[start:end]; isChosen(v) && (isMail(strings.TrimRight(s[user:at], "`*")) || isPersonal(v) && aboutAccount(s[max(0, user-maxGap):user], s[end:min(len(s), end+maxCell)])) {
			e.mask(s, start, end, KindAssignment)
		}
	}
}

// asUser finds the passwords in sentences about a login: as root with x.
func asUser(t *source, e *edits) {
	s := t.s
	for at := range t.literal("with ") {
		if at == 0 || s[at-1] != ' ' {
			continue
		}
		start := at + len("with ")
		v := s[start:notSpace.end(s[:min(len(s), start+maxName)], start)]
		if v = strings.TrimRight(v, ".,;:"); !isChosen(v) || !isPersonal(v) {
			continue
		}
		words := strings.Fields(lastLine(s[max(0, at-maxCell):at]))
		if user, password, ok := strings.Cut(v, "/"); ok && len(words) > 0 && lowerDot.has(user) && isShort(password) && isPersonal(password) && isAny(words[len(words)-1], []string{"login", "in", "connect", "authenticate"}) {
			e.mask(s, start+len(user)+1, start+len(v), KindAssignment) // with user/x
			continue
		}
		if n := len(words) - 2; n >= 0 && isAny(words[n], []string{"as", "user", "als", "como", "comme", "come"}) {
			e.mask(s, start, start+len(v), KindAssignment)
		}
	}
}

// isMail reports whether v begins with a mail address.
func isMail(v string) bool {
	n := strings.IndexByte(v, '@')
	return n > 0 && strings.Contains(v[n:], ".")
}

// aboutAccount reports whether a text ends in a word in front of a user, or a colon, and its last sentence has one
// for an account, or what follows has.
func aboutAccount(before, behind string) bool {
	before = before[strings.LastIndexAny(before, "\n.;")+1:]
	last := strings.TrimSpace(before)
	if last = last[strings.LastIndexAny(last, " \"'")+1:]; !strings.HasSuffix(last, ":") && !isAny(last, []string{"with", "as", "using", "use"}) {
		return false
	}
	behind, _, _ = strings.Cut(behind, "\n")
	for w := range strings.FieldsFuncSeq(before+" "+behind, func(r rune) bool { return r < 'A' }) {
		if isAny(w, accountWords) {
			return true
		}
	}
	return false
}

var accountWords = strings.Fields("log login logged sign signin signed credentials creds account user username zugang anmeldung konto acceso accès accesso")

// maskPrinted masks what the command of a shell whose line has the name at s[start:end] prints, if it
// is one random word, or a number in hexadecimal of a file for a key.
func maskPrinted(s string, start, end int, e *edits) {
	line := s[max(0, start-maxBlank):start]
	line = line[strings.LastIndexByte(line, '\n')+1:]
	if !strings.Contains(line, "$ ") && !strings.HasPrefix(line, "PS ") {
		return
	}
	size := strings.IndexByte(s[end:min(len(s), end+maxBlank)], '\n')
	from := end + size + 1
	to := notSpace.end(s[:min(len(s), from+maxBlank)], from)
	if v := s[from:to]; size >= 0 && (to == len(s) || lineBreak(s, to) > 0) && (jagged(v) && threeKinds(v) || strings.Contains(line, "cat ") && (len(v) >= 32 && isHex(v) && !isPassword(s[start:end]) || len(v) >= 16 && isRandom(v))) && !isPath(v) && !strings.ContainsAny(v, ".:") {
		e.mask(s, from, to, KindAssignment)
	}
}

// walletKeys finds the private keys of wallets behind words for them, and those that follow in a
// list: the hashes of transactions look the same.
func walletKeys(t *source, e *edits) {
	s := t.s
	for at := range t.literal(`Wallet("0x`) {
		if start := at + len(`Wallet("`); hexSet.end(s, start+len("0x")) == start+len("0x")+64 {
			e.mask(s, start, start+len("0x")+64, KindProviderKey)
		}
	}
	for _, w := range t.found() {
		at := w.end
		switch {
		case w.start < e.end(), w.word.text != "accounts" && w.word.text != "key":
			continue
		case w.word.text == "accounts": // a list of keys rather than a number of accounts
			if at = listSet.end(s[:min(len(s), at+maxCell)], at); !strings.Contains(s[w.end:at], "[") {
				continue
			}
		case !isPrivate(s[max(0, w.start-len("private ")):w.start]) && !strings.HasPrefix(s[w.end:], `("0x`):
			continue
		}
		for {
			n := strings.Index(s[at:min(len(s), at+maxGap)], "0x")
			start := at + n + len("0x")
			at = start + 64
			if n < 0 || at > len(s) || hexSet.end(s[:at], start) < at || at < len(s) && alnum[s[at]] {
				break
			}
			e.mask(s, start-len("0x"), at, KindProviderKey)
		}
	}
}

// isPrivate reports whether the text before a key ends in private.
func isPrivate(before string) bool {
	before = before[:keyGap.start(before, len(before), len(before))]
	return hasFold(before[max(0, len(before)-len("private")):], "private")
}

var listSet = setOf("\"' \t\r\n:=[")

// groupedKey masks the key of one-time passwords that follows the name that ends at i, soon and in
// groups of four characters of base32.
func groupedKey(s string, i int, e *edits) {
	limit := min(len(s), i+2*maxGap)
	colon := strings.IndexAny(s[i:limit], ":\n")
	if colon < 0 {
		return
	}
	start := codeSigns.end(s[:limit], i+colon)
	groups, at := 0, start
	for end := start; ; groups, at = groups+1, end {
		next := end
		if groups > 0 && end < limit && (s[end] == ' ' || s[end] == '-') {
			next++
		}
		if end = base32Set.end(s[:min(limit, next+4)], next); end-next != 4 {
			break
		}
	}
	if v := s[start:at]; groups >= 4 && (at == len(s) || !alnum[s[at]]) && (upperDigit.has(v[:4]) || digit.any(v)) {
		e.mask(s, start, at, KindAssignment)
	}
}

var setupGap = setOf(" _-")

// hasSetup reports whether a text ends in what is in front of the key of an app for one-time passwords.
func hasSetup(before string) bool {
	before = before[:setupGap.start(before, len(before), len(before))]
	if before == "" || !indexByte("pya", before[len(before)-1]|0x20) {
		return false
	}
	last := before[strings.LastIndexAny(before, " \n\"")+1:]
	return isAny(last, []string{"setup", "entry", "totp", "otp", "2fa", "mfa"})
}

var base32Set = setOf("a-zA-Z2-7")

// bracketed finds private keys that are written as 64 numbers below 256, as Solana keeps them, and passwords of accounts
// that a program reports behind [+].
func bracketed(t *source, e *edits) {
	s := t.s
	for at := range places(s, "[") {
		if strings.HasPrefix(s[at:], "[+] ") {
			loggedAccount(s, at+len("[+] "), e)
			continue
		}
		first := listGap.end(s[:min(len(s), at+8)], at+1)
		if first == len(s) || !digit[s[first]] || first < e.end() {
			continue
		}
		var seen [256]bool
		n, kinds, most := 0, 0, 0
		i := first
		for n <= keyNumbers {
			end := digit.end(s[:min(len(s), i+4)], i)
			if end == i || end-i > 3 {
				break
			}
			b, _ := strconv.Atoi(s[i:end])
			if b > 255 {
				break
			}
			if !seen[b] {
				seen[b], kinds = true, kinds+1
			}
			n, most = n+1, max(most, b)
			i = listGap.end(s[:min(len(s), end+maxCell)], end)
		}
		if i < len(s) && s[i] == ']' && n >= 16 && 2*kinds > n && (n == keyNumbers && most >= 200 || isKeyName(s[:at])) {
			e.mask(s, first, i, KindPrivateKey)
		}
	}
}

// isKeyName reports whether a text ends in the name of a key and a sign, perhaps behind the package of a call.
func isKeyName(before string) bool {
	before = before[max(0, len(before)-2*maxCell):]
	before = strings.TrimRight(before[:wordDot.start(before, len(before), maxCell)], " :=\"'\\")
	name := before[wordDot.start(before, len(before), maxCell):]
	return isAny(lastWord(name), []string{"key", "secret", "seed", "psk"}) && !hasFold(name, "pub")
}

// loggedAccount masks the password of domain\user:password at i, which NetExec and others log.
func loggedAccount(s string, i int, e *edits) {
	colon := domainSet.end(s[:min(len(s), i+maxName)], i)
	end := notSpace.end(s[:min(len(s), colon+maxName)], colon)
	if user := s[i:colon]; colon+1 < end && s[colon] == ':' && strings.Contains(user, `\`) && isShort(s[colon+1:end]) {
		e.mask(s, colon+1, end, KindConnection)
	}
}

const keyNumbers = 64

var listGap = setOf(" \t\r\n,")

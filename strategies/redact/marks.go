package redact

import "strings"

// mailLogins finds the passwords that clients of SMTP and the like answer to a server's question
// for them, which is in base64.
func mailLogins(t *source, e *edits) {
	const question = "UGFzc3dvcmQ6" // Password:
	s := t.s
	for at := range places(s, question) {
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
	for at := range places(s, "WIFI:") {
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

// accountPairs finds the passwords behind the mail address of an account and a slash.
func accountPairs(t *source, e *edits) {
	s := t.s
	if !strings.Contains(s, "@") {
		return
	}
	for at := range places(s, " / ") {
		user := strings.TrimRight(s[toldSet.start(s, at, maxGap):at], "`*")
		if n := strings.IndexByte(user, '@'); n < 1 || !strings.Contains(user[n:], ".") {
			continue
		}
		if start, end, _ := valueAt(s, at+len(" / ")); isChosen(s[start:end]) {
			e.mask(s, start, end, KindAssignment)
		}
	}
}

// maskPrinted masks what the command of a shell whose line has the name at s[start:end] prints, if it
// is one random word.
func maskPrinted(s string, start, end int, e *edits) {
	line := s[max(0, start-maxBlank):start]
	line = line[strings.LastIndexByte(line, '\n')+1:]
	if !strings.Contains(line, "$ ") && !strings.HasPrefix(line, "PS ") {
		return
	}
	size := strings.IndexByte(s[end:min(len(s), end+maxBlank)], '\n')
	from := end + size + 1
	to := notSpace.end(s[:min(len(s), from+maxBlank)], from)
	if v := s[from:to]; size >= 0 && (to == len(s) || lineBreak(s, to) > 0) && jagged(v) && threeKinds(v) && !isPath(v) && !strings.ContainsAny(v, ".:") {
		e.mask(s, from, to, KindAssignment)
	}
}

// maskFollowing masks the secret that is alone on the line below the sentence that goes on at i.
func maskFollowing(s string, i int, e *edits) {
	n := strings.Index(s[i:min(len(s), i+maxGap)], ":\n")
	if n < 0 {
		return
	}
	start := space.end(s[:min(len(s), i+2*maxGap)], i+n+1)
	end := notSpace.end(s[:min(len(s), start+maxBlank)], start)
	if v := s[start:end]; (end == len(s) || lineBreak(s, end) > 0) && len(v) >= 8 && digit.any(v) && mixed(v) && !isPath(v) && !placeholder(v) {
		e.mask(s, start, end, KindAssignment)
	}
}

// walletKeys finds the private keys of wallets behind words for them, and those that follow in a
// list: the hashes of transactions look the same.
func walletKeys(t *source, e *edits) {
	s := t.s
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
	before = strings.TrimRight(before, " _-")
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
		if end = base32Set.end(s[:limit], next); end-next != 4 {
			break
		}
	}
	if v := s[start:at]; groups >= 4 && (upperDigit.has(v[:4]) || digit.any(v)) {
		e.mask(s, start, at, KindAssignment)
	}
}

// hasSetup reports whether a text ends in what is in front of the key of an app for one-time passwords.
func hasSetup(before string) bool {
	before = strings.TrimRight(before, " -_")
	last := before[strings.LastIndexByte(before, ' ')+1:]
	return isAny(last, []string{"setup", "entry", "totp", "otp", "2fa", "mfa"})
}

var base32Set = setOf("a-zA-Z2-7")

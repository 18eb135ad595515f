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

// walletKeys finds the private keys of wallets behind words for them, and those that follow in a
// list: the hashes of transactions look the same.
func walletKeys(t *source, e *edits) {
	s, last := t.s, -maxGap
	for at := range places(s, "0x") {
		start := at + len("0x")
		if end := start + 64; end > len(s) || end < len(s) && alnum[s[end]] || hexSet.end(s[:end], start) < end {
			continue
		}
		if at-last > maxGap && !introduced(s[max(0, at-maxGap):at], walletWords) {
			continue
		}
		last = start + 64
		e.mask(s, at, last, KindProviderKey)
	}
}

var walletWords = []string{"private key", "privatekey", "private_key", "private-key", "accounts: [", "accounts = [", "accounts=[", "\"accounts\": ["}

// introduced reports whether one of the words is in the text in front of a secret.
func introduced(before string, words []string) bool {
	before = strings.ToLower(before)
	for _, w := range words {
		if strings.Contains(before, w) {
			return true
		}
	}
	return false
}

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

// setups stand in front of the key of an app for one-time passwords.
var setups = []string{"setup", "manual", "totp", "otp", "2fa", "mfa"}

var base32Set = setOf("a-zA-Z2-7")

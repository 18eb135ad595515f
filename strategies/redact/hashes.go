package redact

import "strings"

// hashes finds the hashes of passwords as in the files of Unix accounts, of web servers and of
// databases: $6$salt$hash, {SSHA}hash, pbkdf2_sha256$1000$salt$hash, SCRAM-SHA-256$….
func hashes(t *source, e *edits) {
	s := t.s
	for at := range places(s, "$") {
		if at < e.end() {
			continue
		}
		start := at
		if name := hashName.start(s, at, maxHashName); name < at && isHashName(s[name:at]) {
			start = name
		} else if name < at && alnum[s[at-1]] {
			continue // an amount, a variable within a word
		}
		if end := hashSet.end(s[:min(len(s), at+512)], at); isHash(s[start:end]) {
			e.mask(s, start, end, KindHash)
		}
	}
	for at := range places(s, "*") { // of MySQL
		if end := at + 41; at >= e.end() && end <= len(s) &&
			isWhole(s, at, end) && upperDigit.end(s[:end], at+1) == end && isHex(s[at+1:end]) {
			e.mask(s, at, end, KindHash)
		}
	}
	for at := range places(s, "}") {
		open := strings.LastIndexByte(s[max(0, at-16):at], '{')
		if open < 0 || at < e.end() {
			continue
		}
		open += max(0, at-16)
		scheme := s[open+1 : at]
		if end := hashEnd.end(s[:min(len(s), at+256)], at+1); (end-at > 20 || end-at == len("}")+13 && strings.EqualFold(scheme, "crypt")) && in("hash", scheme) {
			e.mask(s, open, end, KindHash)
		} else if open > 0 && s[open-1] == ':' && in("plainhash", scheme) {
			e.mask(s, at+1, at+1+strings.IndexAny(s[at+1:min(len(s), at+maxHashName)]+":", ": \n"), KindHash)
		}
	}
}

// md5Hashes finds the hashes of passwords of Postgres.
func md5Hashes(t *source, e *edits) {
	s := t.s
	for at := range t.literal("md5") { // of Postgres
		if end := at + len("md5") + 32; at >= e.end() && end <= len(s) && at > 0 &&
			!word[s[at-1]] && (end == len(s) || !word[s[end]]) && lowerHex.end(s[:end], at+len("md5")) == end {
			e.mask(s, at, end, KindHash)
		}
	}
}

const maxHashName = 32

// isHashName reports whether a name is that of a kind of hashes.
func isHashName(name string) bool {
	name = strings.ToLower(name)
	return hasAnyPrefix(name, "pbkdf2", "scrypt", "argon2", "bcrypt", "scram-sha-")
}

// isHash reports whether v is fields between dollar signs of which the last is a hash, and is
// long and random.
func isHash(v string) bool {
	if strings.Contains(v, "/../") || hasAnyPrefix(v, "$PATH", "$HOME", "$PWD") { // a list of folders
		return false
	}
	last := strings.LastIndexByte(v, '$')
	first := strings.IndexByte(v, '$')
	if last == first && !hasFold(v, "SCRAM-SHA-") || last+1 == len(v) {
		return false
	}
	scheme := v[first+1:]
	scheme = scheme[:strings.IndexAny(scheme+"$", "$:")] // without the salt of SCRAM
	hash := v[last+1:]
	return len(scheme) < 96 && !strings.ContainsAny(scheme, "/") && len(hash) >= 20 &&
		letters.any(hash) && (digit.any(hash) || jagged(hash)) && entropy(hash) >= 3
}

var hashName = setOf("0-9A-Za-z_=:-")

var hashEnd = setOf("0-9A-Za-z+/=.")

var hashSet = setOf("0-9A-Za-z$./+=,*:_-")

package redact

import "strings"

// accounts finds the hashes of passwords in lines of files with accounts that have no mark of a
// scheme: those of DES in htpasswd and shadow, and those of Windows; and passwords beside a user.
func accounts(t *source, e *edits) {
	s := t.s
	for begin := 0; begin < len(s); {
		end := len(s)
		if n := strings.IndexByte(s[begin:], '\n'); n >= 0 {
			end = begin + n
		}
		last := begin + len(strings.TrimRight(s[begin:end], "\r"))
		accountHash(s, begin, last, e)
		accountPassword(s, begin, last, e)
		begin = end + 1
	}
}

// accountHash masks the hash of the account on the line s[begin:end].
func accountHash(s string, begin, end int, e *edits) {
	user := wordDot.end(s[:min(end, begin+maxHashName)], begin)
	if user == begin || user == end || s[user] != ':' {
		return
	}
	start := user + 1
	stop := desSet.end(s[:min(end, start+maxHashName)], start)
	switch {
	case stop == end && isDES(s[start:stop]) && jaggedHash(s[start:stop]),
		stop < end && s[stop] == ':' && strings.Count(s[stop:end], ":") >= 4 && isDES(s[start:stop]):
		e.mask(s, start, stop, KindHash)
	}
}

// accountPassword masks the password of the line s[begin:end] of a file with two texts in quotes on each line, as those
// of PgBouncer, or with a user and any server in front of it, as those of PPP: "user" "password", user * "password" *.
func accountPassword(s string, begin, end int, e *edits) {
	start := begin
	if begin < end && s[begin] == '"' {
		if start = word.end(s[:end], begin+1); start == begin+1 || !strings.HasPrefix(s[start:end], `" "`) {
			return
		}
		start += len(`" `)
	} else {
		user := word.end(s[:end], begin)
		if server := blank.end(s[:end], user); user > begin && server > user && server < end && s[server] == '*' {
			start = blank.end(s[:end], server+1)
		}
	}
	if start == begin || start == end || s[start] != '"' {
		return
	}
	stop := libpqEnd(s[:end], start)
	if v := s[start+1 : max(start+1, stop)]; isShort(v) && word[v[0]] && !strings.Contains(v, " ") && behindPair.end(s[:end], stop+1) == end {
		e.mask(s, start+1, stop, KindAssignment)
	}
}

var behindPair = setOf(" \t*")

// windowsHashes finds the hashes of accounts of Windows: user:id:LM:NT:::.
func windowsHashes(t *source, e *edits) {
	s := t.s
	for at := range places(s, ":::") {
		second := hexSet.start(s, at, maxHashName)
		first := hexSet.start(s, max(0, second-1), maxHashName)
		if id := digit.start(s, max(0, first-1), maxName); at-second == maxHashName && second-1-first == maxHashName && s[second-1] == ':' && id > 0 && id < first-1 && s[first-1] == ':' && s[id-1] == ':' {
			e.mask(s, first, second-1, KindHash)
			e.mask(s, second, at, KindHash)
		}
	}
}

var desSet = setOf("./0-9A-Za-z_")

// isDES reports whether v is as long as a hash of DES, of either kind, and no word.
func isDES(v string) bool {
	return (len(v) == 13 || len(v) == 20 && v[0] == '_') && upperOnly.any(v) && lowerOnly.any(v)
}

// jaggedHash reports whether a short v changes between capitals, small letters and others as
// often as hashes do, also before its last letter: names in several words do so less.
func jaggedHash(v string) bool {
	changes := 0
	for i := 1; i < len(v); i++ {
		if upperOnly[v[i]] != upperOnly[v[i-1]] || lowerOnly[v[i]] != lowerOnly[v[i-1]] {
			changes++
		}
	}
	return changes >= 8 || changes >= 5 && letters.end(v, 0) < len(strings.TrimRight(v, "0123456789"))
}

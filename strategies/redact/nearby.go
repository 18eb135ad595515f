package redact

import (
	"strings"
)

// near finds random words after a word for a secret on the same line, with other words between: the argument of a
// command, a header in the settings of a server, an entry of a log.
func near(t *source, e *edits) {
	s, found := t.s, t.found()
	before, last := 0, -1 // the place of the long word before, the last word in front of this one
	for _, i := range t.long {
		start := nearSet.start(s, i, i-before)
		same := start == before
		if before = i; same || start < e.end() {
			continue // a part of it
		}
		for last+1 < len(found) && found[last+1].end <= start {
			last++
		}
		if (last < 0 || found[last].start <= start-maxGap) &&
			(start < leastKnown || s[start-1] != ' ' && s[start-2] != ' ') {
			continue // neither after a word nor in a header nor an argument
		}
		if !upperOnly.any(s[i:min(len(s), i+minShown)]) {
			continue // a hash
		}
		end := nearSet.end(s, i)
		end = base64Pad.end(s[:min(len(s), end+2)], end)
		v := s[start:end]
		if len(v) < leastCertain || !threeKinds(v) || end < len(s) && indexByte("([{:", s[end]) {
			continue
		}
		if isNamedNear(s, found[:last+1], start) && isCertain(v) {
			e.mask(s, start, end, KindAssignment)
		}
	}
}

// isNamedNear reports whether the last word for a secret is soon in front of i, with nothing between but words that are not
// about something else.
func isNamedNear(s string, found []wordAt, i int) bool {
	for n := len(found) - 1; n >= 0 && found[n].start > i-maxGap; n-- {
		w := found[n]
		if !w.word.near {
			continue
		}
		start := wordDot.start(s, w.start, maxName)
		end := wordDot.end(s[:i], w.end)
		key := s[start:end]
		last := lastWord(key)
		if w.word.text == "sid" && end > w.end || in("public", lastWord(s[max(0, start-maxCell):max(0, start-1)])) || inARN(s, start) {
			return false // inside
		}
		switch {
		case in("about", last), in("public", last), strings.Contains(strings.ToLower(key), "pub"), identifies(key), isPage(key):
			return false
		}
		return plainGap(s[end:i])
	}
	return false
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
		v := s[start:at]
		if in("valuefield", v) {
			continue
		}
		if n == 5 || !nameSet.has(strings.TrimRight(v, ".")) || in("public", lastWord(v)) || strings.HasPrefix(s[at:], `":`) {
			return false
		}
	}
}

var (
	nearSet = setOf("0-9A-Za-z_+/.~-")
	nearGap = setOf(" \t\"'`:=(,>")
)

// bots finds the tokens of bots, which are a number, a colon and the secret.
func bots(t *source, e *edits) {
	s := t.s
	for i := range places(s, ":") {
		if i < max(e.end(), 8) || !digit[s[i-1]] {
			continue
		}
		first, end := digit.start(s, i, 20), word.end(s, i+1)
		asana := end-i == 33 && first > 0 && s[first-1] == '/'
		if i-first >= 8 && end-i > 30 && (asana || !isHex(s[i+1:end])) {
			e.mask(s, i+1, end, KindProviderKey)
		}
	}
}

// passFiles finds the passwords in lines of pgpass files: host:port:database:user:password.
func passFiles(t *source, e *edits) {
	s := t.s
	for i := range places(s, ":") {
		if i < e.end() || i+1 == len(s) || !portSet[s[i+1]] {
			continue
		}
		host := accountSet.start(s, i, maxName)
		if host == i || !lineStart(s, host) && !indexByte("'\"", s[host-1]) {
			continue
		}
		end := notSpace.end(s[:min(len(s), i+maxBlank)], i+1)
		fields := strings.Split(s[i+1:end], ":")
		switch {
		case len(fields) != 4, !isPort(fields[0]), !isAccount(fields[1]), !isAccount(fields[2]):
			continue
		case !endsLine(s, end) && s[end] != '\'':
			continue
		}
		if v := fields[3]; len(v) >= 6 && v[0] != '\\' && !placeholder(v) {
			e.mask(s, end-len(v), end, KindConnection)
		}
	}
}

// isPort reports whether v is a number of a port, which the number of a line rarely is, or any port.
func isPort(v string) bool { return v == "*" || len(v) >= leastPIN && digits(v) }

// isAccount reports whether v is the name of a database or a user, or any.
func isAccount(v string) bool { return v != "" && accountSet.has(v) && !digits(v) }

var (
	accountSet = setOf("0-9A-Za-z_.*@+-")
	portSet    = setOf("0-9*")
)

package redact

import (
	"slices"
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

// strong finds passwords with signs among random letters and digits, whatever is around them.
func strong(t *source, e *edits) {
	s := t.s
	var all []int
	for _, sign := range []string{"!", "#", "$", "@", "^"} {
		for at := range places(s, sign) {
			if at > 0 && at+1 < len(s) && alnum[s[at-1]] && alnum[s[at+1]] {
				all = append(all, at)
			}
		}
	}
	slices.Sort(all)
	for _, at := range all {
		start := strongSet.start(s, at, maxCell)
		end := strongSet.end(s[:min(len(s), at+maxCell)], at)
		switch {
		case start < e.end(), start > 0 && !strongStart[s[start-1]], end < len(s) && !strongEnd[s[end]]:
			continue
		}
		v := strings.TrimRight(s[start:end], ".,?")
		switch {
		case len(v) > minShown, indexByte("?.#@%$-", v[0]), strings.Contains(v, "%"), start == 0 && end == len(s):
			continue
		}
		if isGenerated(v) && isRandom(v) && !isHex(v[strings.LastIndexByte(v, s[at])+1:]) {
			e.mask(s, start, start+len(v), KindAssignment)
		}
	}
}

var (
	strongSet   = setOf("0-9A-Za-z!#$%&*?@^~_.+-")
	strongStart = setOf(" \t\n\"'`=:(>")
	strongEnd   = setOf(" \t\r\n\"'`,;)<\\")
)

// pairs finds secrets after a colon: the tokens of bots, which are a number, a colon and the secret, and the passwords in
// the lines of files with them: host:port:database:user:password.
func pairs(t *source, e *edits) {
	s := t.s
	for i := range places(s, ":") {
		if i < e.end() || i == 0 || i+1 == len(s) || !accountSet[s[i-1]] {
			continue
		}
		if digit[s[i-1]] {
			maskBot(s, i, e)
		}
		if digit[s[i+1]] || s[i+1] == '*' {
			maskPassFile(s, i, e)
		}
	}
}

// maskBot masks the secret after the number of a bot before the colon at i, or that of a cache of Nix.
func maskBot(s string, i int, e *edits) {
	first := digit.start(s, i, 20)
	if first > 0 && s[first-1] == '-' { // cache.example.org-1:x; a public one is shorter
		end := base64Set.end(s[:min(len(s), i+96)], i+1)
		if end-i-1 == 88 && strings.HasSuffix(s[:end], "==") {
			e.mask(s, i+1, end, KindProviderKey)
		}
	}
	end := word.end(s, i+1)
	switch {
	case i-first < 8, end-i <= 30, isHex(s[i+1:end]) && (end-i != 33 || first == 0 || s[first-1] != '/'): // or of Asana
		return
	}
	e.mask(s, i+1, end, KindProviderKey)
}

// maskPassFile masks the password of a line of a pgpass file, host:port:database:user:password, whose first colon is at i.
func maskPassFile(s string, i int, e *edits) {
	host := accountSet.start(s, i, maxName)
	quoted := host > 0 && indexByte("'\"", s[host-1])
	if !quoted && !lineStart(s, host) {
		return
	}
	line := s[i+1 : notSpace.end(s[:min(len(s), i+maxBlank)], i+1)]
	fields := strings.SplitN(line, ":", 4)
	if len(fields) < 4 || len(fields[0]) < 4 && fields[0] != "*" || !digits(strings.Trim(fields[0], "*")) {
		return
	}
	for _, account := range fields[1:3] {
		if !accountSet.has(account) || digits(account) {
			return
		}
	}
	if v := fields[3]; len(v) >= 6 && !placeholder(v) {
		e.mask(s, i+1+len(line)-len(v), i+1+len(line), KindConnection)
	}
}

var accountSet = setOf("0-9A-Za-z_.*@+-")

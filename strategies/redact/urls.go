package redact

import (
	"slices"
	"strings"
)

// urls finds the passwords of databases, and tokens in place of the user of a web address.
func urls(t *source, e *edits) {
	s := t.s
	next := -1 // an @, so that a text without one is read once
	for i, scheme := range addresses(s) {
		if i < e.end() || scheme == "" {
			continue
		}
		if next < i {
			if next = strings.IndexByte(s[i:], '@') + i; next < i {
				break
			}
		}
		if next < i+maxUser {
			maskUser(s, i, scheme, e)
		}
	}
	for _, network := range []string{"tcp(", "unix("} { // user:password@tcp(host)
		var own edits
		for at := range t.literal(network) {
			start := notSpace.start(s, max(0, at-1), maxName)
			if n := strings.IndexByte(s[start:at], ':'); n >= 0 && s[at-1] == '@' && at >= own.end() {
				own.mask(s, start+n+1, at-1, KindConnection)
			}
		}
		e.merge(own)
	}
}

// maskUser masks the password, or the token, of the user of the address whose scheme ends at i.
func maskUser(s string, i int, scheme string, e *edits) {
	isWeb := in("web", scheme)
	host, colon := userEnd(s, i, isWeb)
	if host < 0 {
		return
	}
	if colon < 0 || colon > host { // a user alone
		switch {
		case isWeb && host-i >= 12 &&
			mixed(s[i:host]) && host+1 < len(s) && !space[s[host+1]]:
			e.mask(s, i, host, KindURLToken)
		case in("proxy", scheme):
			e.mask(s, i, host, KindConnection)
		}
		return
	}
	user, v := s[i:colon], s[colon+1:host]
	switch {
	case v == "" || placeholder(v) || strings.HasPrefix(v, `\u003c`):
	case !isWeb:
		named := isFold(strings.TrimLeft(user, "[<{("), "user", "username", "name", "login")
		if !named || !in("example", v) { // or documentation
			e.mask(s, colon+1, host, KindConnection)
		}
	case v[0] == '{' || in("example", v) || strings.ContainsAny(s[i:host], "?\"'`<>()"):
	case !strings.Contains(s[i:host], "#") || isShort(v) && !digits(v[:max(0, strings.IndexByte(v, '#'))]):
		e.mask(s, colon+1, host, KindURLToken)
	}
}

// userEnd returns the indexes of the @ and of the first colon after the scheme of an address that ends at i, or -1.
func userEnd(s string, i int, isWeb bool) (host, colon int) {
	host, colon = -1, -1
	limit := min(len(s), i+maxUser)
	for j := i; j < limit && !space[s[j]] && host < 0; j++ {
		switch {
		case s[j] == '@':
			host = j
		case s[j] == ':' && colon < 0:
			colon = j
		case s[j] == '/' && (isWeb || colon < 0 || digits(s[colon+1:j])):
			return -1, -1
		}
	}
	for j := host + 1; host >= 0 && j < limit && !space[s[j]] && !indexByte("/?\"'`<>,", s[j]); j++ {
		if s[j] == ':' && isWeb && colon < 0 {
			colon = j
		}
		if s[j] == '@' && (!isWeb || colon > host) {
			host = j // the one before was part of the password, or of a user
		}
	}
	return host, colon
}

// queries finds parameters of web addresses with a random value.
func queries(t *source, e *edits) {
	s := t.s
	if !strings.Contains(s, "?") {
		return
	}
	done := 0
	for at := range places(s, "=") {
		if at < done {
			continue
		}
		done = at + 1
		name := wordDot.start(s, at, maxName)
		if name == 0 || name == at || !indexByte("?&;", s[name-1]) || !queryFirst[s[name]|0x20] {
			continue
		}
		password := in("databasepassword", s[name:at])
		if !password && !in("query", s[name:at]) {
			continue
		}
		end := querySet.end(s, done)
		if password && inDatabaseURL(s[:name]) { // whatever it looks like
			if end = notQuery.end(s, done); end > done && !placeholder(s[done:end]) {
				e.mask(s, done, end, KindURLToken)
			}
		} else if v := s[done:end]; len(v) >= 16 && digit.any(v) && letters.any(v) {
			e.mask(s, done, end, KindURLToken)
		}
		done = end
	}
}

// queryFirst has the first letters of queryNames and passwordNames.
var queryFirst = func() (first set) {
	for _, name := range slices.Concat(lists["query"].all, lists["databasepassword"].all) {
		first[name[0]] = true
	}
	return first
}()

// inDatabaseURL reports whether s ends within the address of a database.
func inDatabaseURL(s string) bool {
	s = s[max(0, len(s)-512):]
	s = s[strings.LastIndexAny(s, " \t\n\"'")+1:]
	return lists["database"].within(s)
}

// formBodies finds the secrets of a text that is a form and nothing else.
func formBodies(t *source, e *edits) {
	s := t.s
	if !strings.Contains(s, "&") || strings.ContainsAny(s, " \t\n\r") {
		return
	}
	at := 0
	for pair := range strings.SplitSeq(s, "&") {
		name, _, ok := strings.Cut(pair, "=")
		if !ok || name == "" || wordDot.end(name, 0) != len(name) {
			e.list = nil // not a form
			return
		}
		end := at + len(pair)
		if in("form", name) {
			e.mask(s, at+len(name)+1, end, KindAssignment)
		}
		at = end + 1
	}
}

var (
	querySet = setOf("0-9A-Za-z_.~%+/-")
	notQuery = setOf("!#-%'-:<-~") // without an ampersand, a semicolon and a quote
)

package redact

import "strings"

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

// queries finds the secrets among parameters: those of web addresses that are random, and any of the address of a database
// and of a text that is a form.
func queries(t *source, e *edits) {
	s, done, form := t.s, 0, isForm(t.s)
	if !form && !t.seen['?'] {
		return
	}
	for at := range places(s, "=") {
		name := wordDot.start(s, at, maxName)
		switch {
		case at < done, name == at, name == 0 && !form, name > 0 && !indexByte("?&;", s[name-1]):
			continue
		}
		key, end, kind := s[name:at], 0, KindURLToken
		switch {
		case form && in("form", key):
			end, kind = notQuery.end(s, at+1), KindAssignment
		case !in("query", key):
			continue
		case in("databasepassword", key) && inDatabaseURL(s[:name]):
			end = notQuery.end(s, at+1)
		default:
			end = querySet.end(s, at+1)
			if v := s[at+1 : end]; len(v) < 16 || !digit.any(v) || !letters.any(v) {
				continue
			}
		}
		if done = end; end > at+1 && (form || !placeholder(s[at+1:end])) {
			e.mask(s, at+1, end, kind)
		}
	}
}

// isForm reports whether s is a form and nothing else.
func isForm(s string) bool {
	if !strings.Contains(s, "&") || space.any(s) {
		return false
	}
	for pair := range strings.SplitSeq(s, "&") {
		if name := wordDot.end(pair, 0); name == 0 || name == len(pair) || pair[name] != '=' {
			return false
		}
	}
	return true
}

// inDatabaseURL reports whether s ends within the address of a database.
func inDatabaseURL(s string) bool {
	s = s[max(0, len(s)-512):]
	s = s[strings.LastIndexAny(s, " \t\n\"'")+1:]
	return lists["database"].within(s)
}

var (
	querySet = setOf("0-9A-Za-z_.~%+/-")
	notQuery = setOf("!#-%'-:<-~") // without an ampersand, a semicolon and a quote
)

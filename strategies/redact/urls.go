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
		isWeb := isAny(scheme, webs)
		if i < e.end() || scheme == "" {
			continue
		}
		if next < i {
			if next = strings.IndexByte(s[i:], '@') + i; next < i {
				return
			}
		}
		limit := min(len(s), i+maxUser)
		if next >= limit {
			continue
		}
		host, colon := -1, -1
		for j := i; j < limit && !space[s[j]] && host < 0; j++ {
			switch {
			case s[j] == '@':
				host = j
			case s[j] == ':' && colon < 0:
				colon = j
			case s[j] == '/' && (isWeb || colon < 0 || digits(s[colon+1:j])):
				j = limit
			}
		}
		for j := host + 1; host >= 0 && j < limit && !space[s[j]] && strings.IndexByte("/?\"'`<>,", s[j]) < 0; j++ {
			if s[j] == ':' && isWeb && colon < 0 {
				colon = j
			}
			if s[j] == '@' && (!isWeb || colon > host) {
				host = j // the one before was part of the password, or of a user
			}
		}
		switch {
		case host < 0:
		case isWeb && (colon < 0 || colon > host) && host-i >= 12 && mixed(s[i:host]) && host+1 < len(s) && !space[s[host+1]]:
			e.mask(s, i, host, KindURLToken)
		case isAny(scheme, proxies) && (colon < 0 || colon > host):
			e.mask(s, i, host, KindConnection)
		case isWeb && colon >= 0 && colon < host:
			if v := s[colon+1 : host]; v != "" && v[0] != '{' && !placeholder(v) && !isAny(v, examples) && (!strings.ContainsAny(s[i:host], "?#\"'`<>()") || isShort(v) && !strings.ContainsAny(s[i:host], "?\"'`<>()") && !digits(v[:strings.IndexByte(v, '#')])) {
				e.mask(s, colon+1, host, KindURLToken)
			}
		case !isWeb && colon >= 0 && !isExample(s[i:colon], s[colon+1:host]) && !placeholder(s[colon+1:host]) && !strings.HasPrefix(s[colon+1:host], `\u003c`):
			e.mask(s, colon+1, host, KindConnection)
		}
	}
}

// isExample reports whether a user and a password are words for them, as in documentation.
func isExample(user, password string) bool {
	return isAny(strings.TrimLeft(user, "[<{("), []string{"user", "username", "name", "login"}) && isAny(password, examples)
}

// driverPasswords finds passwords in user:password@tcp(host).
func driverPasswords(t *source, e *edits) {
	s := t.s
	for _, network := range []string{"tcp(", "unix("} {
		for at := range t.literal(network) {
			if at--; at < 0 || s[at] != '@' {
				continue
			}
			start := notSpace.start(s, at, 128)
			if n := strings.IndexByte(s[start:at], ':'); n >= 0 && at >= e.end() {
				e.mask(s, start+n+1, at, KindConnection)
			}
		}
	}
}

// hostPasswords finds passwords in user:password@host of commands, where the host is a number or the user has a domain.
func hostPasswords(t *source, e *edits) {
	s := t.s
	for at := range places(s, "@") {
		start := notSpace.start(s, at, maxName)
		n := strings.IndexByte(s[start:at], ':')
		if slash := strings.IndexByte(s[start:at], '/'); n < 0 && slash > 0 && start >= e.end() && word.has(s[start:start+slash]) && at+1 < len(s) && lowerOnly[s[at+1]] && !strings.HasPrefix(s[at+1:], "sha") && !isVersion(s[at+1:]) {
			if v := s[start+slash+1 : at]; isShort(v) && (isPersonal(v) && !word.has(v) || isRandom(v)) && !strings.Contains(v, "/") { // of Oracle
				e.mask(s, start+slash+1, at, KindConnection)
			}
		}
		if n <= 0 || start < e.end() || strings.HasPrefix(s[start+n:], "://") {
			continue
		}
		user, v := s[start:start+n], s[start+n+1:at]
		host := s[at+1 : versionSet.end(s[:min(len(s), at+maxCell)], at+1)]
		slash := strings.IndexAny(user, `/\`)
		domain := slash > 1 && slash+1 < n && letters[user[0]] && !strings.ContainsAny(user[slash+1:], `/\`) && at+1 < len(s) && alnum[s[at+1]] && !strings.HasPrefix(s[at+1:], "sha")
		bare := mailSet.has(user) && !isAny(user, []string{"mailto", "sip", "acct", "xmpp"}) && (isGenerated(v) || isChosen(v) && isRandom(v)) && strings.Contains(s[at+1:domainSet.end(s[:min(len(s), at+maxCell)], at+1)], ".")
		if (strings.Count(strings.TrimRight(host, "."), ".") == 3 || domain || bare) && domainSet.has(user) && isShort(v) && !strings.ContainsAny(v, `\|<>[]{}()`) && !placeholder(v) && !versionSet.has(strings.TrimLeft(v, "v^~")) {
			e.mask(s, start+n+1, at, KindConnection)
		}
	}
}

// isVersion reports whether s begins with a version: v4.
func isVersion(s string) bool { return len(s) > 1 && s[0] == 'v' && digit[s[1]] }

var domainSet = setOf(`0-9A-Za-z_./\-`)

// passPasswords and pwdPasswords find passwords behind password=, passwd=, pwd= and the like in
// connection strings.
func passPasswords(t *source, e *edits) { pairPasswords(t, "pass", e) }

func pwdPasswords(t *source, e *edits) { pairPasswords(t, "pwd", e) }

func pairPasswords(t *source, name string, e *edits) {
	s := t.s
	for at := range t.places(name) {
		eq := word.end(s[:min(len(s), at+12)], at+3)
		if at < e.end() || eq >= len(s) || s[eq] != '=' || at > 0 && strings.IndexByte(" ;\t\n'\"", s[at-1]) < 0 || !inDSN(s, at, eq) {
			continue
		}
		start := eq + 1
		if start < len(s) && (s[start] == '\'' || s[start] == '"') {
			if end := libpqEnd(s[:min(len(s), start+512)], start); end > start && !placeholder(s[start+1:end]) {
				e.mask(s, start+1, end, KindConnection)
				continue
			}
		}
		if end := bracesEnd(s[:min(len(s), start+512)], start); end > start {
			if v := s[start+1 : end]; !reference(v) && !selfNamed(v) && (mixed(v) || strings.ContainsAny(v, ";{}=")) {
				e.mask(s, start+1, end, KindConnection)
			}
			continue
		}
		end := start
		for end < min(len(s), start+512) && !space[s[end]] && strings.IndexByte(";'\"\\&", s[end]) < 0 {
			end++
		}
		v := s[start:end]
		if bare := strings.TrimRight(v, ",)"); bare != v && (len(bare) < leastPIN || spared(s[at:eq], bare, false) || isAny(bare, variables)) {
			continue // an argument of a call
		} else if v = bare; !placeholder(v) {
			e.mask(s, start, start+len(v), KindConnection)
		}
	}
}

// libpqEnd returns the end of the value whose quote is at s[i], in which a quote is doubled or
// follows a backslash, or i if it does not end on the line.
func libpqEnd(s string, i int) int {
	for j := i + 1; j < len(s) && s[j] != '\n'; j++ {
		switch {
		case s[j] == '\\', s[j] == s[i] && j+1 < len(s) && s[j+1] == s[i]:
			j++
		case s[j] == s[i]:
			return j
		}
	}
	return i
}

// bracesEnd returns the end of the value in the braces at i, in which the closing one is doubled,
// or i if it does not end on the line.
func bracesEnd(s string, i int) int {
	if i == len(s) || s[i] != '{' {
		return i
	}
	for j := i + 1; j < len(s) && s[j] != '\n'; j++ {
		if s[j] == '}' {
			if j+1 == len(s) || s[j+1] != '}' {
				return j
			}
			j++
		}
	}
	return i
}

// inDSN reports whether another field of a connection string is on the line of the name at
// s[at:eq].
func inDSN(s string, at, eq int) bool {
	before, after := s[max(0, at-256):at], s[at:min(len(s), eq+256)]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	after, _, _ = strings.Cut(after, "\n")
	line := strings.ToLower(before + after)
	return slices.ContainsFunc(dsnNames, func(n string) bool { return strings.Contains(line, n) })
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
		if name == 0 || name == at || s[name-1] != '?' && s[name-1] != '&' && s[name-1] != ';' || !queryFirst[s[name]|0x20] {
			continue
		}
		password := isAny(s[name:at], passwordNames)
		if !password && !isAny(s[name:at], queryNames) {
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
	for _, name := range slices.Concat(queryNames, passwordNames) {
		first[name[0]] = true
	}
	return first
}()

// passwordNames lists parameters of the address of a database that are passwords.
var passwordNames = []string{"password", "pwd", "sslpassword"}

// inDatabaseURL reports whether s ends within the address of a database.
func inDatabaseURL(s string) bool {
	s = s[max(0, len(s)-512):]
	s = s[strings.LastIndexAny(s, " \t\n\"'")+1:]
	return slices.ContainsFunc(databases, func(d string) bool { return strings.Contains(s, d) })
}

var databases = []string{"jdbc:", "postgres://", "postgresql://", "mysql://", "mariadb://", "sqlserver://", "oracle://", "redis://", "mongodb://"}

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
		if isAny(name, formNames) {
			e.mask(s, at+len(name)+1, end, KindAssignment)
		}
		at = end + 1
	}
}

// hooks finds webhook addresses, which allow anybody to post.
func hooks(t *source, e *edits) {
	s := t.s
	for at := range t.literal("hooks") {
		for _, p := range hookPaths {
			begin := at - strings.Index(p, "hooks")
			if begin < 0 || !strings.HasPrefix(s[begin:], p) {
				continue
			}
			start := begin + len(p)
			if end := hookSet.end(s, start); end-start >= 20 {
				e.mask(s, start, end, KindURLToken)
			}
			break
		}
	}
}

// links finds the random ends of web addresses that let anybody in who has them: to set a new password, to join.
func links(t *source, e *edits) {
	s, end := t.s, 0
	for i := range places(s, "://") {
		if i += len("://"); i < end {
			continue
		}
		end = pathSet.end(s[:min(len(s), i+maxUser)], i)
		stream := strings.Contains(s[max(0, i-len("rtmps://")):i], "rtmp")
		for slash, next := strings.IndexByte(s[i:end], '/')+i, 0; slash >= i && slash < end; slash = next {
			if next = slash + 1 + strings.IndexByte(s[slash+1:end], '/'); next == slash {
				next = end
			}
			v := s[slash+1 : next]
			if len(v) < leastLong {
				continue
			}
			if stream && next == end && digit.any(v) {
				e.mask(s, slash+1, next, KindURLToken) // where a stream is sent to
			}
			start := next - len(strings.TrimPrefix(v, "private-"))
			if v = s[start:next]; len(v) < 20 || !digit.any(v) || !word.has(v) || !isHex(v) && strings.Count(v, "-") > 2 {
				continue
			}
			before := strings.ToLower(s[max(i, start-maxName):max(i, start-1)])
			name := before[strings.LastIndexByte(before, '/')+1:]
			if slices.ContainsFunc(keyHosts, func(host string) bool { return strings.HasSuffix(before, host) }) ||
				(jagged(v) || isHex(v) || isRandom(v)) && slices.ContainsFunc(linkNames, func(n string) bool { return strings.Contains(name, n) }) {
				e.mask(s, start, next, KindURLToken)
			}
		}
	}
}

// keyHosts are the ends of addresses, up to a key of an account.
var keyHosts = []string{"alchemy.com/v2", "infura.io/v3", "quiknode.pro", "hc-ping.com", "ifttt.com/trigger", "/with/key", ".make.com", "/api/webhook"}

// linkNames are parts of the segment in front of the secret of a link.
var linkNames = strings.Fields("reset password verify confirm activate invit magic private secret hook")

var (
	pathSet  = setOf("0-9A-Za-z_.~%/:=-")
	querySet = setOf("0-9A-Za-z_.~%+/-")
	notQuery = setOf("!#-%'-:<-~") // without an ampersand, a semicolon and a quote
	hookSet  = setOf("0-9A-Za-z_/-")
	notSpace = setOf("!-!#-&(-_a-~") // the user and password of a connection string
)

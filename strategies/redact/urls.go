package redact

import "strings"

// connections are passwords of connection strings that are no URLs of the databases
// that urls knows: any scheme but a web one, user:password@tcp(host), and password=
// beside what else such a string has.
func connections(s string, e *edits) {
	var urls, pairs, drivers edits
	schemePasswords(s, &urls)
	pairPasswords(s, &pairs)
	for i := 0; ; {
		at := strings.Index(s[i:], "@tcp(")
		if at < 0 {
			break
		}
		at += i
		i = at + 1
		start := notSpace.start(s, at, 128)
		if n := strings.IndexByte(s[start:at], ':'); n >= 0 {
			drivers.mask(s, start+n+1, at, KindConnection)
		}
	}
	e.merge(urls.list)
	e.merge(pairs.list)
	e.merge(drivers.list)
}

func schemePasswords(s string, e *edits) {
	for i := 0; ; {
		at := strings.Index(s[i:], "://")
		if at < 0 {
			return
		}
		at += i
		i = at + len("://")
		scheme := s[schemeStart(s, at):at]
		if scheme == "" || isAny(scheme, webs) {
			continue
		}
		if start, end := passwordOf(s, i); start < end && !placeholder(s[start:end]) {
			e.mask(s, start, end, KindConnection)
		}
	}
}

// pairPasswords are those behind password=, passwd=, pwd= and the like.
func pairPasswords(s string, e *edits) {
	f, g := newFolder(s, "pass"), newFolder(s, "pwd")
	for i := 0; ; {
		at, second := f.next(i), g.next(i)
		if at < 0 || second >= 0 && second < at {
			at = second
		}
		if at < 0 {
			return
		}
		i = at + 3
		eq := word.end(s[:min(len(s), i+9)], i)
		if eq >= len(s) || s[eq] != '=' || at > 0 && strings.IndexByte(" ;\t'\"", s[at-1]) < 0 || !dsn(s, at, eq) {
			continue
		}
		start := eq + 1
		end := start
		for end < min(len(s), start+512) && !space[s[end]] && strings.IndexByte(";'\"\\&", s[end]) < 0 {
			end++
		}
		i = max(i, end)
		if !placeholder(s[start:end]) {
			e.mask(s, start, end, KindConnection)
		}
	}
}

// notSpace is what the user and password of a connection string are made of.
var notSpace = setOf("!-!#-&(-_a-~")

// dsnNames stand beside a password in a connection string.
var dsnNames = []string{"host=", "user=", "dbname=", "server=", "database=", "data source=", "user id=", "uid=", "initial catalog="}

// dsn reports whether the name at s[at:eq] has such a neighbour on its line.
func dsn(s string, at, eq int) bool {
	line := s[max(0, at-256):min(len(s), eq+256)]
	before := min(at, 256)
	if n := strings.LastIndexByte(line[:before], '\n'); n >= 0 {
		line, before = line[n+1:], before-n-1
	}
	if n := strings.IndexByte(line[before:], '\n'); n >= 0 {
		line = line[:before+n]
	}
	line = strings.ToLower(line)
	for _, n := range dsnNames {
		if strings.Contains(line, n) {
			return true
		}
	}
	return false
}

// passwordOf returns where the password of the user is in the part of an address that
// begins at i, or i twice.
func passwordOf(s string, i int) (start, end int) {
	colon := -1
	for j := i; j < min(len(s), i+256) && !space[s[j]] && strings.IndexByte("/?#\"'`<>()", s[j]) < 0; j++ {
		switch {
		case s[j] == '@' && colon >= 0:
			return colon, j
		case s[j] == '@':
			return i, i
		case s[j] == ':' && colon < 0:
			colon = j + 1
		}
	}
	return i, i
}

// webPasswords are those of users in web addresses, but for what every manual uses.
func webPasswords(s string, e *edits) {
	for i := 0; ; {
		at := strings.Index(s[i:], "://")
		if at < 0 {
			return
		}
		at += i
		i = at + len("://")
		if !isAny(s[schemeStart(s, at):at], webs) {
			continue
		}
		start, end := passwordOf(s, i)
		if v := s[start:end]; start < end && !placeholder(v) && !isAny(v, examples) && v[0] != '{' {
			e.mask(s, start, end, KindURLToken)
		}
	}
}

var examples = []string{"pass", "password", "passwd", "pw", "pwd", "secret", "token", "port"}

// queryNames are parameters of an address that hold a credential.
var queryNames = []string{
	"access_token", "refresh_token", "id_token", "auth_token", "token", "api_key", "apikey", "api-key", "client_secret", "password",
	"secret", "key", "sig", "signature", "x-amz-signature", "x-amz-security-token", "x-goog-signature", "awsaccesskeyid",
}

// queries are such parameters where the value is too random to be a word.
func queries(s string, e *edits) {
	if !strings.Contains(s, "?") {
		return
	}
	for i := 0; i < len(s); {
		at := strings.IndexByte(s[i:], '=')
		if at < 0 {
			return
		}
		at += i
		i = at + 1
		name := wordDot.start(s, at, maxName)
		if name == 0 || s[name-1] != '?' && s[name-1] != '&' && s[name-1] != ';' || !isAny(s[name:at], queryNames) {
			continue
		}
		end := querySet.end(s, i)
		if v := s[i:end]; len(v) >= 16 && strings.ContainsAny(v, "0123456789") && letters.any(v) {
			e.mask(s, i, end, KindURLToken)
		}
		i = end
	}
}

var (
	querySet = setOf("0-9A-Za-z_.~%+/-")
	letters  = setOf("A-Za-z")
)

// hookPaths are what stands before the secret of an address that posts a message.
var hookPaths = []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"}

// hooks are addresses that let who knows them post.
func hooks(s string, e *edits) {
	if !strings.Contains(s, "hooks") {
		return
	}
	for i := 0; ; {
		at := strings.Index(s[i:], "hooks")
		if at < 0 {
			return
		}
		at += i
		i = at + len("hooks")
		for _, p := range hookPaths {
			begin := at - strings.Index(p, "hooks")
			if begin < 0 || !strings.HasPrefix(s[begin:], p) {
				continue
			}
			start := begin + len(p)
			if end := hookSet.end(s, start); end-start >= 20 {
				e.mask(s, start, end, KindURLToken)
				i = end
			}
			break
		}
	}
}

var hookSet = setOf("0-9A-Za-z_/-")

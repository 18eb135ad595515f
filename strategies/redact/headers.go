package redact

import (
	"encoding/base64"
	"strings"
)

// headerValue returns the start of the value of the header whose name ends at end: after a
// colon, or after the name's quote and a colon, a comma or an arrow. open is the quote around
// the value, 0 for none.
func headerValue(s string, end int) (value int, open byte, ok bool) {
	i := end
	if i < len(s) && s[i] == '\\' {
		i++
	}
	quoted := i < len(s) && (s[i] == '"' || s[i] == '\'')
	if quoted {
		i++
	} else if i != end {
		return 0, 0, false
	}
	i = blank.end(s, i)
	switch {
	case i < len(s) && (s[i] == ':' || quoted && s[i] == ','):
		i++
	case quoted && strings.HasPrefix(s[i:], "=>"):
		i += len("=>")
	case strings.HasPrefix(s[i:], "] = ") && quoted: // headers["Cookie"] = …
		i += len("] = ")
	default:
		return 0, 0, false
	}
	i = blank.end(s, i)
	if i < len(s) && s[i] == '[' { // a list of one
		i = blank.end(s, i+1)
	}
	if i < len(s) && s[i] == '\\' && quoted {
		i++
	}
	if i < len(s) && (s[i] == '"' || s[i] == '\'' || s[i] == '`') {
		return i + 1, s[i], true
	}
	return i, 0, !quoted
}

// lineEnd returns the end of a value that starts at i: the closing quote, any quote if it is
// unquoted, the end of the line, or 4096 bytes.
func lineEnd(s string, i int, open byte) int {
	most := min(len(s), i+4096)
	for ; i < most; i++ {
		switch c := s[i]; {
		case c == '\n' || c == '\r', open != 0 && c == open, open == 0 && (c == '"' || c == '\''):
			return i
		case c == '\\' && i+1 < most && (s[i+1] == 'n' || s[i+1] == 'r' || s[i+1] == '"' && open != '\n'):
			return i
		}
	}
	return i
}

// paramSchemes lists the schemes whose credential is a list of parameters.
var paramSchemes = []string{"digest", "aws4-hmac-sha256", "oauth", "hawk", "signature", "negotiate", "ntlm", "mac", "sharedkey"}

// authorizations finds Authorization headers that fields does not find whole: with parameters,
// or quoted and separated from the name by a comma.
func authorizations(t *source, e *edits) {
	s := t.s
	for at := range t.places("authorization") {
		value, open, ok := headerValue(s, at+len("authorization"))
		if !ok || value < e.end() {
			continue
		}
		scheme := word.end(s, value)
		start := blank.end(s, scheme)
		params := isAny(s[value:scheme], paramSchemes)
		if !params && open == 0 {
			continue // left to fields
		}
		end := lineEnd(s, value, open)
		if params && open != '`' { // the parameters have quotes of their own
			end = max(end, lineEnd(s, value, '\n'))
			if name := word.start(s, at, maxCell); open == 0 && name > 0 && indexByte("\"'", s[name-1]) {
				end = quoteEnd(s[:end], value, s[name-1:name])
			}
		}
		if !params && start == scheme || start >= end {
			start = value
		}
		if v := s[start:min(end, len(s))]; len(v) >= 8 && (params || mixed(v)) && !placeholder(v) && !strings.ContainsAny(v, "{$<") {
			e.mask(s, start, end, KindAuthorization)
		}
	}
}

// bearers, okta and basics find credentials after the words Bearer, SSWS and Basic without their header.
func bearers(t *source, e *edits) { schemeCredentials(t, "bearer", mixed, e) }

func okta(t *source, e *edits) { schemeCredentials(t, "ssws", mixed, e) }

func basics(t *source, e *edits) {
	schemeCredentials(t, "basic", func(v string) bool { return mixed(v) && isPair(v) }, e)
}

func schemeCredentials(t *source, scheme string, valid func(string) bool, e *edits) {
	s, done := t.s, 0
	for at := range t.places(scheme) {
		name := at + len(scheme)
		start := blank.end(s, name)
		if at < done || start == name || at > 0 && word[s[at-1]] {
			continue
		}
		done = credentialSet.end(s, start)
		if v := strings.TrimRight(s[start:done], ".="); len(v) >= 16 && valid(v) {
			e.mask(s, start, start+len(v), KindAuthorization)
		}
	}
}

var credentialSet = setOf("0-9A-Za-z_.~+/=-")

// isPair reports whether v is the base64 of user:password.
func isPair(v string) bool {
	return strings.Contains(decoded(v), ":")
}

// decoded returns the text whose base64 v is, if it is printable, or "".
func decoded(v string) string {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v, "="))
	if err != nil || !printable.has(strings.TrimRight(string(b), "\n")) {
		return ""
	}
	return string(b)
}

var printable = setOf(" -~")

// cookies finds the values of Cookie and Set-Cookie headers, except attributes and values
// that are only a word.
func cookies(t *source, e *edits) {
	s := t.s
	done := 0
	for at := range t.places("cookie") {
		value, open, ok := headerValue(s, at+len("cookie"))
		if at < done || !ok {
			continue
		}
		end := lineEnd(s, value, open)
		for at := value; at < end; {
			stop := end
			if n := strings.IndexByte(s[at:end], ';'); n >= 0 {
				stop = at + n
			}
			start := blank.end(s, at)
			name := cookieName.end(s, start)
			if name == start || name >= stop || s[name] != '=' {
				break // not a cookie
			}
			v := strings.TrimRight(s[name+1:stop], behind)
			if !isAny(s[start:name], cookieAttributes) && (len(v) >= 16 || len(v) >= 6 && strings.ContainsAny(v, "0123456789")) && !placeholder(v) {
				e.mask(s, name+1, name+1+len(v), KindCookie)
			}
			at = stop + 1
		}
		done = end
	}
}

var (
	cookieName       = setOf("0-9A-Za-z_.$!-")
	cookieAttributes = []string{"path", "domain", "expires", "max-age", "samesite", "priority"}
)

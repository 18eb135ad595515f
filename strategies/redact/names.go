package redact

import (
	"slices"
	"strings"
)

// The maximum distances, in bytes, at which the parts of an assignment are searched for. They
// make redaction linear, together with the passes going forward only.
const (
	maxName  = 128
	maxBlank = 256
	maxUser  = 2048
	maxGap   = 96
	maxCell  = 40
)

// upperSecret reports whether a name in capitals denotes a secret.
func upperSecret(name string) bool {
	if slices.ContainsFunc(lists["upper"].all, func(w string) bool { return strings.Contains(name, w) }) {
		return true
	}
	switch name[strings.LastIndexByte(name, '_')+1:] {
	case "KEY", "PASS", "PW", "PWD":
		return name != "PWD" && name != "OLDPWD" && !identifies(name)
	}
	return strings.HasSuffix(name, "PASS") && !hasAnySuffix(name, "BYPASS", "COMPASS") // SSHPASS
}

// secretName reports whether a name in any style denotes a secret: password, db.password, clientSecret, X-Api-Key.
func secretName(name string) bool {
	if name == "key" {
		return false // of anything, as most are
	}
	before := ""
	for i := 0; i < len(name); {
		end := wordEnd(name, i)
		if w := name[i:end]; w != "" {
			if isSecretWord(before, w, name[end:]) {
				return true
			}
			before = w
		}
		i = max(end, i+1)
	}
	return false
}

// isSecretWord reports whether the word of a name between others makes it the name of a secret.
func isSecretWord(before, w, behind string) bool {
	if in("secret", w) {
		return !hasFold(w, "token") || !strings.Contains(behind, ".") // a token of a design, of a language
	}
	switch strings.ToLower(w) {
	case "key":
		return in("beforekey", before) || hasFold(before[max(0, len(before)-len("api")):], "api")
	case "keys", "phrase", "ident", "material":
		return in("pair", before+w)
	case "pass":
		return before != "" || behind == ""
	case "auth":
		return behind == ""
	}
	return joined(w)
}

// joined reports whether a word ends in one for a password, without anything between: rpcpassword.
func joined(w string) bool {
	n := len(w)
	ends := n > 8 && hasFold(w[n-8:], "password") || n > 6 && hasFold(w[n-6:], "passwd")
	return ends && !hasFold(w, "nopass")
}

// isPassword reports whether a name ends in a word for a secret that people choose and type: a word or a number, perhaps.
func isPassword(name string) bool { return lists["typed"].ends(name) }

// weakName reports whether the value of a name is a secret only if it is random.
func weakName(name string) bool { return lists["weak"].ends(name) && !identifies(name) }

// identifies reports whether a name is that of a key that identifies things, rather than opens them.
func identifies(name string) bool {
	last := lastWord(name)
	return strings.EqualFold(last, "key") && (in("identifying", wordBefore(name)) || hasFold(name, "sec-websocket")) || strings.EqualFold(last, "sitekey")
}

// dashed writes names with dashes, as the lists of the table do.
var dashed = strings.NewReplacer("_", "-", " ", "-")

// isPage reports whether a name is that of a token for the next part of a list: nextPageToken.
func isPage(name string) bool {
	last := lastWord(name)
	return in("page", wordBefore(name)) || strings.EqualFold(last, "nexttoken") || strings.EqualFold(last, "pagetoken")
}

// isCounter reports whether a name is that of a number of tokens, or of one kind of them: totalTokens, maxPayableToken.
func isCounter(name string) bool {
	if !isFold(lastWord(name), "tokens", "token") {
		return false
	}
	for i := 0; i < len(name); {
		end := wordEnd(name, i)
		if in("counted", name[i:end]) {
			return true
		}
		i = max(end, i+1)
	}
	return false
}

// endsSecret reports whether the last word of a name, perhaps before that of a stage, is secret.
func endsSecret(name string) bool {
	last := lastWord(name)
	if in("stage", last) {
		last = wordBefore(name)
	}
	return secretName(last) || isFold(last, "key", "pass", "auth")
}

// wordEnd returns the end of the word of a name that starts at i: letters up to another
// character or to a change of case that starts a new word.
func wordEnd(name string, i int) int {
	for j := i; ; j++ {
		if j == len(name) || !letters[name[j]] {
			return j
		}
		if j == i || !upperOnly[name[j]] {
			continue
		}
		follows := j+2 < len(name) && lowerOnly[name[j+1]] && lowerOnly[name[j+2]]
		if lowerOnly[name[j-1]] || follows {
			return j
		}
	}
}

// lastWord returns the last word of a name in any style.
func lastWord(name string) string {
	start := 0
	for i := 0; i < len(name); {
		end := wordEnd(name, i)
		if end > i {
			start = i
		}
		i = max(end, i+1)
	}
	return name[start:]
}

// wordBefore returns the word in front of the last word of a name.
func wordBefore(name string) string {
	return lastWord(strings.TrimRight(name[:strings.LastIndex(name, lastWord(name))], "_-."))
}

// isTypeName reports whether v is capitalised words in one, such as TestLexer.
func isTypeName(v string) bool {
	return len(v) > 3 && upperOnly[v[0]] &&
		lowerOnly[v[1]] && letters.has(v) && wordEnd(v, 0) < len(v) && entropy(v) < 4
}

// upperName returns the start of the name in capitals that ends at end.
func upperName(s string, start, end int) int { return max(start, upperScore.start(s, end, end-start)) }

// isFold reports whether s is one of some words, ignoring case.
func isFold(s string, of ...string) bool {
	return slices.ContainsFunc(of, func(o string) bool { return strings.EqualFold(o, s) })
}

func hasFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func hasAnySuffix(v string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(p string) bool { return strings.HasSuffix(v, p) })
}

func hasAnyPrefix(v string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(v, p) })
}

package redact

import "strings"

// isStandIn reports whether v says that the secret is still to be put in, such as TODO_1 and
// REPLACE_WITH_KEY, or names it in capitals as usage messages do.
func isStandIn(v string) bool {
	if len(v) > 32 {
		return false
	}
	v = strings.TrimRight(v, ".:")
	end := letters.end(v, 0)
	if upperOnly.end(v, 0) == len(v) && (isAny(v, examples) || v == "VALUE" || v == "VAL") {
		return true
	}
	rest := strings.TrimRight(v[end:], "0123456789")
	if len(v)-end-len(rest) > 2 || !nameSet.has(rest) {
		return false
	}
	return isAny(v[:end], standIns) || upperOnly.end(v, 0) >= end && isAny(v[:end], upperStandIns)
}

var (
	nameSet       = setOf("A-Za-z_-")
	standIns      = strings.Fields("todo fixme tbd placeholder replace replaceme")
	upperStandIns = strings.Fields("EXAMPLE DUMMY INSERT ENTER CHANGE CHANGEME")
)

// isIdentifier reports whether v is the name of a variable or of a type, as the value of a name in
// code: tokenObjectStart, Name.Builtin, anchor_token. A password may be any word, and a secret too.
func isIdentifier(name, v string) bool {
	if v == "" || isPassword(name) && (!upperOnly.any(v) || !lowerOnly[v[0]] || !isVariable(name, v)) || len(v) > 64 || !identifierSet.has(v) || jagged(v) || isRandom(v) {
		return false
	}
	return strings.ContainsAny(v, "._") || upperOnly.any(v) && lowerOnly.any(v) && entropy(v) < 4 || isAny(lastWord(name), []string{"token", "tokens"}) && len(v) < 12
}

var identifierSet = setOf("A-Za-z_.")

// sameName reports whether a value is the name that it is for: self.keyPassword = key_password.
func sameName(name, v string) bool {
	i, j := len(name), len(v)
	for {
		for i > 0 && (name[i-1] == '_' || name[i-1] == '-') {
			i--
		}
		for j > 0 && (v[j-1] == '_' || v[j-1] == '-') {
			j--
		}
		switch {
		case i == 0 || name[i-1] == '.':
			return j < len(v) && (j == 0 || v[j-1] == '.' && wordDot.end(v[:min(j, maxName)], 0) == j)
		case j == 0 || !strings.EqualFold(name[i-1:i], v[j-1:j]):
			return false
		}
		i, j = i-1, j-1
	}
}

// isResource reports whether the value of a name for a secret is the name of one in a store:
// secret: prod/db-1.
func isResource(name, v string) bool {
	if !isAny(strings.TrimLeft(name, "-"), []string{"secret", "secrets"}) || len(v) > 256 || resourceSet.end(v, 0) < len(v) || !strings.Contains(v, "/") && !secretName(v) {
		return false
	}
	return shortNumbers(v)
}

// shortNumbers reports whether the numbers in a name are short, as those of resources are.
func shortNumbers(v string) bool {
	for i := 0; i < len(v); i++ {
		if end := digit.end(v, i); end-i > 3 || end > i && end < len(v) && lowerOnly[v[end]] {
			return false
		} else if end > i {
			i = end
		}
	}
	return true
}

var resourceSet = setOf("a-z0-9/_.-")

// isStored reports whether v tells where a secret is kept: the version or the file of a secret, or
// the address of one in a store.
func isStored(v string) bool {
	if hasAnyPrefix(v, "arn:", "op://", "ref+", "vault:", "@Microsoft.KeyVault(") {
		return true
	}
	if n := strings.IndexByte(v, '='); n > 0 && upperName(v, 0, n) == 0 { // --set-secrets=NAME=…
		v = v[n+1:]
	}
	name, rest, ok := strings.Cut(v, ":")
	return ok && resourceSet.has(name) && letters.any(name) && (rest == "latest" || rest != "" && len(rest) < 4 && digits(rest) || rest != "" && rest[0] == '/' && isPath(rest))
}

// inARN reports whether the name at i is a part of the name of a resource of AWS.
func inARN(s string, i int) bool {
	return i > 0 && s[i-1] == ':' && strings.Contains(s[wordColon.start(s, i, maxName):i], "arn:")
}

var wordColon = setOf("0-9A-Za-z_:-")

// isLabel reports whether a value is a label of a page: the word for a password in some language, or
// a capitalised word of a name with dots, as in files of translations.
func isLabel(name, v string, quoted bool) bool {
	return len(v) <= maxName && spokenNames[strings.ToLower(v)] ||
		quoted && strings.Contains(name, ".") && len(v) > 1 && upperOnly[v[0]] && lowerOnly.end(v, 1) == len(v) ||
		// A switch, as secret_scanning: push-protection.
		!upperOnly.any(name) && secretName(name) && !endsSecret(name) && switchSet.has(v) && lowerOnly.any(v)
}

// spokenNames has the words for a secret.
var spokenNames = func() map[string]bool {
	names := map[string]bool{}
	for w := range strings.FieldsSeq(spokenWords + " " + spokenKeys) {
		names[strings.ReplaceAll(w, "_", " ")] = true
	}
	return names
}()

var switchSet = setOf("a-z_-")

// endsSecret reports whether the last word of a name, perhaps before that of a stage, is secret.
func endsSecret(name string) bool {
	last := lastWord(name)
	if isAny(last, stages) {
		last = wordBefore(name)
	}
	return secretName(last) || isAny(last, []string{"key", "pass", "auth"})
}

var stages = strings.Fields("prod production staging stage dev development test live local old new")

// isPage reports whether a name is that of a token for the next part of a list: nextPageToken.
func isPage(name string) bool {
	return isAny(wordBefore(name), pageWords) || isAny(lastWord(name), []string{"nexttoken", "pagetoken"})
}

var pageWords = strings.Fields("next page continuation continue pagination cursor prev previous forward backward sync resume starting")

// isParsed reports whether v, the value of the name at s[start:], is a token of a language, which
// a parser complains of, rather than a secret.
func isParsed(s string, start int, v string) bool {
	if !hasFold(s[start:], "token") || jagged(v) || len(v) >= 16 && isHex(v) {
		return false
	}
	before := strings.TrimRight(s[max(0, start-16):start], " ")
	return isAny(before[strings.LastIndexAny(before, " \n:(\"'")+1:], parserWords) || upperOnly.any(v) && isTokenKind(v)
}

// isTokenKind reports whether v is the name of a kind of token: NUMBER, TK_IDENT2.
func isTokenKind(v string) bool {
	rest := strings.TrimRight(v, "0123456789")
	return len(v)-len(rest) < 3 && kindSet.has(rest) && len(v) < 24
}

var (
	kindSet     = setOf("A-Z_")
	parserWords = strings.Fields("unexpected invalid unknown bad illegal unrecognized unrecognised expected missing next near stray unterminated undefined")
)

package redact

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// trailing lists the characters that may follow a value that was read up to white space.
const trailing = "\"'`,;)\\"

// spared reports whether the value of a secret name is known not to be a secret.
func spared(name, value string, quoted bool) bool {
	value = value[:min(len(value), maxTrap)]
	n := namedValue{name, value, strings.TrimRight(value, trailing+"?: "), quoted, isPassword(name)}
	return slices.ContainsFunc(exceptions, func(trap func(*namedValue) bool) bool { return trap(&n) })
}

// namedValue is a value and its name. bare is the value without the signs after it.
type namedValue struct {
	name, value, bare string
	quoted, password  bool
}

// exceptions are the kinds of values of secret names that are no secrets.
var exceptions = []func(*namedValue) bool{
	(*namedValue).constant, (*namedValue).code, (*namedValue).identifier, (*namedValue).itself, (*namedValue).about, (*namedValue).elsewhere,
	(*namedValue).counts, (*namedValue).public, (*namedValue).otherName,
}

// constant reports whether the value is a constant, a placeholder, a colour, a path, words or numbers.
func (n *namedValue) constant() bool {
	switch {
	case in("constant", n.bare), n.bare == "", placeholder(n.value), isPath(n.bare), isTrap(n.bare, "value"), !n.password && isTrap(n.bare, "measure"):
		return true
	}
	return sentence(n.value) || isMessage(n.name, n.bare) || isLabel(n.name, n.bare, n.quoted)
}

// code reports whether the value is an expression or a place in a program.
func (n *namedValue) code() bool {
	v := n.value
	switch {
	case n.quoted:
		return false
	case hasAnyPrefix(v, `("`, "('", `{"`, "{'", "&", `b""`, "b''"):
		return !isChosen(n.bare) // a tuple
	}
	return reference(v) || isPosition(n.name, v) || isTrap(n.bare, "code") && !strings.HasPrefix(v, "[]byte(")
}

// identifier reports whether the value is the name of a variable, a type or another secret.
func (n *namedValue) identifier() bool {
	v := n.bare
	if !n.quoted && lowerOnly.any(n.name) {
		if isIdentifier(n.name, v) || in("secret", v) {
			return true
		}
		if strings.Contains(v, "_") && underscore.has(v) &&
			secretName(v) && !jagged(v) && !n.password {
			return true
		}
	}
	if !n.quoted && selfNamed(v) && hasFold(v, lastWord(n.name)) || sameName(n.name, v) {
		return true
	}
	if (!n.quoted || hasAnyPrefix(v, "_")) && !n.password && isVariable(n.name, v) {
		return true
	}
	dot := strings.LastIndexByte(n.value, '.')
	return n.quoted && dot >= 0 && lowerDot.has(n.value) && secretName(n.value[dot+1:]) // user.password
}

// itself reports whether the value of a name that is not a password is that name, perhaps with a number.
func (n *namedValue) itself() bool {
	v := n.bare
	if n.password {
		return false
	}
	if hasFold(v, n.name) && len(v) <= len(n.name)+4 && digits(v[len(n.name):]) {
		return true
	}
	return nameSet.has(v) && len(v) < lists["constant"].longest+8 && strings.ContainsAny(v, "_-") && secretName(v)
}

// about reports whether the name is one for a property of a secret, or for its id unless the value is random.
func (n *namedValue) about() bool { return isAbout(n.name, n.value) }

func isAbout(name, value string) bool {
	last := lastWord(name)
	switch {
	case in("about", last):
		return true
	case strings.EqualFold(last, "id"):
		return in("publicid", wordBefore(name)) || !opaqueID(value)
	case strings.EqualFold(last, "ids"):
		return !opaqueID(value)
	}
	return false
}

// opaqueID reports whether an id is long and random, as are those that a service hands out
// together with a secret.
func opaqueID(v string) bool {
	v = strings.TrimRight(v, trailing)
	return len(v) >= 16 &&
		(isHex(v) && digit.any(v) && letters.any(v) ||
			threeKinds(v) && !strings.Contains(v, "/"))
}

// elsewhere reports whether the value is the name of a secret in a store, or of an entry in a browser.
func (n *namedValue) elsewhere() bool {
	return isResource(n.name, n.bare) ||
		strings.EqualFold(wordBefore(n.name), "storage") && resource.has(n.bare) && !isRandom(n.bare)
}

// counts reports whether the value is a count of tokens, the type of a token or one of a page, or the outcome of a test.
func (n *namedValue) counts() bool {
	upper := strings.ToUpper(n.name)
	if strings.HasSuffix(upper, "TOKENS") && !n.quoted && !threeKinds(n.value) || n.name == "PASS" {
		return true
	}
	if !strings.Contains(upper, "TOKEN") {
		return false
	}
	switch {
	case isPage(n.name), countSet.has(n.value) && len(n.value) < 12, isCounter(n.name) && !jagged(n.bare):
		return true
	}
	return n.quoted && upper == "TOKEN" && lowerDot.has(n.value) && len(n.value) < 24 ||
		!n.quoted && strings.HasSuffix(upper, "TOKEN") && isTypeName(n.bare)
}

var countSet = setOf("0-9,._)}kKM;")

// public reports whether the name is that of a public key, of a secret that exists elsewhere, or of a library with its
// checksum.
func (n *namedValue) public() bool {
	if isTrap(n.name, "name") {
		return true
	}
	if (len(n.bare) != 16 && len(n.bare) != 40) || !isHex(n.bare) {
		return false
	}
	last := lastWord(n.name)
	return strings.HasSuffix(n.name, "signingkey") || len(n.bare) == 40 && isTypeName(n.name) && !isFold(last, "key", "keys", "token", "tokens", "secret", "password")
}

// otherName reports whether the name only contains a word for a secret within another word.
func (n *namedValue) otherName() bool {
	upper := strings.ToUpper(n.name)
	left := otherWords.Replace(upper)
	return left != upper && !upperSecret(left) && !secretName(strings.ToLower(left))
}

// otherWords removes words that only contain that for a secret.
var otherWords = strings.NewReplacer("AUTHOR", "", "TOKENIZER", "")

// isMessage reports whether the value of a constant says its name, or has only one sign.
func isMessage(name, v string) bool {
	if len(v) > maxName {
		return false
	}
	if said := strings.ReplaceAll(v, " ", ""); len(said) > 8 && len(said) <= len(name) && said != v {
		return strings.EqualFold(name[len(name)-len(said):], said)
	}
	return utf8.RuneCountInString(v) == 1 || len(name) > 8 && hasFold(v, name) && strings.HasPrefix(v[len(name):], ".")
}

// isPosition reports whether a name and its value are the place of a finding of a compiler or a test: token.go:88:12.
func isPosition(name, value string) bool {
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 || dot == len(name)-1 || len(name)-dot > 5 || secretName(name[dot+1:]) {
		return false
	}
	return digit.any(value) && positions.has(value)
}

// sentence reports whether v is words about a secret, such as a label or a message of an error.
func sentence(v string) bool {
	said := strings.Fields(v)
	return len(said) > 1 && slices.ContainsFunc(said, func(w string) bool { return in("sentence", strings.TrimRight(w, ".,:;!?")) })
}

// isVariable reports whether v ends in the last word of its name, as variables in code do:
// PrivateKey: testRSAPrivateKey, or is a product.
func isVariable(name, v string) bool {
	v = strings.TrimLeft(v, "_")
	last := lastWord(name)
	if n := len(v) - len(last); n > 0 && last != "" && strings.EqualFold(v[n:], last) && alnum.has(v) {
		return true
	}
	n := digit.end(v, 0)
	return n > 0 && n < 4 && n < len(v) && v[n] == '*'
}

// isIdentifier reports whether v is the name of a variable or of a type, as the value of a name in
// code: tokenObjectStart, Name.Builtin, anchor_token. A password may be any word, and a secret too.
func isIdentifier(name, v string) bool {
	switch {
	case v == "", len(v) > 64, !identifier.has(v), jagged(v), isRandom(v):
		return false
	}
	if isPassword(name) && (!upperOnly.any(v) || !lowerOnly[v[0]] || !isVariable(name, v)) {
		return false
	}
	if strings.ContainsAny(v, "._") || isFold(lastWord(name), "token", "tokens") && len(v) < 12 {
		return true
	}
	return upperOnly.any(v) && lowerOnly.any(v) && entropy(v) < 4
}

// sameName reports whether a value is the name that it is for: self.keyPassword = key_password.
func sameName(name, v string) bool {
	i, j := len(name), len(v)
	for {
		i, j = len(strings.TrimRight(name[:i], "_-")), len(strings.TrimRight(v[:j], "_-"))
		switch {
		case i == 0 || name[i-1] == '.':
			return j < len(v) && (j == 0 || v[j-1] == '.' && wordDot.has(v[:min(j, maxName)]))
		case j == 0 || !strings.EqualFold(name[i-1:i], v[j-1:j]):
			return false
		}
		i, j = i-1, j-1
	}
}

// isResource reports whether the value of a name for a secret is the name of one in a store: secret: prod/db-1.
func isResource(name, v string) bool {
	if !isFold(strings.TrimLeft(name, "-"), "secret", "secrets") || len(v) > 256 || !resource.has(v) {
		return false
	}
	return (strings.Contains(v, "/") || secretName(v)) && shortNumbers(v)
}

// shortNumbers reports whether the numbers in a name are short, as those of resources are.
func shortNumbers(v string) bool {
	for i := 0; i < len(v); i++ {
		end := digit.end(v, i)
		if end-i > 3 || end > i && end < len(v) && lowerOnly[v[end]] {
			return false
		}
		i = max(i, end)
	}
	return true
}

// isLabel reports whether a value is a label of a page: the word for a password in some language, or
// a capitalised word of a name with dots, as in files of translations; or a switch, as secret_scanning: push-protection.
func isLabel(name, v string, quoted bool) bool {
	if len(v) <= maxName && spokenNames[strings.ToLower(v)] {
		return true
	}
	if quoted && strings.Contains(name, ".") &&
		len(v) > 1 && upperOnly[v[0]] && lowerOnly.end(v, 1) == len(v) {
		return true
	}
	return nameSet.has(v) && lowerOnly.any(v) &&
		!upperOnly.any(v) && !upperOnly.any(name) && secretName(name) && !endsSecret(name)
}

// spokenNames has the words for a secret in other languages.
var spokenNames = func() map[string]bool {
	names := map[string]bool{}
	for _, w := range wordKinds() {
		if w.language {
			names[w.text] = true
		}
	}
	return names
}()

// isParsed reports whether v, the value of the name at s[start:], is a token of a language, which
// a parser complains of, rather than a secret.
func isParsed(s string, start int, v string) bool {
	if !hasFold(s[start:], "token") || jagged(v) || len(v) >= 16 && isHex(v) {
		return false
	}
	before := strings.TrimRight(s[max(0, start-16):start], " ")
	if in("parser", before[strings.LastIndexAny(before, " \n:(\"'")+1:]) {
		return true
	}
	kind := strings.TrimRight(v, "0123456789") // NUMBER, TK_IDENT2
	return upperOnly.any(v) && len(v)-len(kind) < 3 && kindSet.has(kind) && len(v) < 24
}

var kindSet = setOf("A-Z_")

// inARN reports whether the name at i is a part of the name of a resource of AWS.
func inARN(s string, i int) bool {
	return i > 0 && s[i-1] == ':' && strings.Contains(s[wordColon.start(s, i, maxName):i], "arn:")
}

var wordColon = setOf("0-9A-Za-z_:-")

// selfNamed reports whether v is a name such as token2 or password_1.
func selfNamed(v string) bool {
	if len(v) > 24 {
		return false
	}
	bare := strings.TrimRight(v, "0123456789")
	name := strings.TrimRight(bare, "_-")
	return len(v)-len(bare) < 3 && secretName(name) && !joined(lastWord(name)) && 2*kindChanges(v) <= len(v) // not X0Pw0m
}

// isUnit reports whether s begins with a noun in the plural, of which a number in front of it is the count.
func isUnit(s string) bool {
	if !hasAnyPrefix(s, " ", "-") {
		return false
	}
	end := letters.end(s[:min(len(s), 24)], 1)
	w := s[1:end]
	return len(w) > 4 && w[len(w)-1] == 's' ||
		in("unit", w) || end == 1 && len(s) > 1 && s[1] >= utf8.RuneSelf
}

package redact

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// spared reports whether the value of a secret name is known not to be a secret.
func spared(name, value string, quoted bool) bool {
	bare := strings.TrimRight(value, behind+"?: ")
	if !quoted && isPosition(name, value) || !quoted && value != "" && value[0] == '(' && letters.end(value, 1) == len(bare) { // or a remark
		return true
	}
	if len(bare) <= maxConstant && isAny(bare, constants) || placeholder(value) || !quoted && (reference(value) || selfNamed(bare) && hasFold(bare, lastWord(name))) || isColour(value) || isPath(bare) || sentence(value) {
		return true
	}
	if !quoted && lowerOnly.any(name) && (isIdentifier(name, bare) || strings.Contains(bare, "_") && underscore.has(bare) && secretName(bare) && !jagged(bare) && !isPassword(name) || isAny(bare, secretWords)) || sameName(name, bare) ||
		!isPassword(name) && hasFold(bare, name) && len(bare) <= len(name)+4 && digits(bare[len(name):]) ||
		!isPassword(name) && nameSet.has(bare) && len(bare) < maxConstant+8 && strings.ContainsAny(bare, "_-") && secretName(bare) {
		return true
	}
	if isAbout(name, value) || isResource(name, bare) || isStored(bare) || isNumbers(bare) || isMessage(name, bare) || isLabel(name, bare, quoted) || !quoted && (hasAnyPrefix(value, `("`, "('", `{"`, "{'", "&", `b""`, "b''") && !isChosen(bare) || hasAnyPrefix(value, "[^", "(?:") || hasAnyPrefix(value, "(.", "(?", "([", `(\`) && strings.ContainsAny(value, "]*+?") || hasAnyPrefix(bare, "urn:", "scram-sha-") || strings.HasPrefix(value, "[]") && !strings.HasPrefix(value, "[]byte(")) || (!quoted || bare != "" && bare[0] == '_') && !isPassword(name) && isVariable(name, bare) { // or a tuple
		return true
	}
	if !isPassword(name) && (isDate(bare) || isMeasure(bare)) || isRule(bare) || value != "" && indexByte("^~", value[0]) && versionSet.has(bare[1:]) || quoted && lowerDot.has(value) && secretName(value[strings.LastIndexByte(value, '.')+1:]) && strings.Contains(value, ".") {
		return true // a date, 12px, required|string, a version: ^2.1, or a name: user.password
	}
	if isAny(wordBefore(name), []string{"storage"}) && resourceSet.has(bare) && !isRandom(bare) || (len(bare) == 16 || len(bare) == 40) && isHex(bare) && strings.HasSuffix(name, "signingkey") {
		return true // the name of an entry in a browser, the id of a key
	}
	if len(bare) == 40 && isHex(bare) && isTypeName(name) && !isAny(lastWord(name), []string{"key", "keys", "token", "tokens", "secret", "password"}) {
		return true // the checksum of a library: FirebaseAuth
	}
	upper := strings.ToUpper(name)
	if strings.Contains(upper, "TOKEN") && (countSet.end(value, 0) == len(value) && len(value) < 12 ||
		quoted && upper == "TOKEN" && lowerDot.end(value, 0) == len(value) && len(value) < 24 || isPage(name)) {
		return true // a count, the type of a token, a pagination token
	}
	if strings.HasSuffix(upper, "TOKENS") && !quoted && !threeKinds(value) || name == "PASS" {
		return true // a variable that counts, the outcome of a test
	}
	if strings.Contains(upper, "PUBLIC") || strings.Contains(upper, "PUBKEY") || strings.HasPrefix(upper, "EXISTING") || hasFold(wordBefore(name), "existing") || strings.Contains(upper, "GPG_KEY") || !quoted && strings.HasSuffix(upper, "TOKEN") && isTypeName(bare) || !quoted && isGeneric(bare) {
		return true
	}
	left := otherWords.Replace(upper)
	return left != upper && !upperSecret(left) && !secretName(strings.ToLower(left))
}

// otherWords removes words that only contain that for a secret.
var otherWords = strings.NewReplacer("AUTHOR", "", "TOKENIZER", "")

// isNumbers reports whether v is an address, the identifier of an object, 1.3.6.1, a constant, 0x1c, or below zero.
func isNumbers(v string) bool {
	return len(v) < maxName && strings.Count(v, ".") > 1 && versionSet.has(v) || len(v) > 2 && len(v) <= len("0x00000000") && v[:2] == "0x" && isHex(v[2:]) || len(v) > 1 && v[0] == '-' && digits(v[1:])
}

// isMessage reports whether the value of a constant says its name, or has only one sign.
func isMessage(name, v string) bool {
	if len(v) > maxName {
		return false
	}
	if words := strings.ReplaceAll(v, " ", ""); len(words) > 8 && len(words) <= len(name) && words != v {
		return strings.EqualFold(name[len(name)-len(words):], words)
	}
	return utf8.RuneCountInString(v) == 1 || len(name) > 8 && hasFold(v, name) && strings.HasPrefix(v[len(name):], ".")
}

// isDate reports whether v begins with the date of a day: 2031-05-01.
func isDate(v string) bool {
	return len(v) >= len("2006-01-02") && v[4] == '-' && v[7] == '-' && digits(v[:4]) && digits(v[5:7]) && digits(v[8:10]) && dateSet.has(v)
}

var dateSet = setOf("0-9TZ:.+ -")

// isMeasure reports whether v is a number with a unit.
func isMeasure(v string) bool {
	n := versionSet.end(v, 0)
	return n > 0 && digit[v[0]] && n < 8 && n < len(v) && len(v)-n <= 3 && lowerOnly.has(v[n:])
}

// isPosition reports whether a name and its value are the place of a finding of a compiler or a test:
// token.go:88:12.
func isPosition(name, value string) bool {
	dot := strings.LastIndexByte(name, '.')
	return dot > 0 && dot < len(name)-1 && len(name)-dot <= 5 && !secretName(name[dot+1:]) && digit.any(value) && positionSet.end(value, 0) == len(value)
}

var (
	positionSet = setOf("0-9:,-")
	lowerDot    = setOf("a-z.-")
	countSet    = setOf("0-9,._)}kKM;")
)

// aboutSecrets lists the last words of names for properties of a secret.
var aboutSecrets = []string{
	"name", "file", "path", "dir", "env", "url", "uri", "type", "kind", "count", "length", "limit", "size", "budget", "ttl", "expiry", "expires",
	"policy", "field", "column", "header", "label", "title", "description", "placeholder", "ref", "color", "colour", "format", "version",
	"encryption", "algorithm", "pattern", "regex", "at", "date", "hint", "order", "option", "options", "handling", "handler", "parser", "error", "counter", "counting", "estimate",
	"user", "username", "host", "hostname", "domain", "port", "enabled", "server", "service", "rate", "ratio", "usage", "cost", "price", "index", "position", "status", "state", "mode", "project", "algo", "manager", "region", "realm", "timeout", "interval", "days", "hours", "lifetime", "duration", "age", "created", "updated", "issued", "rotated", "changed", "modified", "validity", "rotation", "endpoint", "issuer", "scope", "scopes", "class", "provider",
}

// isAbout reports whether a name is one for a property of a secret, or for its id unless the
// value is random.
func isAbout(name, value string) bool {
	last := lastWord(name)
	return isAny(last, aboutSecrets) || strings.EqualFold(last, "id") && isAny(wordBefore(name), publicIDs) || (strings.EqualFold(last, "id") || strings.EqualFold(last, "ids")) && !opaqueID(value)
}

// publicIDs are in front of the id of what a secret is for.
var publicIDs = strings.Fields("client tenant app application user account org organization project subscription installation")

// opaqueID reports whether an id is long and random, as are those that a service hands out
// together with a secret.
func opaqueID(v string) bool {
	v = strings.TrimRight(v, behind)
	return len(v) >= 16 && (isHex(v) && digit.any(v) && letters.any(v) || threeKinds(v) && !strings.Contains(v, "/"))
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

// isColour reports whether v is a colour of a style sheet.
func isColour(v string) bool {
	return len(v) > 3 && len(v) < 10 && v[0] == '#' && isHex(strings.TrimRight(v[1:], ";"))
}

// constants lists values of secret names that are not secrets: nothing, a switch, a type.
var constants = []string{
	"", "none", "null", "nil", "true", "false", "undefined", "yes", "no", "on", "off",
	"string", "str", "number", "int", "bool", "boolean", "object", "any",
	"changeme", "change_me", "change-me", "inherit", "include", "omit", "same-origin", "required", "optional", "hidden", "unknown",
	"empty", "unset", "default", "enabled", "disabled", "missing", "invalid", "expired", "wrong", "redacted", "masked",
	"ok", "correct", "incorrect", "hashed", "plaintext", "forgot", "forgotten", "changed", "updated",
	"compat", "files", "sss", "systemd", "winbind", // databases of accounts
	"bytes", "text", "bearer", "basic", "trust", "oauth", "oauth2",
}

const maxConstant = len("same-origin")

// sentence reports whether v is words about a secret, such as a label or a message of an error.
func sentence(v string) bool {
	if !strings.Contains(v, " ") {
		return false
	}
	for w := range strings.FieldsSeq(v) {
		if isAny(strings.TrimRight(w, ".,:;!?"), sentenceWords) {
			return true
		}
	}
	return false
}

// sentenceWords lists words that no passphrase has.
var sentenceWords = []string{
	"the", "is", "are", "be", "must", "should", "can", "cannot", "not", "your", "you", "please", "enter", "required", "invalid", "incorrect", "characters", "for", "of", "to", "and", "or", "with",
	"password", "passwort", "vergessen", "muss", "doit", "debe", "deve",
}

// isTypeName reports whether v is capitalised words in one, such as TestLexer.
func isTypeName(v string) bool {
	return len(v) > 3 && upperOnly[v[0]] && lowerOnly[v[1]] && letters.end(v, 0) == len(v) && wordEnd(v, 0) < len(v) && entropy(v) < 4
}

// isGeneric reports whether v begins a type with a parameter: Promise<string.
func isGeneric(v string) bool {
	n := letters.end(v, 0)
	return n > 2 && n < len(v) && upperOnly[v[0]] && v[n] == '<'
}

// placeholder reports whether a value is a placeholder for a secret or masks it already.
func placeholder(v string) bool {
	v = strings.TrimRight(v, behind)
	if n := strings.IndexByte(v, '}'); n > 1 && v[0] == '{' && alnum.has(v[1:n]) && len(v)-n > leastKnown && alnum[v[n+1]] {
		v = v[n+1:] // behind its kind: {noop}, {AES}
	}
	if v == "" || v == "async" || nameSet.has(v) && hasAnyPrefixFold(v, "change-me", "change_me", "changeme") || v[0] == '?' && !digit.any(v) || len(v) == 42 && v[:2] == "0x" && isHex(v[2:]) {
		return true // or a message for a variable that is not set, or the address of an account
	}
	if v[0] == '`' || v[0] == '$' && (wordDot.end(v, 1) == len(v) || len(v) > 1 && (v[1] == '{' || v[1] == '(' || v[1] == '[')) || strings.HasPrefix(v, "%{") ||
		v[0] == '<' && (strings.Contains(v, ">") || letters.end(v, 1) == len(v)) || v[0] == '{' && (len(v) == 1 || strings.Contains(v, "}")) || hasAnyPrefix(v, "#{", "<%", "<?", "refs/", "origin/") {
		return true // a command, a variable, a name in brackets, the beginning of an object, a branch
	}
	if len(v) > 1 && v[0] == '%' && strings.IndexByte("svdqxXwTtp", v[1]) >= 0 && (len(v) == 2 || !alnum[v[2]]) {
		return true
	}
	if n := len(v) - 1; n > 2 && (v[0] == '%' && v[n] == '%' && !digit[v[1]] && underscore.has(v[1:n]) || v[0] == '!' && (v[n] == '!' || strings.Contains(v, "_")) && upperName(v, 1, len(v)-1) == 1) {
		return true // a variable of a batch file
	}
	if (v[0] == '*' || v[0] == '&') && wordDot.end(v, 1) == len(v) && (secretName(v[1:]) || v[0] == '&' && letters.has(v[1:])) {
		return true // an anchor of YAML, a pointer
	}
	if v[0] == '[' && v[len(v)-1] == ']' || strings.HasPrefix(v, "{{") || v[0] == '!' && len(v) > 3 && lowerOnly.end(v, 1) == len(v) {
		return true // a name in brackets, a template, a tag of YAML
	}
	v = withoutVendor(v)
	return isStandIn(v) || strings.HasSuffix(v, "xxxx") || strings.HasSuffix(v, "****") || strings.HasSuffix(v, "XXXX") || hasAnyPrefix(v, "...", "$env:", "your-", "your_", "YOUR_", "xxxx", "XXXX", "****") ||
		len(v) <= 12 && strings.HasSuffix(v, "...") || len(v) <= 64 && blanked.end(v, 0) == len(v) || strings.Trim(v, "•●·∙▪") == ""
}

var blanked = setOf("*.xX_~-")

// expands reports whether v has a variable of a shell in it, rather than a dollar sign: $NAME, ${ or $(,
// without a digit between the letters of the name.
func expands(v string) bool {
	n := strings.IndexByte(v, '$')
	if n < 0 || n+1 == len(v) || mixed(v[:n]) {
		return false
	}
	name := letters.end(v, n+1)
	return v[n+1] == '{' || v[n+1] == '(' || v[n+1] == '_' || name > n+1 && letters.end(v, digit.end(v, name)) == digit.end(v, name)
}

// formats reports whether v has a verb of a format at the end of a word: id-%d.
func formats(v string) bool {
	for at := range places(v, "%") {
		if verb := formatFlags.end(v, at+1); verb < len(v) && strings.IndexByte("svdqxXwTtp", v[verb]) >= 0 && (verb+1 == len(v) || !alnum[v[verb+1]]) {
			return true
		}
	}
	return false
}

var formatFlags = setOf("0-9.+#-")

// reference reports whether v is code that gets a value: a call, an index, an environment
// variable.
func reference(v string) bool {
	v = v[:min(len(v), 128)]
	end := wordDot.end(v, 0)
	if strings.HasPrefix(v, "ENC(") { // of Jasypt
		return false
	}
	if end > 0 && end < len(v) && (v[end] == '(' || v[end] == '[' || v[end] == '{' || strings.HasPrefix(v[end:], "::") && end < minShown) {
		return true
	}
	if verb, noun, ok := strings.Cut(v, "-"); ok && slices.Contains(cmdlets, verb) && isTypeName(noun) {
		return true
	}
	if n := lowerDigit.end(v, 0); n > 0 && lowerOnly[v[0]] && n+1 < end && v[n] == '.' && isTypeName(strings.TrimRight(v[n+1:end], "0123456789")+"Of") && end >= len(strings.TrimRight(v, behind)) {
		return true // atomic.Int64
	}
	if n := strings.LastIndexByte(v[:end], '.'); n > 0 && end >= len(strings.TrimRight(v, behind)) && secretName(v[n+1:end]) && !digit.any(v[:end]) {
		return true // args.password
	}
	if strings.Count(v[:end], ".") > 1 && end >= len(strings.TrimRight(v, behind)) && attribute.end(v, 0) == end && strings.Contains(v[:end], "_") {
		return true // random_password.db.result, of Terraform
	}
	return hasAnyPrefix(v, "process.env", "os.environ", "import.meta", "secrets.", "token.", "env.", "ENV[", "config.", "cfg.", "self.", "this.", "var.", "data.", "local.", "module.", "params.",
		"id=", "args.", "opts.", "options.", "props.", "req.", "request.", "settings.")
}

// cmdlets begin the names of commands of PowerShell, whose results are assigned without a sign.
var cmdlets = []string{"ConvertTo", "ConvertFrom", "Get", "New", "Read", "Import", "Invoke", "Select"}

var attribute = setOf("a-z_.")

func hasAnySuffix(v string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(p string) bool { return strings.HasSuffix(v, p) })
}

func hasAnyPrefix(v string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(v, p) })
}

// plainWords reports whether v is words with dashes or underscores between them, perhaps with a
// number behind one: a name that only starts like a key.
func plainWords(v string) bool {
	words, least := 0, 2
	for i := 0; ; i++ {
		end := lowerOnly.end(v, i)
		if i < len(v) && upperOnly[v[i]] {
			end = max(upperOnly.end(v, i), lowerOnly.end(v, i+1))
		}
		stop := digit.end(v, end)
		if end == i || end-i > 12 || stop-end > 3 || stop < len(v) && v[stop] != '-' && v[stop] != '_' {
			return false
		}
		if stop > end || end > i && upperOnly[v[i]] {
			least = 3 // a prefix and one more word may be a key
		}
		if words, i = words+1, stop; i == len(v) {
			return words >= least
		}
	}
}

var hexSet = setOf("0-9a-fA-F-")

// isHex reports whether v is hexadecimal, possibly with dashes.
func isHex(v string) bool { return hexSet.end(v, 0) == len(v) }

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

// isRule reports whether v is the rules for the values of a form: required|string|min:8.
func isRule(v string) bool {
	return strings.Count(v, "|") > 0 && ruleSet.has(v) && letters.any(v[:strings.IndexByte(v, '|')])
}

var (
	ruleSet    = setOf("a-z0-9_:|,")
	versionSet = setOf("0-9.")
)

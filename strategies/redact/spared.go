package redact

import "strings"

// spared reports whether the value of a secret name is none after all.
func spared(name, value string, quoted bool) bool {
	if bare := strings.TrimRight(value, behind); len(bare) <= len("undefined") && isAny(bare, constants) || placeholder(value) || !quoted && reference(value) || isColour(value) {
		return true
	}
	if isAny(lastWord(name), aboutSecrets) {
		return true
	}
	upper := strings.ToUpper(name)
	if strings.Contains(upper, "TOKEN") && (countSet.end(value, 0) == len(value) && len(value) < 12 ||
		quoted && upper == "TOKEN" && lowerDot.end(value, 0) == len(value) && len(value) < 24 ||
		strings.HasPrefix(upper, "NEXT") || strings.HasPrefix(upper, "PAGE") || strings.HasPrefix(upper, "CONTINUATION")) {
		return true // a count, the kind of a token, a place in a list
	}
	if strings.HasSuffix(upper, "TOKENS") && !quoted && !threeKinds(value) || name == "PASS" {
		return true // a variable that counts, the outcome of a test
	}
	left := strings.NewReplacer("AUTHOR", "", "TOKENIZER", "").Replace(upper)
	return left != upper && !upperSecret(left) && !secretName(strings.ToLower(left))
}

var (
	lowerDot = setOf("a-z.-")
	countSet = setOf("0-9,._)}kKM;")
)

// aboutSecrets end the names of what is said about a secret.
var aboutSecrets = []string{
	"name", "file", "path", "dir", "env", "url", "uri", "type", "kind", "count", "length", "limit", "size", "budget", "ttl", "expiry", "expires",
	"policy", "field", "column", "header", "label", "title", "description", "placeholder", "ref", "color", "colour", "format", "version",
}

// lastWord returns the last word of a name in whatever style.
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

// isColour reports a colour of a style sheet.
func isColour(v string) bool {
	return len(v) > 3 && len(v) < 10 && v[0] == '#' && isHex(strings.TrimRight(v[1:], ";"))
}

// constants are what secret names are set to without a secret: nothing, a switch, a type.
var constants = []string{
	"", "none", "null", "nil", "true", "false", "undefined", "yes", "no", "on", "off",
	"string", "str", "number", "int", "bool", "boolean", "object", "any",
}

// placeholder reports a value that says where the secret would stand, or that hides
// it already.
func placeholder(v string) bool {
	v = strings.TrimRight(v, behind)
	if v == "" || v == "async" {
		return true
	}
	if v[0] == '$' && (wordDot.end(v, 1) == len(v) || len(v) > 1 && (v[1] == '{' || v[1] == '(')) ||
		v[0] == '<' && (strings.Contains(v, ">") || letters.end(v, 1) == len(v)) || v[0] == '{' && (len(v) == 1 || strings.Contains(v, "}")) || strings.HasPrefix(v, "#{") {
		return true // a variable, a name in brackets, the beginning of an object
	}
	if len(v) > 1 && v[0] == '%' && strings.IndexByte("svdq", v[1]) >= 0 && (len(v) == 2 || !alnum[v[2]]) {
		return true
	}
	for _, p := range []string{"...", "your-", "your_", "YOUR_", "xxxx", "XXXX", "****"} {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	return len(v) <= 12 && strings.HasSuffix(v, "...") || len(v) <= 64 && blanked.end(v, 0) == len(v)
}

var blanked = setOf("*.xX_~-")

// reference reports code that fetches a value: a call, an index, a variable of the
// environment.
func reference(v string) bool {
	v = v[:min(len(v), 128)]
	end := wordDot.end(v, 0)
	if end > 0 && end < len(v) && (v[end] == '(' || v[end] == '[' || strings.HasPrefix(v[end:], "::")) {
		return true
	}
	if n := strings.LastIndexByte(v[:end], '.'); n > 0 && end >= len(strings.TrimRight(v, behind)) && secretName(v[n+1:end]) && !digit.any(v[:end]) {
		return true // args.password
	}
	for _, p := range []string{"process.env", "os.environ", "import.meta", "secrets.", "env.", "ENV[", "config.", "cfg.", "self.", "this."} {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	return false
}

// plainWords reports words in small letters with dashes between them: the name of
// something, though it begins like a key.
func plainWords(v string) bool {
	words, length := 1, 0
	for i := range len(v) {
		switch c := v[i]; {
		case c >= 'a' && c <= 'z' && length < 12:
			length++
		case (c == '-' || c == '_') && length > 0:
			words, length = words+1, 0
		default:
			return false
		}
	}
	return words > 1 && length > 0
}

var hexSet = setOf("0-9a-fA-F-")

// isHex reports a hash, or the like with dashes.
func isHex(v string) bool { return hexSet.end(v, 0) == len(v) }

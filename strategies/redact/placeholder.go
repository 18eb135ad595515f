package redact

import (
	"slices"
	"strings"
)

// placeholder reports whether a value is a placeholder for a secret or masks it already.
func placeholder(v string) bool {
	v = strings.TrimRight(v, trailing)
	if n := strings.IndexByte(v, '}'); n > 1 && v[0] == '{' &&
		alnum.has(v[1:n]) && len(v)-n > leastKnown && alnum[v[n+1]] {
		v = v[n+1:] // after its kind: {noop}, {AES}
	}
	if v == "" || v == "async" || v[0] == '?' && !digit.any(v) { // or a message for a variable that is not set
		return true
	}
	if nameSet.has(v) && (hasFold(v, "change-me") || hasFold(v, "change_me") || hasFold(v, "changeme")) {
		return true
	}
	if len(v) == 42 && v[:2] == "0x" && isHex(v[2:]) { // the address of an account
		return true
	}
	return template(v) || isBlanked(withoutVendor(v))
}

// template reports whether v is a variable or a name in brackets of a shell, a template or a document.
func template(v string) bool {
	last := v[len(v)-1]
	switch v[0] {
	case '`':
		return true
	case '$':
		return wordDot.end(v, 1) == len(v) || hasAnyPrefix(v, "${", "$(", "$[", "$env:")
	case '<':
		return strings.Contains(v, ">") || letters.end(v, 1) == len(v) || hasAnyPrefix(v, "<%", "<?")
	case '{':
		return len(v) == 1 || strings.Contains(v, "}") || v[1] == '{'
	case '[':
		return last == ']'
	case '#':
		return strings.HasPrefix(v, "#{")
	case '%':
		verb := len(v) > 1 && indexByte("svdqxXwTtp", v[1]) && (len(v) == 2 || !alnum[v[2]])
		return verb || strings.HasPrefix(v, "%{") ||
			len(v) > 3 && last == '%' && !digit[v[1]] && underscore.has(v[1:len(v)-1])
	case '!': // of a batch file, a tag of YAML
		if len(v) <= 3 {
			return false
		}
		return (last == '!' || strings.Contains(v, "_")) && upperName(v, 1, len(v)-1) == 1 || lowerOnly.end(v, 1) == len(v)
	case '*', '&': // an anchor of YAML, a pointer
		return wordDot.end(v, 1) == len(v) && (secretName(v[1:]) || v[0] == '&' && letters.has(v[1:]))
	}
	return hasAnyPrefix(v, "refs/", "origin/")
}

// isBlanked reports whether v says that the secret is left out, or is still to be put in.
func isBlanked(v string) bool {
	if isStandIn(v) || hasAnySuffix(v, "xxxx", "****", "XXXX") || hasAnyPrefix(v, "...", "your-", "your_", "YOUR_", "xxxx", "XXXX", "****") {
		return true
	}
	if len(v) <= 12 && strings.HasSuffix(v, "...") || len(v) <= 64 && blanked.has(v) {
		return true
	}
	return strings.Trim(v, "•●·∙▪") == ""
}

var blanked = setOf("*.xX_~-")

// isStandIn reports whether v says that the secret is still to be put in, such as TODO_1 and
// REPLACE_WITH_KEY, or names it in capitals as usage messages do.
func isStandIn(v string) bool {
	if len(v) > 32 {
		return false
	}
	v = strings.TrimRight(v, ".:")
	end := letters.end(v, 0)
	if upperOnly.has(v) && (in("example", v) || v == "VALUE" || v == "VAL") {
		return true
	}
	rest := strings.TrimRight(v[end:], "0123456789")
	if len(v)-end-len(rest) > 2 || !nameSet.has(rest) {
		return false
	}
	return in("standin", v[:end]) || upperOnly.has(v[:end]) && in("upperstandin", v[:end])
}

// expands reports whether v has a variable of a shell in it, rather than a dollar sign: $NAME, ${ or $(,
// without a digit between the letters of the name.
func expands(v string) bool {
	n := strings.IndexByte(v, '$')
	if n < 0 || n+1 == len(v) || mixed(v[:n]) {
		return false
	}
	name := letters.end(v, n+1)
	number := digit.end(v, name)
	return indexByte("{(_", v[n+1]) || name > n+1 && letters.end(v, number) == number
}

// reference reports whether v is code that gets a value: a call, an index, an environment variable.
func reference(v string) bool {
	v = v[:min(len(v), 128)]
	end := wordDot.end(v, 0)
	whole := end >= len(strings.TrimRight(v, trailing))
	if strings.HasPrefix(v, "ENC(") { // of Jasypt
		return false
	}
	if end > 0 && end < len(v) &&
		(indexByte("([{", v[end]) || strings.HasPrefix(v[end:], "::") && end < minShown) {
		return true
	}
	if verb, noun, ok := strings.Cut(v, "-"); ok && slices.Contains(lists["cmdlet"].all, verb) && isTypeName(noun) {
		return true
	}
	return lists["reference"].begins(v) || whole && isMember(v[:end])
}

// isMember reports whether v is the member of a package or an object: atomic.Int64, args.password, or
// random_password.db.result, of Terraform.
func isMember(v string) bool {
	n := strings.LastIndexByte(v, '.')
	if n <= 0 {
		return false
	}
	if secretName(v[n+1:]) && !digit.any(v) ||
		strings.Count(v, ".") > 1 && attribute.has(v) && strings.Contains(v, "_") {
		return true
	}
	first := lowerDigit.end(v, 0)
	return lowerOnly[v[0]] && first+1 < len(v) && v[first] == '.' && isTypeName(strings.TrimRight(v[first+1:], "0123456789")+"Of")
}

var attribute = setOf("a-z_.")

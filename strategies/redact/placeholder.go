package redact

import "strings"

// placeholder reports whether a value is a placeholder for a secret or masks it already.
func placeholder(v string) bool {
	v = strings.TrimRight(v, trailing)
	if n := strings.IndexByte(v, '}'); n > 1 && v[0] == '{' &&
		alnum.has(v[1:n]) && len(v)-n > leastKnown && alnum[v[n+1]] {
		v = v[n+1:] // after its kind: {noop}, {AES}
	}
	if v == "" || isTrap(v, "placeholder") || indexByte("*&", v[0]) && wordDot.has(v[1:]) && secretName(v[1:]) {
		return true
	}
	v = withoutVendor(v)
	return isTrap(v, "blank") || isStandIn(v)
}

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
	if strings.HasPrefix(v, "ENC(") { // of Jasypt
		return false
	}
	bare := strings.TrimRight(v[:min(len(v), maxName)], trailing)
	return isTrap(v, "reference") || wordDot.has(bare) && isMember(bare)
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

package redact

import "strings"

// placeholder reports whether a value is a placeholder for a secret or masks it already.
func placeholder(v string) bool {
	v = strings.TrimRight(v, trailing)
	if n := strings.IndexByte(v, '}'); n > 1 && v[0] == '{' &&
		alnum.has(v[1:n]) && len(v)-n > leastKnown && alnum[v[n+1]] {
		v = v[n+1:] // after its kind: {noop}, {AES}
	}
	if v == "" || isTrap(v, "placeholder") || isTrap(withoutVendor(v), "blank") {
		return true
	}
	return indexByte("*&", v[0]) && wordDot.has(v[1:]) && secretName(v[1:]) // an anchor, a pointer
}

// expands reports whether v has a variable of a shell in it, rather than a dollar sign.
func expands(v string) bool { return isTrap(v, "expands") }

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

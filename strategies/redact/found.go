package redact

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Kind says what a redacted secret was.
type Kind string

// The kinds of secret.
const (
	// KindProviderKey is a key or token in the form of somebody who hands such out.
	KindProviderKey Kind = "provider_key"
	// KindPrivateKey is a block that holds a private key.
	KindPrivateKey Kind = "private_key"
	// KindConnection is the password of a connection string.
	KindConnection Kind = "connection_string"
	// KindJWT is a JSON web token.
	KindJWT Kind = "jwt"
	// KindAuthorization is the value of a header that holds nothing but a credential.
	KindAuthorization Kind = "authorization"
	// KindCookie is the value of a cookie.
	KindCookie Kind = "cookie"
	// KindAssignment is what a name with the sound of a secret was set to.
	KindAssignment Kind = "assignment"
	// KindURLToken is a credential within a web address.
	KindURLToken Kind = "url_token"
	// KindPhone is a phone number.
	KindPhone Kind = "phone"
)

// Found counts what was redacted by kind, never by value. A nil Found is one of
// nothing that can be read but not added to.
type Found map[Kind]int

// Total returns how many secrets there were.
func (f Found) Total() int {
	n := 0
	for _, k := range f {
		n += k
	}
	return n
}

// Add counts those of another text too.
func (f Found) Add(more Found) {
	for k, n := range more {
		f[k] += n
	}
}

// String lists the kinds in order, "jwt 1, provider_key 2", and is empty for none.
func (f Found) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(f)) {
		if f[k] > 0 {
			parts = append(parts, string(k)+" "+strconv.Itoa(f[k]))
		}
	}
	return strings.Join(parts, ", ")
}

package redact

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Kind is the kind of a redacted secret.
type Kind string

// The kinds of secret.
const (
	// KindProviderKey is a key or token in the format of a vendor.
	KindProviderKey Kind = "provider_key"
	// KindPrivateKey is a block that holds a private key.
	KindPrivateKey Kind = "private_key"
	// KindConnection is the password of a connection string.
	KindConnection Kind = "connection_string"
	// KindJWT is a JSON web token.
	KindJWT Kind = "jwt"
	// KindAuthorization is a credential in a header.
	KindAuthorization Kind = "authorization"
	// KindCookie is the value of a cookie.
	KindCookie Kind = "cookie"
	// KindAssignment is the value of a name that denotes a secret.
	KindAssignment Kind = "assignment"
	// KindURLToken is a credential within a web address.
	KindURLToken Kind = "url_token"
	// KindHash is the hash of a password.
	KindHash Kind = "password_hash"
	// KindCard is the number of a payment card.
	KindCard Kind = "card"
	// KindPhone is a phone number.
	KindPhone Kind = "phone"
)

// Found counts redacted secrets by kind. A nil Found is empty and can be read only.
type Found map[Kind]int

// Total returns the number of secrets.
func (f Found) Total() int {
	n := 0
	for _, k := range f {
		n += k
	}
	return n
}

// Add adds the counts of another text.
func (f Found) Add(more Found) {
	for k, n := range more {
		f[k] += n
	}
}

// String returns the counts sorted by kind, such as "jwt 1, provider_key 2", or "" for none.
func (f Found) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(f)) {
		if f[k] > 0 {
			parts = append(parts, string(k)+" "+strconv.Itoa(f[k]))
		}
	}
	return strings.Join(parts, ", ")
}

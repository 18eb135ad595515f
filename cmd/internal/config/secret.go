package config

import (
	"log/slog"
	"regexp"
	"strings"
)

// mask stands where a password was; net/url writes the same.
const mask = "xxxxx"

// Secret is a connection string. However it is printed, logged or encoded, its
// password is masked; Reveal gives it whole.
type Secret string

// Reveal returns the connection string as it was given. Only what connects calls it.
func (s Secret) Reveal() string { return string(s) }

// String returns the connection string without its password.
func (s Secret) String() string {
	if s != "" && !strings.Contains(string(s), "://") && !strings.Contains(string(s), "=") {
		return mask // not a form in which the password can be told from the rest
	}
	return Redact(string(s))
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return `config.Secret("` + s.String() + `")` }

// LogValue is String, for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Redact masks the passwords of a connection string, or of a text that holds one:
// in the user part of a URL, in parameters of a URL, and in key=value form.
//
// It works on the text and not on a parsed URL, because people put unescaped "/",
// "?", "#" and "@" into passwords, and what does not parse has to be masked just
// the same. Where it is in doubt it masks more: everything up to the last "@".
func Redact(dsn string) string {
	userinfo := regexp.MustCompile(`(?s)(://[^:@/?#]*):.*@`)
	// In key=value form a value ends at white space; in a URL also at the next "&".
	value := `('(?:\\.|[^'\\])*'|'.*|(?:\\.|[^\s\\])+)`
	if strings.Contains(dsn, "://") {
		value = `[^\s&]+`
	}
	named := regexp.MustCompile(`(?is)\b([a-z_]*(?:password|passwd|passphrase|pwd|secret|token|auth)\s*=\s*)` + value)
	dsn = userinfo.ReplaceAllString(dsn, "${1}:"+mask+"@")
	return named.ReplaceAllString(dsn, "${1}"+mask)
}

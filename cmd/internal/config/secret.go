package config

import (
	"log/slog"
	"regexp"
	"strings"
)

// mask replaces passwords, as net/url does.
const mask = "xxxxx"

// Secret is a connection string whose password is masked when it is printed or encoded.
type Secret string

// Reveal returns the connection string unmasked. Call it only to connect.
func (s Secret) Reveal() string { return string(s) }

// String returns the connection string without its password.
func (s Secret) String() string {
	if s != "" && s != TracesOff && !strings.Contains(string(s), "://") && !strings.Contains(string(s), "=") {
		return mask // unknown form, so any part may be the password
	}
	return Redact(string(s))
}

// GoString masks as String does, for %#v.
func (s Secret) GoString() string { return `config.Secret("` + s.String() + `")` }

// LogValue masks as String does, for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText masks as String does, for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Redact masks the passwords of a connection string, or of a text that contains one: in
// the user part of a URL, in parameters of a URL, and in key=value form.
//
// It works on the text and not on a parsed URL, because passwords with unescaped "/", "?",
// "#" and "@" must be masked even if the URL does not parse. If in doubt it masks more:
// everything up to the last "@".
func Redact(dsn string) string {
	userinfo := regexp.MustCompile(`(?s)(://[^:@/?#]*):.*@`)
	// In key=value form a value ends at white space, in a URL also at "&".
	value := `('(?:\\.|[^'\\])*'|'.*|(?:\\.|[^\s\\])+)`
	if strings.Contains(dsn, "://") {
		value = `[^\s&]+`
	}
	named := regexp.MustCompile(`(?is)\b([a-z_]*(?:password|passwd|passphrase|pwd|secret|token|auth)\s*=\s*)` + value)
	dsn = userinfo.ReplaceAllString(dsn, "${1}:"+mask+"@")
	return named.ReplaceAllString(dsn, "${1}"+mask)
}

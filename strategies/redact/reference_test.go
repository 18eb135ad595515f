package redact

import (
	"strings"
	"testing"
)

// TestRedactMasksAsTheReference checks the kinds of secrets that the reference masks wherever they are: a short value of
// a header for a key, a quote directly after a value, a phone number at the start of a line; and that words after a
// password within a sentence are not a passphrase.
func TestRedactMasksAsTheReference(t *testing.T) {
	t.Parallel()
	bot := "987654321" + ":" + made("", 34)
	for _, tt := range []struct{ in, want string }{
		{"x-api-key: lamp", "x-api-key: ***"},
		{"see x-api-key: lamp", "see x-api-key: ***"},
		{"a\nx-api-key: lamp\nb", "a\nx-api-key: ***\nb"},
		{"x-api-key: lamp and more", "x-api-key: *** and more"},
		{"see x-api-key: lamp\"", "see x-api-key: ***"},
		{"app.mail.password=zu9\"", "app.mail.password=***"},
		{"see LAMP_API_KEY=zu9lamp\"", "see LAMP_API_KEY=***"},
		{"+4930123456789\"", "***\""},
		{"see +4930123456789\"", "see ***\""},
		{"a\n+4930123456789\nb", "a\n***\nb"},
		{"+4930123456789", "***"},
		{"@@ -1 +1 @@\n-1\n+4930123456789\n+2", "@@ -1 +1 @@\n-1\n+4930123456789\n+2"},
		{"queue worker I have password=lamp here MEDIA:/tmp/a.png", "queue worker I have password=lamp here MEDIA:/tmp/a.png"},
		{"I have password=lamp here and it is of no use", "I have password=lamp here and it is of no use"},
		{"a token " + bot + " here", "a token 987654321:" + mask(bot[len("987654321:"):]) + " here"},
	} {
		if got, _ := Redact(tt.in); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.in, got, tt.want)
		}
		if got, found := Redact(tt.want); got != tt.want || found.Total() != 0 && !strings.Contains(tt.want, "password=lamp") {
			t.Errorf("%q became %q when redacted again", tt.want, got)
		}
	}
}

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// Secrets of several forms. Each is put together here so that no file holds one.
var (
	short  = made("", 9)
	common = "winter" + "2031" // what people choose
	plain  = "pelican" + "lamp"
	signs  = "Tr0ub" + "4dor&3!x"
	opaque = made("", 32)
	hexes  = strings.ToLower(strings.Repeat("0a1B2c3D4e5F", 6))
	guid   = hexes[:8] + "-" + hexes[8:12] + "-4" + hexes[13:16] + "-9" + hexes[17:20] + "-" + hexes[20:32]
)

var spacedBytes = regexp.MustCompile("..")

func TestSecretsAreMaskedEverywhere(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{common, short, opaque, signs, guid, "fWtrzQKmuiJX" + "bh-yR", "correct-horse-" + "battery-staple", made("", 12) + `"\x`, "p%40" + short} {
		name := "DB_PASSWORD='" + secret + "'"
		if strings.Contains(secret, `"`) {
			name = "DB_PASSWORD=" + secret
		}
		for around, form := range map[string]string{
			"bare":          "test: " + secret + "\n",
			"a list":        "- " + secret + ", x",
			"in a sentence": "it says " + secret + ".",
			"in backticks":  "`" + secret + "`",
			"base64":        base64.StdEncoding.EncodeToString([]byte(secret)),
			"base64, pair":  base64.StdEncoding.EncodeToString([]byte("admin:" + secret)),
			"base64, lines": base64.StdEncoding.EncodeToString([]byte("user=a\npw=" + secret + "\nx=1")),
			"base64, web":   base64.RawURLEncoding.EncodeToString([]byte("xy" + secret)),
			"hexadecimal":   hex.EncodeToString([]byte(secret)),
			"in capitals":   strings.ToUpper(hex.EncodeToString([]byte(secret))),
			"base64, twice": base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte("admin:" + secret)))),
			"bytes":         strings.TrimSpace(spacedBytes.ReplaceAllString(hex.EncodeToString([]byte(secret)), "$0 ")),
			"escaped":       url.QueryEscape(secret),
			"JSON":          strconv.Quote(secret),
		} {
			var k Secrets
			k.Redact(name)
			in := "see " + form + " there"
			got, found := k.Redact(in)
			if strings.Contains(got, form) || found.Total() != 1 || !strings.HasPrefix(got, "see ") || !strings.HasSuffix(got, " there") {
				t.Errorf("%s of %q: %q became %q (%v)", around, secret, in, got, found)
			}
			both, _ := Redact(in + "\n\n" + name)
			if strings.Contains(both, form) {
				t.Errorf("%s of %q: %q", around, secret, both)
			}
		}
	}
}

func TestSecretsAreMaskedInAnswers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"What is the password of the router?": hidden, "Did the tests pass?": signs, "Which version of the router?": signs} {
		var k Secrets
		k.Redact(in)
		if got, _ := k.Redact(signs); got != want {
			t.Errorf("the answer to %q became %q", in, got)
		}
	}
}

func TestSecretsInBase64AreMaskedInPlain(t *testing.T) {
	t.Parallel()
	pair := base64.StdEncoding.EncodeToString([]byte("me:" + common))
	for _, in := range []string{"Authorization: Basic " + pair, `{"auth": "` + pair + `"}`, "kind: Secret\ndata:\n  password: " + base64.StdEncoding.EncodeToString([]byte(common))} {
		if got, _ := Redact("echo me:" + common + "\n" + in); strings.Contains(got, common) {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestSecretsOfWordsAreMaskedWhereEncoded(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"base64":      "data: " + base64.StdEncoding.EncodeToString([]byte(plain)) + "\n",
		"a pair":      "sent " + base64.StdEncoding.EncodeToString([]byte("admin:"+plain)) + " to it",
		"hexadecimal": "0x" + hex.EncodeToString([]byte(plain)),
	} {
		var k Secrets
		k.Redact("[client]\npassword = " + plain + "\n")
		if got, found := k.Redact(in); found.Total() != 1 || !strings.Contains(got, hidden) {
			t.Errorf("%s: %q became %q", name, in, got)
		}
		if got, _ := k.Redact("a " + plain + " of oil"); !strings.Contains(got, plain) {
			t.Errorf("the word itself became %q", got)
		}
	}
}

func TestSecretsLeaveWordsAlone(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"test", "postgres", "password", "secret1", "12345678", "changed", "abc-def", "authentication", "my-app-name", "aaaaaaaa1", "src/auth/token2.go", "localhost:80"} {
		var k Secrets
		k.Redact("DB_PASSWORD=" + secret + "\n")
		in := "run the " + secret + " and x" + secret + "y " + secret
		if secret == "secret1" || secret == "localhost:80" { // alone, but not within a word
			in = "run the x" + secret + "y"
		}
		if got, _ := k.MaskKnown(in); got != in {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func BenchmarkSecretsGrowth(b *testing.B) {
	for name, alike := range map[string]string{"unlike": "", "alike": made("", 8)} {
		b.Run(name, func(b *testing.B) {
			var k Secrets
			for i := range 2 * maxKnown {
				k.remember(alike+strconv.Itoa(i*7919)+made("", 8), KindAssignment)
			}
			growth.Report(b, 1<<15, 8, func(n int) func() {
				s := strings.Repeat(alike+"1 aB3dE", n/16)
				return func() { k.MaskKnown(s) }
			})
		})
	}
}

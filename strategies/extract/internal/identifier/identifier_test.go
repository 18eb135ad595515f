package identifier

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestAll(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"see src/lamp.go:12 and ~/notes.md, not e.g. this": {"path src/lamp.go", "path ~/notes.md"},
		"+++ b/src/fan.go\n--- a/src/fan.go":               {"path src/fan.go", "path src/fan.go"},
		"lamp_test.go-25-\tfunc":                           {"file lamp_test.go"},
		"order W12345X of a@example.com, INC-2291":         {"code W12345X", "email a@example.com", "code INC-2291"},
		"https://example.com/a?b=c#d, and </system-tag>":   {"url https://example.com/a?b=c#d"},
		"9f3a2b1c 20418 credit_card_4421 true":             {"sha 9f3a2b1c", "number 20418", "handle credit_card_4421"},
		"7f3e9a1c-aaaa-bbbb-cccc-1234567890ab.":            {"uuid 7f3e9a1c-aaaa-bbbb-cccc-1234567890ab"},
		"call `Light()` in \"the hall\", don't":            {"named Light()", "named the hall"},
		"注文 W12345X は「src/灯.go」":                           {"code W12345X"},
	} {
		var got []string
		All(in, func(kind Kind, start, end int) { got = append(got, kind.String()+" "+in[start:end]) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestLabel(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"the order is W1":      "order",
		"Reservation: W1":      "reservation",
		"reservation\nW1":      "",
		"FQ8APE W1":            "",
		"\"user_id\": \"W1":    "user",
		"seen in Straße 7: W1": "seen",
	} {
		if got, _ := Label(in, strings.Index(in, "W1"), 40); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzAll(f *testing.F) {
	f.Add("`a'\"b\" x/y.go https://e.example/é 日本/語.go \xff@a.b")
	f.Fuzz(func(t *testing.T, s string) {
		All(s, func(kind Kind, start, end int) {
			if start < 0 || start >= end || end > len(s) || kind >= kinds {
				t.Fatalf("%v [%d:%d] of %q", kind, start, end, s)
			}
			if kind != Quoted && !utf8.ValidString(s[start:end]) {
				t.Fatalf("%q", s[start:end])
			}
			Label(s, start, 40)
		})
	})
}

package identifier_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
)

// The expressions that define the kinds, for an engine that has look-around.
// Its \w is another one than Python's, so both are spelled out.
const (
	wordSet    = `\p{L}\p{N}_`
	isBoundary = `(?:(?<=[` + wordSet + `])(?![` + wordSet + `])|(?<![` + wordSet + `])(?=[` + wordSet + `]))`
)

var expressions = map[identifier.Kind]string{
	identifier.UUID:   `\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`,
	identifier.Email:  `\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b`,
	identifier.Path:   `(?<![\w/.])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w@+-]+(?:\.[\w-]+)*`,
	identifier.File:   `(?<![\w/.-])[\w-]+\.(?:go|py|ts|tsx|js|jsx|rs|c|h|cpp|java|rb|sh|sql|md|json|jsonl|ya?ml|toml|lock|mod|sum|css|html|txt|csv)\b`,
	identifier.Code:   `(?<![\w])#?(?=[A-Z0-9]*[A-Z])(?=[A-Z0-9]*\d)[A-Z0-9]{5,12}\b`,
	identifier.SHA:    `\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b`,
	identifier.Handle: `\b[a-z]+(?:_[a-z]+)*_\d{3,}\b`,
	identifier.Number: `(?<![\w.])\d{4,}(?![\w])`,
	identifier.Quoted: `"([^"\n\\]{3,60})"|` + "`([^`\n]{3,60})`" + `|(?<!\w)'([^'\n]{3,60})'(?!\w)`,
}

// found is one identifier: its kind and its place in characters.
type found struct {
	kind   identifier.Kind
	start  int
	length int
	text   string
}

func oracle(t testing.TB) func(s string) map[found]bool {
	t.Helper()
	compiled := map[identifier.Kind]*regexp2.Regexp{}
	for kind, e := range expressions {
		e = strings.ReplaceAll(e, `[\w`, `[`+wordSet)
		e = strings.ReplaceAll(e, `\w`, `[`+wordSet+`]`)
		e = strings.ReplaceAll(e, `\b`, isBoundary)
		e = strings.ReplaceAll(e, `\d`, `\p{Nd}`)
		compiled[kind] = regexp2.MustCompile(e, regexp2.None)
	}
	return func(s string) map[found]bool {
		out := map[found]bool{}
		for kind, re := range compiled {
			m, err := re.FindStringMatch(s)
			for ; m != nil && err == nil; m, err = re.FindNextMatch(m) {
				f := found{kind, m.Index, m.Length, m.String()}
				if kind == identifier.Quoted {
					f.start, f.length, f.text = f.start+1, f.length-2, strings.Trim(f.text, f.text[:1])
					if !strings.ContainsAny(f.text, letters) || strings.TrimFunc(f.text, blank) != f.text {
						continue
					}
				}
				if kind == identifier.Path && (f.length < 6 || !twoLetters(f.text)) {
					continue
				}
				out[f] = true
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func blank(r rune) bool {
	return strings.ContainsRune("\t\n\v\f\r\x1c\x1d\x1e\x1f \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000", r) || '\u2000' <= r && r <= '\u200a'
}

func twoLetters(s string) bool {
	for i := 1; i < len(s); i++ {
		if strings.IndexByte(letters, s[i-1]) >= 0 && strings.IndexByte(letters, s[i]) >= 0 {
			return true
		}
	}
	return false
}

func scanned(s string) map[found]bool {
	out := map[found]bool{}
	identifier.All(s, func(kind identifier.Kind, start, end int) {
		v := s[start:end]
		out[found{kind, len([]rune(s[:start])), len([]rune(v)), v}] = true
	})
	return out
}

// pieces are the parts of random texts: every character that an expression treats
// apart, and words that are nearly an identifier.
var pieces = []string{
	"a", "b", "f", "g", "z", "A", "F", "Z", "0", "1", "9", "_", "-", ".", "..", "/", "//", "~", "~/", "../", "./", "@", "+", "#", "\"", "'", "`", "\\",
	"\n", "\r\n", " ", "\t", "é", "ß", "中", "٣", "½", "Ⅷ", "\u0301", "\u200d", "\u00a0", "\u2028", "😀", "\x1f", "\x00", ":", ",", "(", ")",
	"go", "json", "jsonl", "yml", "yaml", "ml", ".go", ".tsx", "foo", "foo_bar", "Foo", "abc", "usr", "lib", "deadbeef", "1234", "12", "ABC12", "W1234567",
	"0a1b2c3d", "12345678-", "1234-", "-1234-1234-1234-", "123456789abc", "https://", "a@b.c", "user@example", ".com", "_123", "_1234", "don't", " the ",
}

func randomText(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "pieces"), "")
}

func TestAllFindsWhatTheExpressionsFind(t *testing.T) {
	t.Parallel()
	want := oracle(t)
	rapid.Check(t, func(t *rapid.T) {
		s := randomText(t)
		compare(t, s, scanned(s), want(s))
	})
}

// As above with many more texts, which need not shrink.
func TestAllFindsWhatTheExpressionsFindInLongTexts(t *testing.T) {
	t.Parallel()
	want := oracle(t)
	for _, s := range randomTexts(5, 1500) {
		compare(t, s, scanned(s), want(s))
	}
}

// randomTexts are n texts of up to 40 pieces.
func randomTexts(seed uint64, n int) []string {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make([]string, n)
	for i := range out {
		var b strings.Builder
		for range r.IntN(40) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		out[i] = b.String()
	}
	return out
}

func FuzzAll(f *testing.F) {
	want := oracle(f)
	for _, s := range adversarial {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\ufffd")
		if len(s) > 2000 {
			return // the oracle is not linear
		}
		compare(t, s, scanned(s), want(s))
	})
}

func compare(t interface {
	Helper()
	Errorf(format string, args ...any)
}, s string, got, want map[found]bool,
) {
	t.Helper()
	for f := range want {
		if !got[f] {
			t.Errorf("in %q: %s %q at %d is not found", s, f.kind, f.text, f.start)
		}
	}
	for f := range got {
		if !want[f] {
			t.Errorf("in %q: %s %q at %d is none", s, f.kind, f.text, f.start)
		}
	}
}

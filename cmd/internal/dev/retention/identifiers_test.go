package retention_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/dev/retention"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// fragments are the parts of random texts: each character that an expression treats apart, and
// words that are nearly an identifier.
var fragments = []string{
	"a", "b", "f", "g", "z", "A", "F", "Z", "0", "1", "9", "_", "-", ".", "..", "/", "//", "~", "~/", "../", "./", "@", "+", "#", "\"", "'", "`", "\\",
	"\n", "\r\n", " ", "\t", "é", "ß", "中", "٣", "½", "Ⅷ", "\u0301", "\u200d", "\u00a0", "\u2028", "😀", "\x1f", "\x00", ":", ",", "(", ")", "\u212a", "\u0130",
	"go", "json", "jsonl", "yml", "yaml", "ml", ".go", ".tsx", "foo", "foo_bar", "Foo", "abc", "usr", "lib", "deadbeef", "1234", "12", "ABC12", "W1234567",
	"0a1b2c3d", "12345678-", "1234-", "-1234-1234-1234-", "123456789abc", "https://", "a@b.c", "user@example", ".com", "_123", "_1234", "don't", " the ",
}

// texts returns random texts and those of real messages.
func texts(t *testing.T) []string {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 0))
	n := 5_000
	if sessiontest.Long() {
		n = 20_000
	}
	out := make([]string, n)
	for i := range out {
		var b strings.Builder
		for range r.IntN(40) {
			b.WriteString(fragments[r.IntN(len(fragments))])
		}
		out[i] = b.String()
	}
	for _, s := range sessiontest.Recorded(t, "pi_mono.jsonl", 2) {
		for i := range s.Messages {
			out = append(out, retention.Text(&s.Messages[i]))
		}
	}
	return out
}

func TestIdentifiersAreTheScripts(t *testing.T) {
	t.Parallel()
	all := texts(t)
	var want [][]string
	python(t, `print(json.dumps([list(r.extract(s)) for s in json.load(sys.stdin)]))`, all, &want)
	n := 0
	for i, s := range all {
		got := retention.IdentifiersIn(s)
		if n += len(got); !slices.Equal(got, want[i]) {
			t.Errorf("%.2000q: -script +ours\n%s", s, cmp.Diff(want[i], got))
		}
	}
	t.Logf("%d identifiers in %d texts", n, len(all))
}

func TestLabelsAreTheScripts(t *testing.T) {
	t.Parallel()
	type ask struct {
		Text  string `json:"text"`
		At    int    `json:"at"` // in characters
		Reach int    `json:"reach"`
	}
	r := rand.New(rand.NewPCG(3, 4))
	var asks []ask
	var got [][]string
	for _, s := range texts(t) {
		runes := []rune(s)
		a := ask{s, r.IntN(len(runes) + 1), 1 + r.IntN(60)}
		asks = append(asks, a)
		got = append(got, append([]string{}, retention.LabelsBefore(s, len(string(runes[:a.At])), a.Reach)...))
	}
	var want [][]string
	python(t, `
def labels(a):
    s=a["text"][max(0,a["at"]-a["reach"]):a["at"]]
    return [x for x in r.WORD.findall(s.rsplit("\n",1)[-1].lower()) if x not in r.STOP]
print(json.dumps([labels(a) for a in json.load(sys.stdin)]))`, asks, &want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-script +ours\n%s", diff)
	}
}

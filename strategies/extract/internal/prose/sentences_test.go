package prose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSentences(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"":                            nil,
		"One. Two? Three":             {"One.", " Two?", " Three"},
		"v1.2.3 and a.go are kept.":   {"v1.2.3 and a.go are kept."},
		"- item one\n\n# Title\n":     {"item one", "Title"},
		"これは。それは？":                    {"これは。", "それは？"},
		"Wait... what?!":              {"Wait...", " what?!"},
		"a\x00b\u2028c":               {"a", "b", "c"},
		"Is it `a.b()`? Yes, it is.!": {"Is it `a.b()`?", " Yes, it is.!"},
		"Der Einzug ist am 14. September 2027 und bis 1. Oktober streichen wir.": {"Der Einzug ist am 14. September 2027 und bis 1. Oktober streichen wir."},
		"Wir nehmen den 3. Stock. Vom 5. bis 7. mai sind wir weg.":               {"Wir nehmen den 3. Stock.", "Vom 5. bis 7. mai sind wir weg."},
		"1. Juni geht nicht. Ich bleibe bis 18. Danach fahre ich.":               {"1. Juni geht nicht.", "Ich bleibe bis 18.", "Danach fahre ich."},
		"Maler Kern (2.350, Tel. 0511 555014, Lindenstr. 8) kommt. Gut so.":      {"Maler Kern (2.350, Tel. 0511 555014, Lindenstr. 8) kommt.", "Gut so."},
		"Ask Dr. Haddad or Mrs. Lund, e.g. by mail, at 9 a.m. on Monday. Bye.":   {"Ask Dr. Haddad or Mrs. Lund, e.g. by mail, at 9 a.m. on Monday.", "Bye."},
		"Rot bzw. Blau, z. B. von Haus Nr. 7, ca. 4 Liter. La Sra. Ruiz paga.":   {"Rot bzw. Blau, z. B. von Haus Nr. 7, ca. 4 Liter.", "La Sra. Ruiz paga."},
		"It took 5 ms. Then 3. Set it to 2. Keep plan B. Use Fig. 4, not max.":   {"It took 5 ms.", "Then 3.", "Set it to 2.", "Keep plan B.", "Use Fig. 4, not max."},
	} {
		var trimmed []string
		for _, w := range want {
			trimmed = append(trimmed, strings.TrimSpace(w))
		}
		if got := Sentences(in); !cmp.Equal(got, trimmed) {
			t.Errorf("%q: %q, want %q", in, got, trimmed)
		}
	}
}

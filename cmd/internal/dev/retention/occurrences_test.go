package retention

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
)

func TestOccurrencesAreFoundFromTheLastOneBackWithoutOverlap(t *testing.T) {
	t.Parallel()
	type place struct {
		nth, at int
		text    string
	}
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.RuneFrom([]rune("abcé"))
		texts := rapid.SliceOfN(rapid.StringOfN(letters, 0, 60, -1), 0, 4).Draw(t, "texts")
		ms := make([]chat.Message, len(texts))
		for i, text := range texts {
			ms[i].Content = chat.TextContent(text)
		}
		o := newOccurrences(ms)
		for _, word := range rapid.SliceOfN(rapid.StringOfN(letters, 1, 5, -1), 0, 12).Draw(t, "words") {
			var got, want []place
			for _, text := range slices.Backward(texts) {
				rest := text
				for at := strings.LastIndex(rest, word); at >= 0; at = strings.LastIndex(rest, word) {
					want = append(want, place{len(want), at, text})
					rest = rest[:at]
				}
			}
			o.backwards(word, func(nth int, text string, at int) bool {
				got = append(got, place{nth, at, text})
				return true
			})
			if !slices.Equal(got, want) {
				t.Errorf("%q in %q: got %v, want %v", word, texts, got, want)
			}
		}
	})
}

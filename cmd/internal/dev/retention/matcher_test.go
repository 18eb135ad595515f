package retention

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatcherFindsEveryOccurrence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.RuneFrom([]rune("abcé"))
		words := rapid.SliceOfNDistinct(rapid.StringOfN(letters, 1, 5, -1), 0, 12, func(s string) string { return s }).Draw(t, "words")
		text := rapid.StringOfN(letters, 0, 60, -1).Draw(t, "text")
		var want []match
		for w, word := range words {
			for i := range len(text) - len(word) + 1 {
				if strings.HasPrefix(text[i:], word) {
					want = append(want, match{int32(w), i + len(word)})
				}
			}
		}
		got := newMatcher(words).find(nil, text)
		if !slices.IsSortedFunc(got, func(a, b match) int { return a.end - b.end }) {
			t.Errorf("not in order: %v", got)
		}
		order := func(a, b match) int {
			if a.end != b.end {
				return a.end - b.end
			}
			return int(a.word - b.word)
		}
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if !slices.Equal(got, want) {
			t.Errorf("%q in %q: got %v, want %v", words, text, got, want)
		}
	})
}

package retention

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// occurrences holds the texts of messages.
type occurrences []string

func newOccurrences(ms []chat.Message) occurrences {
	o := make(occurrences, len(ms))
	for i := range ms {
		o[i] = Text(&ms[i])
	}
	return o
}

// backwards calls do for each occurrence of word at a byte of a text, from the last one back, until do
// returns false. Overlapping occurrences are skipped. nth counts the calls.
func (o occurrences) backwards(word string, do func(nth int, text string, at int) bool) {
	nth := 0
	for _, text := range slices.Backward(o) {
		if !strings.Contains(text, word) { // faster than LastIndex
			continue
		}
		for at := strings.LastIndex(text, word); at >= 0; at = strings.LastIndex(text[:at], word) {
			if !do(nth, text, at) {
				return
			}
			nth++
		}
	}
}

// contain reports whether word occurs within a text.
func (o occurrences) contain(word string) bool {
	return slices.ContainsFunc(o, func(text string) bool { return strings.Contains(text, word) })
}

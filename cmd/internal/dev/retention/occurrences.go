package retention

import (
	"index/suffixarray"
	"math"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// occurrences finds words in the texts of messages.
type occurrences struct {
	texts  []string
	starts []int // offsets of the texts in the index
	index  *suffixarray.Index
}

func newOccurrences(ms []chat.Message) *occurrences {
	o := &occurrences{texts: make([]string, len(ms)), starts: make([]int, len(ms))}
	size := 0
	for i := range ms {
		o.texts[i], o.starts[i] = Text(&ms[i]), size
		size += len(o.texts[i])
	}
	o.index = suffixarray.New([]byte(strings.Join(o.texts, "")))
	return o
}

// backwards calls do for each occurrence of word, from the last one back, until do
// returns false. Overlapping occurrences and those that span two texts are skipped. nth
// counts the calls; the occurrence starts at the byte offset at of text.
func (o *occurrences) backwards(word string, do func(nth int, text string, at int) bool) {
	found := o.index.Lookup([]byte(word), -1)
	slices.Sort(found)
	nth, message, low := 0, len(o.texts)-1, math.MaxInt
	for _, start := range slices.Backward(found) {
		for o.starts[message] > start {
			message--
		}
		at, text := start-o.starts[message], o.texts[message]
		if at+len(word) > len(text) || start+len(word) > low {
			continue
		}
		if !do(nth, text, at) {
			return
		}
		nth, low = nth+1, start
	}
}

// contain reports whether word occurs within a text.
func (o *occurrences) contain(word string) (found bool) {
	o.backwards(word, func(int, string, int) bool {
		found = true
		return false
	})
	return found
}

package extract

import (
	"slices"
	"strings"
	"unicode"
)

// topic holds the words of the focus in lower case.
type topic []string

const (
	// topicFactor multiplies the value of items and references that match the topic, so
	// that they get the larger share if there are enough of them.
	topicFactor = 12
	// maxTopicRange is the maximum number of bytes of a line that match together.
	maxTopicRange = 400
	// maxTopicWords is the maximum number of words.
	maxTopicWords = 32
)

// newTopic returns the distinctive words of a text: long ones, those with digits and those
// of scripts without an alphabet, or all words if there are none of these.
func newTopic(s string) topic {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./#", r)
	})
	var all, distinctive topic
	for _, w := range words {
		if w = strings.Trim(w, "_-./#"); w == "" || len(all) == maxTopicWords {
			continue
		}
		all = append(all, w)
		if len(w) > 3 || strings.ContainsAny(w, "0123456789") {
			distinctive = append(distinctive, w)
		}
	}
	if len(distinctive) > 0 {
		return distinctive
	}
	return all
}

// matches reports whether a text contains a word of the topic.
func (t topic) matches(s string) bool {
	if len(t) == 0 {
		return false
	}
	s = strings.ToLower(s)
	return slices.ContainsFunc(t, func(w string) bool { return strings.Contains(s, w) })
}

// ranges returns the byte ranges of the lines that match the topic, in order. Of a long
// line, it returns the matching pieces.
func (t topic) ranges(s string) [][2]int {
	if len(t) == 0 {
		return nil
	}
	var out [][2]int
	at := 0
	for line := range strings.Lines(s) {
		for len(line) > 0 {
			n := min(len(line), maxTopicRange)
			if t.matches(line[:n]) {
				out = append(out, [2]int{at, at + n})
			}
			at, line = at+n, line[n:]
		}
	}
	return out
}

// advance drops the ranges that end at or before a byte, and reports whether the next one
// contains the byte. It must be called with growing positions.
func advance(ranges [][2]int, at int) (rest [][2]int, in bool) {
	for len(ranges) > 0 && ranges[0][1] <= at {
		ranges = ranges[1:]
	}
	return ranges, len(ranges) > 0 && ranges[0][0] <= at
}

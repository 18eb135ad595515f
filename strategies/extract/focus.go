package extract

import (
	"strings"
	"unicode"
)

// topic is what a summary favours: the words of it, in small letters.
type topic []string

const (
	// topicFactor is how much more worth is what belongs to the topic. It takes the
	// larger share of the room that way wherever there is enough of it.
	topicFactor = 12
	// maxTopicRange is how many bytes of a line belong together.
	maxTopicRange = 400
	// maxTopicWords bounds the words of a topic.
	maxTopicWords = 32
)

// newTopic takes the words of a text that say something: long ones, those with digits
// and those of scripts that do not spell, or all of them where there are no such.
func newTopic(s string) topic {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./#", r)
	})
	var all, telling topic
	for _, w := range words {
		if w = strings.Trim(w, "_-./#"); w == "" || len(all) == maxTopicWords {
			continue
		}
		all = append(all, w)
		if len(w) > 3 || strings.ContainsAny(w, "0123456789") {
			telling = append(telling, w)
		}
	}
	if len(telling) > 0 {
		return telling
	}
	return all
}

// matches reports whether a text names the topic.
func (t topic) matches(s string) bool {
	if len(t) == 0 {
		return false
	}
	s = strings.ToLower(s)
	for _, w := range t {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// ranges returns the lines of a text that name the topic, in order, as bytes from and to.
// Of a long line it is the piece that does.
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

// advance drops the parts of a text that end at an byte or before it, and reports
// whether the byte is in the next one: it is asked about bytes in order.
func advance(parts [][2]int, at int) (left [][2]int, in bool) {
	for len(parts) > 0 && parts[0][1] <= at {
		parts = parts[1:]
	}
	return parts, len(parts) > 0 && parts[0][0] <= at
}

package reference

import (
	"slices"
	"strings"
	"unicode"
)

// topic holds the words of the focus in lower case.
type topic []string

const (
	// maxTopicRange is the number of bytes of a line around an identifier that match it.
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

// matchesNear reports whether the line around a byte of s contains a word of the topic; of a long line, the part
// that is near.
func (t topic) matchesNear(s string, at int) bool {
	if len(t) == 0 {
		return false
	}
	before, after := s[max(0, at-maxTopicRange/2):at], s[at:min(len(s), at+maxTopicRange/2)]
	after, _, _ = strings.Cut(after, "\n")
	return t.matches(before[strings.LastIndexByte(before, '\n')+1:] + after)
}

package text

import "strings"

// Set returns the words of s, which blanks and line breaks separate, as a set, for tables of words.
func Set(s string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

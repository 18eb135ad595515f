package extract

import (
	"strings"
	"unicode/utf8"
)

// AppendLabels appends to dst the words that label what stands at the byte at of
// s, in the order of the text and in lower case: the words of three ASCII letters
// or more that stand before it on its line within the given number of characters,
// without the words that say nothing ("the", "and", "this"). A word that the
// limit cuts counts as what is left of it. Words in lower case are parts of s.
func AppendLabels(dst []string, s string, at, within int) []string {
	line := s[lineStart(s, at, within):at]
	for i := 0; i < len(line); {
		if !isLetter(line[i]) && line[i] < utf8.RuneSelf {
			i++
			continue
		}
		end, folded := labelWordEnd(line, i)
		if end == i { // a character that is no letter
			_, size := utf8.DecodeRuneInString(line[i:])
			i += size
			continue
		}
		w := line[i:end]
		if folded {
			w = strings.ToLower(w)
		}
		if len(w) >= 3 && !isStopWord(w) {
			dst = append(dst, w)
		}
		i = end
	}
	return dst
}

// lineStart returns the index of the first character before at on its line, at most
// within characters back.
func lineStart(s string, at, within int) int {
	for ; within > 0 && at > 0; within-- {
		if s[at-1] == '\n' {
			break
		}
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return at
}

// Two characters beyond ASCII have an ASCII letter for lower case: the Kelvin
// sign is a k, and the I with a dot is an i and a combining dot, which ends a word.
const (
	kelvin  = "\u212a"
	dottedI = "\u0130"
)

// labelWordEnd returns the end of the word that starts at i, and whether it has to be
// folded to lower case.
func labelWordEnd(s string, i int) (end int, folded bool) {
	for i < len(s) {
		switch {
		case isLetter(s[i]):
			folded = folded || s[i] < 'a'
			i++
		case strings.HasPrefix(s[i:], kelvin):
			folded = true
			i += len(kelvin)
		case strings.HasPrefix(s[i:], dottedI):
			return i + len(dottedI), true
		default:
			return i, folded
		}
	}
	return i, folded
}

// isStopWord reports whether a word labels nothing.
func isStopWord(w string) bool {
	switch w {
	case "the", "and", "for", "with", "that", "this", "from", "are", "was", "not", "but", "you", "has", "have", "its", "into",
		"can", "will", "all", "any", "our", "out", "use", "get", "new":
		return true
	}
	return false
}

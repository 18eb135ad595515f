package prose

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsLetterOrDigit reports whether r is part of a word of any script.
func IsLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// EndsSentence reports whether r ends a sentence in one of the scripts that have marks for it.
func EndsSentence(r rune) bool { return strings.ContainsRune(".!?。！？؟।", r) }

// Sentences returns the sentences of a line. A point ends one only before a blank and a letter that is no lower-case
// one, and after more than two letters, so that most abbreviations and ordinal numbers end none.
func Sentences(line string) []string {
	var out []string
	start, letters := 0, 0
	for i, r := range line {
		end := i + utf8.RuneLen(r)
		if !EndsSentence(r) {
			if letters++; !IsLetterOrDigit(r) {
				letters = 0
			}
			continue
		}
		next, _ := utf8.DecodeRuneInString(strings.TrimLeft(line[end:], " "))
		switch {
		case r >= utf8.RuneSelf: // needs no blank after it
		case end < len(line) && line[end] != ' ':
			continue
		case r != '.' || end == len(line):
		case letters < 3 || unicode.IsLower(next) || unicode.IsDigit(next):
			continue
		}
		out = append(out, strings.TrimSpace(line[start:end]))
		start, letters = end, 0
	}
	if rest := strings.TrimSpace(line[start:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

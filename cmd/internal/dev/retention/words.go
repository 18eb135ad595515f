package retention

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isWord reports whether Python's \w matches r.
func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// isSpace reports whether Python's \s matches r.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func trim(s string) string { return strings.TrimFunc(s, isSpace) }

// lower returns s in lower case. Unlike strings.ToLower, it keeps the dot of a capital I.
func lower(s string) string { return strings.ToLower(strings.ReplaceAll(s, "\u0130", "i\u0307")) }

// normalized returns the words of s, with their apostrophes, in lower case and separated by
// single blanks.
func normalized(s string) string {
	return strings.Join(strings.FieldsFunc(lower(s), func(r rune) bool { return !isWord(r) && r != '\'' }), " ")
}

// words returns the runs of word characters, quotes, dots, slashes and hyphens in s with at
// least atLeast characters, in lower case and without repetitions.
func words(s string, atLeast int) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return !isWord(r) && !strings.ContainsRune("'./-", r) }) {
		if utf8.RuneCountInString(w) >= atLeast {
			out[lower(w)] = true
		}
	}
	return out
}

// Sizes in characters of the sentences and lines that count.
const minSentence, maxSentence = 12, 300

func isSentence(s string) bool {
	n := utf8.RuneCountInString(s)
	return minSentence <= n && n <= maxSentence
}

// sentences calls yield for each sentence of a countable size. A sentence ends with its line,
// or with one of . ! ? before white space.
func sentences(s string, yield func(string)) {
	for line := range strings.SplitSeq(s, "\n") {
		line = trim(line)
		start := 0
		for i, r := range line {
			if i > start && isSpace(r) && strings.IndexByte(".!?", line[i-1]) >= 0 {
				if isSentence(line[start:i]) {
					yield(line[start:i])
				}
				start = len(line) - len(strings.TrimLeftFunc(line[i:], isSpace))
			}
		}
		if isSentence(line[start:]) {
			yield(line[start:])
		}
	}
}

// Patterns of whole words; \b would be a boundary of ASCII words.
const before, after = `(?:^|[^\p{L}\p{N}_])`, `(?:$|[^\p{L}\p{N}_])`

var (
	constraint = regexp.MustCompile(before + `(?i:never|always|must|don'?t|do not|doesn'?t need|prefer|avoid|make sure|ensure|should|shouldn'?t|only|instead|no need|stop|keep)` + after)
	reason     = regexp.MustCompile(before + `(?i:because|instead of|decided|chose|root cause|rather than|the (?:bug|issue|problem) (?:is|was)|so that|the fix)` + after)
	failing    = regexp.MustCompile(`^(?i:error|fatal|panic|traceback|exception|fail|failed|cannot|undefined|not found|denied)` + after)
	lineNumber = regexp.MustCompile(`^[\s\p{Z}\v\x1c-\x1f\x{85}]*\p{Nd}+[→:\t-]`)
	pathKey    = regexp.MustCompile(`(?i)path|file`)
)

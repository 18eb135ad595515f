package summary

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendWords appends the words of s in lower case, separated by one blank, so that texts
// compare regardless of white space, punctuation, emphasis and case.
func appendWords(b []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf && isAlnum(byte(r)):
			if r >= 'A' && r <= 'Z' {
				r += 'a' - 'A'
			}
			b = append(b, byte(r))
		case r >= utf8.RuneSelf && r != utf8.RuneError && unicode.In(r, unicode.L, unicode.Nd, unicode.M):
			b = utf8.AppendRune(b, unicode.ToLower(r))
		default:
			if n := len(b); n > 0 && b[n-1] != ' ' {
				b = append(b, ' ')
			}
		}
	}
	return b
}

func wordsOf(s string) string { return strings.TrimSpace(string(appendWords(nil, s))) }

func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }
func isLetter(c byte) bool {
	c |= 0x20
	return c >= 'a' && c <= 'z'
}
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// unspaced are the scripts without blanks between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// eachWord yields the words of a text that appendWords has made. In scripts without blanks each
// letter is a word.
func eachWord(words []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := 0; i < len(words); {
			if words[i] == ' ' {
				i++
				continue
			}
			end := i
			for end < len(words) && words[end] != ' ' {
				r, size := utf8.DecodeRune(words[end:])
				if r >= 0x0e00 && unicode.In(r, unspaced...) {
					if end == i {
						end += size
					}
					break
				}
				end += size
			}
			if !yield(words[i:end]) {
				return
			}
			i = end
		}
	}
}

// countWords counts the words of a text that wordsOf returned.
func countWords(words string) (n int) {
	for range eachWord([]byte(words)) {
		n++
	}
	return n
}

// quoteMarks maps opening to closing quotation marks.
var quoteMarks = map[rune]string{'"': `"`, '“': `”"“`, '„': `“”"`, '”': `”`, '«': `»`, '»': `«`, '「': `」`, '『': `』`}

// quotation is the range of a text between quotation marks in a line, with and without them.
type quotation struct{ start, from, to, end int }

// quotations returns the quotations of a line, each closed on it.
func quotations(line string) []quotation {
	var out []quotation
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		closing, opens := quoteMarks[r]
		from := i + size
		end := -1
		if opens {
			end = strings.IndexAny(line[from:], closing)
		}
		if end < 0 {
			i = from
			continue
		}
		_, size = utf8.DecodeRuneInString(line[from+end:])
		out = append(out, quotation{i, from, from + end, from + end + size})
		i = from + end + size
	}
	return out
}

// minQuoted is the number of words from which on a quotation must occur in the messages: a few
// words between quotation marks may be a name. letters of scripts without blanks are words.
const minQuoted = 3

// quotedPhrases returns the words of the parts of a quotation between its omissions.
func quotedPhrases(quote string) (out []string) {
	quote = strings.NewReplacer("[...]", "\n", "[…]", "\n", "(...)", "\n", "...", "\n", "…", "\n", "[REDACTED]", "\n").Replace(quote)
	for part := range strings.SplitSeq(quote, "\n") {
		if w := wordsOf(part); countWords(w) >= minQuoted {
			out = append(out, w)
		}
	}
	return out
}

// maxIdentifier is the maximum length of an identifier in bytes.
const maxIdentifier = 160

// Identifiers yields the words of a text that name a thing letter by letter: paths, ids, hashes,
// names of code, long numbers.
func Identifiers(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := range strings.FieldsFuncSeq(s, separates) {
			if w = strings.Trim(w, ".:/*_-#!?"); len(w) <= maxIdentifier && isIdentifier(w) && !yield(w) {
				return
			}
		}
	}
}

// separates reports whether a character stands between identifiers.
func separates(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("`'\"“”„«»‘’「」,;|()[]{}<>=，。；：、（）【】", r) || unicode.In(r, unspaced...)
}

// minDigits is how many digits make a word with letters an identifier, longNumber how many one
// without: "5-minute" and "2026" are none.
const minDigits, longNumber = 4, 6

func isIdentifier(w string) bool {
	letters, digits, slashes, dots, joints := 0, 0, 0, 0, 0
	for i := range len(w) {
		switch c := w[i]; {
		case isDigit(c):
			digits++
		case isLetter(c):
			letters++
		case c == '/' || c == '\\':
			slashes++
		case c == '.':
			dots++
		case c == '_' || c == '@':
			joints++
		}
	}
	if letters == 0 {
		return digits >= longNumber
	}
	return digits >= minDigits || joints > 0 || slashes > 0 && slashes+dots > 1
}

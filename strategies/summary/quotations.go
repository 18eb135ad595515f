package summary

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
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
		case r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)) && r != utf8.RuneError:
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

// quoteMarks maps opening to closing marks; a straight one is both.
var quoteMarks = map[rune]rune{
	'"': '"', '“': '”', '„': '“', '”': '”', '«': '»', '»': '«', '「': '」', '『': '』', '＂': '＂', '‹': '›', '❝': '❞', '〝': '〞', '‟': '”', '｢': '｣',
	'\'': '\'', '‘': '’', '‚': '‘', '❛': '❜', '`': '`', 'ʺ': 'ʺ', '´': '´',
}

// isWeak reports whether a mark has other uses, so that what it encloses is a quotation only
// if it is attributed.
func isWeak(r rune) bool { return strings.ContainsRune("'‘‚❛`ʺ´", r) }

// quotation is a text between quotation marks.
type quotation struct {
	before, text, after string
	// markup: between other marks than those of quotations.
	markup bool
	// mark is the opening mark, 0 for other marks.
	mark rune
	// start and end are the indexes of the quotation in its line, with its marks.
	start, end int
}

// quotations returns the quotations in a line, which may have been broken. Those between
// weak marks are returned only if is reports that they are quotations.
func quotations(line string, is func(*quotation) bool) []quotation {
	var out []quotation
	var never []rune // marks that close nothing in the rest of the line
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		closing, opens := quoteMarks[r]
		if !opens {
			if q := markedUp(line, i); q != nil && is(q) {
				out, i = append(out, *q), q.end
				continue
			}
		}
		if !opens || slices.Contains(never, r) || r < utf8.RuneSelf && r != '`' && !opensQuote(line, i) {
			i += size
			continue
		}
		open := line[i : i+size]
		if r == '`' {
			open = line[i : i+len(line[i:])-len(strings.TrimLeft(line[i:], "`"))]
		}
		from := i + len(open)
		end, n := closeQuote(line, from, r, closing), 0
		switch {
		case r == '`':
			if end = closingRun(line[from:], open); end >= 0 {
				end, n = from+end, len(open)
			} else if end = strings.Index(line[from:], "''"); end >= 0 && open == "``" {
				end, n = from+end, 2
			} else if end = endOfLine(line, from); !is(&quotation{before: line[:i], text: line[from:end], mark: r}) {
				i = from
				continue
			}
		case end >= 0:
			_, n = utf8.DecodeRuneInString(line[end:])
		case r == '"', is(&quotation{before: line[:i], text: line[from:endOfLine(line, from)], mark: r}): // never closed
			end = endOfLine(line, from)
		default:
			never = append(never, r)
			i = from
			continue
		}
		q := quotation{before: line[:i], text: line[from:end], after: line[end+n:], mark: r, start: i, end: end + n}
		if isWeak(r) && !is(&q) {
			if i = from; r == '`' {
				i = q.end // code
			}
			continue
		}
		out = append(out, q)
		i = q.end
	}
	return out
}

// endOfLine returns where a quotation that is never closed ends: at the end of its first line,
// or at a mark of another kind.
func endOfLine(s string, from int) int {
	if n := strings.IndexAny(s[from:], "\n\""); n >= 0 {
		return from + n
	}
	return len(s)
}

// maxMarkedUp is the maximum length of words in other marks than those of quotations.
const maxMarkedUp = 1000

// tagOpen matches a tag of HTML.
var tagOpen = text.Pattern(`^<([A-Za-z]\w{0,12})>`)

// markedUp returns what stands in emphasis, brackets, a tag or between any other signs from
// index i, or nil.
func markedUp(line string, i int) *quotation {
	r, size := utf8.DecodeRuneInString(line[i:])
	if r == utf8.RuneError || !unicode.In(r, unicode.P, unicode.S) || strings.ContainsRune(`.,;:!?'’)]}>&%#@-–—`, r) || i+size == len(line) || isSpace(line[i+size]) {
		return nil
	}
	if i > 0 && !isSpace(line[i-1]) && line[i-1] != ':' && line[i-1] != '>' {
		return nil
	}
	rest := line[i:min(len(line), i+maxMarkedUp)]
	var from, end, n int
	if tag := tagOpen().FindStringSubmatch(rest); tag != nil {
		from = i + len(tag[0])
		end, n = strings.Index(rest[len(tag[0]):], "</"+tag[1]+">"), len(tag[1])+3
	} else {
		run := len(rest) - len(strings.TrimLeft(rest, string(r)))
		from = i + run
		closing := string(r)
		if r == '<' || unicode.In(r, unicode.Ps, unicode.Pi) {
			closing += string(r+1) + string(r+2)
		}
		end = strings.IndexAny(rest[run:], closing)
		if n = 1; end >= 0 {
			after := strings.TrimLeft(rest[run+end:], closing)
			n = len(rest) - run - end - len(after)
		}
	}
	if end < 0 {
		return nil
	}
	end += from
	return &quotation{before: line[:i], text: line[from:end], after: line[end+n:], markup: true, start: i, end: end + n}
}

// opensQuote reports whether a straight mark at i can begin a quotation.
func opensQuote(s string, i int) bool {
	if i > 0 && strings.IndexByte(" \t\n([{*_:>-~/,=\\", s[i-1]) < 0 && s[i-1] < utf8.RuneSelf {
		return false
	}
	return i+1 < len(s) && (!isSpace(s[i+1]) || s[i+1] == '\n')
}

// closeQuote returns where the quotation that began at i ends, or -1.
func closeQuote(s string, i int, opening, closing rune) int {
	for j := i; j < len(s); {
		r, size := utf8.DecodeRuneInString(s[j:])
		end := r == closing || opening == '„' && r == '”' || opening == '‚' && r == '’'
		straight := r == '"' || r == '\'' || r == '’'
		if end && (!straight || j > i && (!isSpace(s[j-1]) || s[j-1] == '\n') && (j+1 >= len(s) || !isAlnum(s[min(len(s)-1, j+size)]) || j+size == len(s))) {
			return j
		}
		j += size
	}
	return -1
}

func isItem(line string) bool {
	return strings.IndexByte("-*+>0123456789", line[0]) >= 0 || strings.HasPrefix(line, "•")
}

// omission matches omissions within a quotation: dots, remarks in brackets, masks.
var omission = text.Pattern(`\.{2,}|…|\[[^\[\]]{0,200}\]|\*{3,}|<[^<>]{0,80}>`)

// insertedNo matches a negation in brackets, which a quotation has in the place of the user's.
var insertedNo = text.Pattern(`(?i)\[((?:do(?:es)?\s+)?not|(?:do|does|can|must|should)n['’]t|never|no)\]`)

// quotedParts returns the parts of a quotation between what it omits.
func quotedParts(quote string) []string {
	return omission().Split(insertedNo().ReplaceAllString(quote, "$1"), -1)
}

// quotedPhrases returns the words of the parts of a quotation that must occur in a message. Parts
// too short to decide are left out.
func quotedPhrases(quote string) []string {
	var out []string
	for _, s := range quotedParts(quote) {
		w := wordsOf(s)
		if n := strings.Count(w, " ") + 1; n >= 3 && len(w) >= 12 || unspacedLetters(w) >= 6 {
			out = append(out, w)
		}
	}
	return out
}

// unspacedLetters counts letters of scripts without blanks between words.
func unspacedLetters(s string) int {
	n := 0
	for _, r := range s {
		if r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
			n++
		}
	}
	return n
}

package frame

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// mark is a delimiter. Case, blanks and dashes are ignored.
type mark struct {
	words string // in lower case, separated by one blank
	note  bool   // an explanation may follow on its line
}

// headMarks are the heads of this package, of its earlier versions, of this module's
// strategies and of other programs, all in brackets.
var headMarks = []mark{
	{"conversation summary reference only", true},
	{"context compaction reference only", true},
	{"context summary reference only", true},
	{"context summary", false},
	{"context compaction", true},
	{"conversation summary", false},
	{"handoff notes", true},
	{"summary of the conversation so far", false},
}

// agentHead begins the summaries of a coding agent, without brackets.
const agentHead = "This session is being continued from a previous conversation that ran out of context."

// endMarks end a summary, in brackets or after dashes.
var endMarks = []string{
	"end of conversation summary", "end of context summary", "end of context compaction", "end of handoff notes", "end of summary",
}

// parseHead returns the index after the head at i, which blanks and emphasis may precede,
// or -1. note reports whether an explanation may follow.
func parseHead(s string, i int) (end int, note bool) {
	i += len(s[i:]) - len(strings.TrimLeftFunc(s[i:], isDecoration))
	if strings.HasPrefix(s[i:], agentHead) {
		return i + len(agentHead), true
	}
	if i == len(s) || s[i] != '[' {
		return -1, false
	}
	for _, m := range headMarks {
		end := matchWords(s, i+1, m.words)
		if end < 0 {
			continue
		}
		end += len(s[end:]) - len(strings.TrimLeftFunc(s[end:], isWordGap))
		if end == len(s) || s[end] != ']' {
			continue
		}
		end++
		end += len(s[end:]) - len(strings.TrimLeft(s[end:], "*_"))
		if colon := len(s) - len(strings.TrimLeft(s[end:], " \t")); colon < len(s) && s[colon] == ':' {
			end = colon + 1
		}
		return end, m.note
	}
	return -1, false
}

// isDecoration reports whether r may precede a head.
func isDecoration(r rune) bool { return text.IsBlank(r) || strings.ContainsRune("#*_\ufeff", r) }

// isWordGap reports whether r may separate the words of a mark.
func isWordGap(r rune) bool { return strings.ContainsRune(" \t_\u00a0", r) || isDash(r) }

func isDash(r rune) bool { return r == '-' || r >= utf8.RuneSelf && strings.ContainsRune(dashes, r) }

// dashes are those that are not in ASCII.
const dashes = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b\ufe58\uff0d"

// maxMarkLen is the maximum length of a mark, in bytes. It keeps the search for marks linear.
const maxMarkLen = 160

// matchWords returns the index after the words if they are at i in s, or -1.
func matchWords(s string, i int, words string) int {
	most := min(len(s), i+maxMarkLen)
	for words != "" {
		w, rest, _ := strings.Cut(words, " ")
		for i < most {
			r, size := utf8.DecodeRuneInString(s[i:])
			if !isWordGap(r) {
				break
			}
			i += size
		}
		if i+len(w) > len(s) || !strings.EqualFold(s[i:i+len(w)], w) {
			return -1
		}
		i += len(w)
		words = rest
	}
	return i
}

// parseEnd returns the index after the end mark that begins at i, or -1. Blanks and emphasis
// may precede it.
func parseEnd(s string, i int) int {
	at, opened := markRun(s[:min(len(s), i+maxMarkLen)], i)
	if !opened {
		return -1
	}
	return matchEnd(s, at)
}

// markRun returns the end of the run of brackets, dashes, blanks and emphasis at i on its
// line. opened reports whether a bracket or a dash is among them.
func markRun(s string, i int) (end int, opened bool) {
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		opens := opensMark(r)
		if !opens && (!isDecoration(r) || r == '\n' || r == '\r') {
			break
		}
		opened = opened || opens
		i += size
	}
	return i, opened
}

func opensMark(r rune) bool { return r == '[' || r == '=' || isDash(r) }

// matchEnd returns the index after the words of an end mark at i and the closing bracket or
// dashes, or -1.
func matchEnd(s string, i int) int {
	for _, m := range endMarks {
		end := matchWords(s, i, m)
		if end < 0 {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(s[end:]); end < len(s) && continuesWord(r) {
			continue
		}
		return len(s) - len(strings.TrimLeftFunc(s[end:], func(r rune) bool { return strings.ContainsRune("]= *", r) || isDash(r) }))
	}
	return -1
}

// continuesWord reports whether a word goes on with r.
func continuesWord(r rune) bool {
	if r >= utf8.RuneSelf {
		return !isDash(r)
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// bareMarks matches lines that hold nothing but the words of an end mark, or of the head of
// this package, however they are decorated.
var bareMarks = regexp.MustCompile(`(?im)^[^\pL\pN\n(]*(?:` +
	strings.ReplaceAll(strings.Join(append([]string{headMarks[0].words, headMarks[1].words, headMarks[2].words}, endMarks...), "|"), " ", `[^\pL\pN\n]+`) +
	`)[^\pL\pN\n]*$`)

// looseMarks matches words in brackets or after dashes that differ from those of a mark by an
// article, emphasis, blanks or a broken line. Unwrap does not take them for a mark, but a reader may.
var looseMarks = regexp.MustCompile(`(?im)(?:\[|-{3,}|={3,})[^\pL\pN\n(]*(?:` +
	strings.ReplaceAll(strings.Join(slices.Concat(withArticles(endMarks), spelled(endMarks), looseWords), "|"), " ", `(?:[^\pL\pN(]|</?\w{1,6}>){1,8}`) +
	`)|(?im)^[^\pL\pN\n(]*(?:-{2,}|={2,}|\[)[ ]*(?:user|human)[ ]*(?:-{2,}|={2,}|\])[^\pL\pN\n]*$`)

// looseWords are such words that end a summary or begin the text after it.
var looseWords = []string{
	`(?:conversation |context |session )?summary (?:ends?|over|is over)\b`,
	`end of (?:the )?(?:earlier |previous )?(?:context|conversation)\b`,
	`(?:conversation|chat|session) (?:resumes|continues|restarts)\b`,
	`new (?:user )?messages?(?: from (?:the )?user)?[^\pL\pN\n]{1,6}$`,
}

// withArticles returns the words of end marks with optional articles.
func withArticles(marks []string) []string {
	var out []string
	for _, m := range marks {
		out = append(out, strings.ReplaceAll(m, "end of ", "end (?:of )?(?:the )?"))
	}
	return out
}

// spelled returns the words of marks with a blank after each letter.
func spelled(marks []string) []string {
	var out []string
	for _, m := range marks {
		out = append(out, strings.Join(strings.Split(strings.ReplaceAll(m, " ", ""), ""), " "))
	}
	return out
}

// mayHoldMark reports whether the letters of a text have the words of a mark in any of the forms that
// looseMarks and bareMarks match. These are a hundred times as slow and run only then.
func mayHoldMark(s string) bool {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		case 'a' <= c && c <= 'z':
			b.WriteByte(c)
		case c == '<': // a tag between two words
			if n := strings.IndexByte(s[i:min(len(s), i+maxTag)], '>'); n > 0 {
				i += n
			}
		case c == '[', (c == '-' || c == '=') && i > 0 && s[i-1] == c:
			b.WriteByte(' ') // a line with a role begins with it
		}
	}
	letters := b.String()
	if strings.Contains(letters, " user") || strings.Contains(letters, " human") {
		return true
	}
	letters = strings.ReplaceAll(letters, " ", "")
	return slices.ContainsFunc(markLetters, func(m string) bool { return strings.Contains(letters, m) })
}

const maxTag = 9 // bytes, of those that looseMarks takes for a gap

// markLetters are letters of which each form of a mark has some.
var markLetters = func() []string {
	out := []string{"summaryend", "summaryover", "summaryisover", "newmessage", "newusermessage", "summaryreferenceonly", "compactionreferenceonly"}
	for _, noun := range []string{"conversation", "context", "handoff", "summary", "earlier", "previous"} {
		for _, before := range []string{"end", "endof", "endthe", "endofthe"} {
			out = append(out, before+noun)
		}
	}
	for _, noun := range []string{"conversation", "chat", "session"} {
		out = append(out, noun+"resumes", noun+"continues", noun+"restarts")
	}
	return out
}()

// Escape replaces the signs in front of the words of marks within a text by a round
// bracket. Characters that look like those of a mark count as these. It is idempotent.
func Escape(s string) string {
	folded, at := text.Fold(s)
	var spans [][2]int
	for i := 0; i < len(folded); {
		r, size := utf8.DecodeRuneInString(folded[i:])
		if !opensMark(r) {
			i += size
			continue
		}
		start := i
		i, _ = markRun(folded, start)
		head := -1
		if bracket := strings.LastIndexByte(folded[start:i], '['); bracket >= 0 {
			head, _ = parseHead(folded, start+bracket)
			if strings.HasPrefix(folded[start:], "- ") { // the mark of a list stays
				start += strings.IndexByte(folded[start:i], '[')
			}
		}
		if matchEnd(folded, i) >= 0 || head >= 0 {
			spans = append(spans, [2]int{start, i})
		}
	}
	if spans == nil && mayHoldMark(folded) {
		for _, m := range append(looseMarks.FindAllStringIndex(folded, -1), bareMarks.FindAllStringIndex(folded, -1)...) {
			words := strings.IndexFunc(folded[m[0]:], func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
			spans = append(spans, [2]int{m[0], m[0] + words})
		}
	}
	if spans == nil {
		return s
	}
	s = text.ReplaceFolded(s, at, spans, slices.Repeat([]string{"("}, len(spans)))
	return Escape(s)
}

package frame

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// mark is what a frame begins or ends with: words, in whatever case and with whatever
// blanks and dashes between them.
type mark struct {
	words string // small letters, one blank between
	note  bool   // an explanation may follow on its line
}

// headMarks are the heads of this package, of older ones, of the strategies of this
// module and of other programs. They stand in brackets, but for the last two.
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

// endMarks end a frame, in brackets or behind dashes.
var endMarks = []string{
	"end of conversation summary", "end of context summary", "end of context compaction", "end of handoff notes", "end of summary",
}

// parseHead returns the index behind the head that begins at i, behind blanks and marks of
// emphasis, or -1; note reports whether an explanation may follow.
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

// isDecoration stands in front of a head.
func isDecoration(r rune) bool {
	return text.IsBlank(r) || r == '#' || r == '*' || r == '_' || r == '\ufeff'
}

// isWordGap stands between the words of a mark.
func isWordGap(r rune) bool { return r == ' ' || r == '\t' || r == '_' || r == '\u00a0' || isDash(r) }

func isDash(r rune) bool {
	return r == '-' || r >= '\u2010' && r <= '\u2015' || r == '\u2212' || r == '\u2e3a' || r == '\u2e3b' || r == '\ufe58' || r == '\uff0d'
}

// maxMarkLen bounds how far the words of a mark are looked for, which keeps looking for
// them everywhere linear.
const maxMarkLen = 160

// matchWords returns the index behind the words if s has them at i, or -1.
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

// parseEnd returns the index behind the end mark that begins at i, with the dashes or the
// bracket that close it, or -1. Blanks and emphasis may stand in front.
func parseEnd(s string, i int) int {
	at := i
	opened := false
	for at < min(len(s), i+maxMarkLen) {
		r, size := utf8.DecodeRuneInString(s[at:])
		if r != '[' && r != '=' && !isDash(r) && (!isDecoration(r) || r == '\n' || r == '\r') {
			break
		}
		opened = opened || r == '[' || r == '=' || isDash(r)
		at += size
	}
	if !opened {
		return -1
	}
	return matchEnd(s, at)
}

// matchEnd returns the index behind the words of an end mark at i and what closes it.
func matchEnd(s string, i int) int {
	for _, m := range endMarks {
		end := matchWords(s, i, m)
		if end < 0 {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(s[end:]); end < len(s) && (r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r >= utf8.RuneSelf && !isDash(r)) {
			continue
		}
		return end + len(s[end:]) - len(strings.TrimLeftFunc(s[end:], func(r rune) bool { return r == ']' || r == '=' || r == ' ' || r == '*' || isDash(r) }))
	}
	return -1
}

// escapeMarks makes marks within a text harmless: the bracket or the dashes in front of
// the words become a round bracket.
func escapeMarks(s string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r != '[' && r != '=' && !isDash(r) {
			i += size
			continue
		}
		// A run of marks and blanks on one line.
		start, end := i, i
		for end < len(s) {
			r, size := utf8.DecodeRuneInString(s[end:])
			if r != '[' && r != '=' && !isDash(r) && (!isDecoration(r) || r == '\n' || r == '\r') {
				break
			}
			end += size
		}
		i = end
		head := -1
		if bracket := strings.LastIndexByte(s[start:end], '['); bracket >= 0 {
			head, _ = parseHead(s, start+bracket)
		}
		if matchEnd(s, end) < 0 && head < 0 {
			continue
		}
		b.WriteString(s[done:start])
		b.WriteByte('(')
		done = end
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

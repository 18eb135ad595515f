package extract

import (
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// The words below are few, plain and of several languages: they decide only which lines
// are worth their room first, never what a line says or where it stands.

// constraintWords are words of a demand that holds beyond the moment.
var constraintWords = newKeywords(`
	always never must don't ensure avoid prefer
	immer nie niemals muss müssen keinesfalls
	toujours jamais doit dois
	siempre nunca debe debes
	sempre mai deve devi
	всегда никогда нельзя должен
	必须 不要 不能 务必 总是 必ず 常に しないで 항상 절대`)

// decisionWords are words of a decision or of why.
var decisionWords = newKeywords(`
	because instead decided decide chose therefore since rather
	weil stattdessen entschieden deshalb daher
	parce plutôt décidé donc
	porque decidido decidí
	perché invece deciso quindi
	потому вместо решил решили поэтому
	因为 决定 所以 改用 なので 決定 대신 결정`)

// failurePrefixes begin a line of a tool that failed.
var failurePrefixes = []string{
	"error", "fatal", "panic", "traceback", "exception", "fail", "exit code", "exit status", "command failed",
	"permission denied", "command not found", "no such file",
}

// keywords are words of alphabets, matched whole, and those of scripts that put no space
// between words, matched anywhere.
type keywords struct {
	whole map[string]bool
	parts []string
}

func newKeywords(s string) keywords {
	c := keywords{whole: map[string]bool{}}
	for w := range strings.FieldsSeq(s) {
		if strings.ContainsFunc(w, isSpaceless) {
			c.parts = append(c.parts, w)
		} else {
			c.whole[w] = true
		}
	}
	return c
}

func isSpaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// matches reports whether a sentence holds one of the words.
func (c keywords) matches(s string) bool {
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }) {
		if len(w) <= 32 && c.whole[strings.ReplaceAll(strings.ToLower(w), "’", "'")] {
			return true
		}
	}
	for _, w := range c.parts {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// failureLine returns the line that says that a tool failed, empty for none: by its first line or
// one of its last two, and then the line within the output that says most about it.
func failureLine(head, tail string) string {
	first, last := splitLines(text.Head(head, 2000)), splitLines(text.Tail(tail, 2000))
	var ends []string
	ends = append(ends, first[:min(1, len(first))]...)
	ends = append(ends, last[max(0, len(last)-2):]...)
	for _, line := range ends {
		if !isFailure(line) {
			continue
		}
		if said := strings.ToLower(line); !strings.HasPrefix(said, "exit") {
			return line
		}
		for _, l := range append(first[1:], last...) { // an exit code says little
			if isFailure(l) && !strings.HasPrefix(strings.ToLower(l), "exit") {
				return line + ": " + l
			}
		}
		if len(last) > 0 && last[len(last)-1] != line {
			return line + ": " + last[len(last)-1]
		}
		return line
	}
	return ""
}

func isFailure(line string) bool {
	line = strings.ToLower(strings.TrimLeft(text.Head(line, 200), "<>{}[]()\"'`*-#= \t"))
	for _, f := range failurePrefixes {
		rest, ok := strings.CutPrefix(line, f)
		if !ok {
			continue
		}
		rest = strings.TrimLeft(rest, ": \"=")
		return !strings.HasPrefix(rest, "0") && !strings.HasPrefix(rest, "null") && !strings.HasPrefix(rest, "false")
	}
	return false
}

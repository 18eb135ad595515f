package extract

import (
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// The words below are few, plain and of several languages: they decide only which lines
// are worth their room first, never what a line says or where it stands.

// binding are words of a demand that holds beyond the moment.
var binding = wordList(`
	always never must don't ensure avoid prefer
	immer nie niemals muss müssen keinesfalls
	toujours jamais doit dois
	siempre nunca debe debes
	sempre mai deve devi
	всегда никогда нельзя должен
	必须 不要 不能 务必 总是 必ず 常に しないで 항상 절대`)

// reasons are words of a decision or of why.
var reasons = wordList(`
	because instead decided decide chose therefore since rather
	weil stattdessen entschieden deshalb daher
	parce plutôt décidé donc
	porque decidido decidí
	perché invece deciso quindi
	потому вместо решил решили поэтому
	因为 决定 所以 改用 なので 決定 대신 결정`)

// faults begin a line of a tool that failed.
var faults = []string{
	"error", "fatal", "panic", "traceback", "exception", "fail", "exit code", "exit status", "command failed",
	"permission denied", "command not found", "no such file",
}

// cueWords are words of alphabets, matched whole, and those of scripts that put no space
// between words, matched anywhere.
type cueWords struct {
	whole  map[string]bool
	within []string
}

func wordList(s string) cueWords {
	c := cueWords{whole: map[string]bool{}}
	for w := range strings.FieldsSeq(s) {
		if strings.ContainsFunc(w, spaceless) {
			c.within = append(c.within, w)
		} else {
			c.whole[w] = true
		}
	}
	return c
}

func spaceless(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// in reports whether a sentence holds one of the words.
func (c cueWords) in(s string) bool {
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' }) {
		if len(w) <= 32 && c.whole[strings.ReplaceAll(strings.ToLower(w), "’", "'")] {
			return true
		}
	}
	for _, w := range c.within {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// fault returns the line that says that a tool failed, empty for none: by its first line or
// one of its last two, and then the line within the output that says most about it.
func fault(head, tail string) string {
	first, last := split(text.Head(head, 2000)), split(text.Tail(tail, 2000))
	var ends []string
	ends = append(ends, first[:min(1, len(first))]...)
	ends = append(ends, last[max(0, len(last)-2):]...)
	for _, line := range ends {
		if !failing(line) {
			continue
		}
		if said := strings.ToLower(line); !strings.HasPrefix(said, "exit") {
			return line
		}
		for _, l := range append(first[1:], last...) { // an exit code says little
			if failing(l) && !strings.HasPrefix(strings.ToLower(l), "exit") {
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

func failing(line string) bool {
	line = strings.ToLower(strings.TrimLeft(text.Head(line, 200), "<>{}[]()\"'`*-#= \t"))
	for _, f := range faults {
		rest, ok := strings.CutPrefix(line, f)
		if !ok {
			continue
		}
		rest = strings.TrimLeft(rest, ": \"=")
		return !strings.HasPrefix(rest, "0") && !strings.HasPrefix(rest, "null") && !strings.HasPrefix(rest, "false")
	}
	return false
}

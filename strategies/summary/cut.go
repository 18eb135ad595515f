package summary

import (
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// maxFailing is how many lines of an output that report failures survive a cut.
const maxFailing = 8

// failing returns the lines of an output that survive a cut.
func failing(output string) [][2]int { return extract.Failures(output, maxFailing) }

// cut returns s without the bytes from start to end, but with the given ranges of them. Notes
// say where how much was left out.
func cut(s string, start, end int, kept [][2]int) string {
	var b strings.Builder
	b.WriteString(s[:start])
	at := start
	leave := func(to int) {
		if at >= to {
			return
		}
		if n := b.Len(); n > 0 && b.String()[n-1] != '\n' {
			b.WriteByte('\n')
		}
		b.WriteString(leftOutNote(s, at, to) + "\n")
	}
	for _, k := range kept {
		if k[0] < at || k[1] > end {
			continue
		}
		leave(k[0])
		b.WriteString(s[k[0]:k[1]])
		at = k[1]
	}
	leave(end)
	b.WriteString(s[end:])
	return b.String()
}

// leftOutNote returns the note for the bytes of s from start to end, in lines if they are
// whole ones.
func leftOutNote(s string, start, end int) string {
	n, unit := utf8.RuneCountInString(s[start:end]), "character"
	if (start == 0 || s[start-1] == '\n') && s[end-1] == '\n' {
		n, unit = strings.Count(s[start:end], "\n"), "line"
	}
	if n != 1 {
		unit += "s"
	}
	return "[… " + chat.Thousands(n) + " " + unit + " left out …]"
}

// maxNote is the longest note for one cut.
const maxNote = "\n[… 9,999,999,999 characters left out …]\n"

// cutCenter returns s, or for more than n characters its head and tail around a note.
func cutCenter(s string, n int) string {
	if !text.Longer(s, n) {
		return s
	}
	head := n * 2 / 3
	return cut(s, len(text.Head(s, head)), len(s)-len(text.Tail(s, n-head)), nil)
}

// cutMiddle keeps the head and the tail of a text, and some of the ranges between them, about
// limit bytes in all. It returns "" if the limit leaves no room for any of it.
func cutMiddle(s string, limit int, kept [][2]int) string {
	spare := limit - len(maxNote)
	if spare <= 8 {
		return ""
	}
	between := [][2]int(nil)
	for _, k := range kept {
		size := k[1] - k[0] + len(maxNote)
		if k[0] >= spare/2 && k[1] <= len(s)-spare/2 && size <= spare/2 {
			between = append(between, k)
			spare -= size
		}
	}
	start, end := spare/2, len(s)-spare/2
	for start > 0 && !utf8.RuneStart(s[start]) {
		start--
	}
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end++
	}
	return cut(s, start, end, between)
}

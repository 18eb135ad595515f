package term

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// Style marks text. The zero value leaves it as it is.
type Style struct{ on bool }

// Bold is s in bold.
func (s Style) Bold(text string) string { return s.wrap("1", text) }

// Dim is s in a fainter tone.
func (s Style) Dim(text string) string { return s.wrap("2", text) }

// Red is s in red.
func (s Style) Red(text string) string { return s.wrap("31", text) }

// Green is s in green.
func (s Style) Green(text string) string { return s.wrap("32", text) }

// Yellow is s in yellow.
func (s Style) Yellow(text string) string { return s.wrap("33", text) }

func (s Style) wrap(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Clean is text on one line without control characters: line breaks and tabs
// become spaces, other controls, and the marks that turn the direction of
// writing, vanish.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
}

// Width returns the number of columns text takes.
func Width(text string) int { return uniseg.StringWidth(text) }

// Truncate cuts text to at most width columns, ending in "…" where it was cut.
func Truncate(text string, width int) string {
	if width < 1 {
		return ""
	}
	if Width(text) <= width {
		return text
	}
	var b strings.Builder
	room := width - 1
	for g := uniseg.NewGraphemes(text); g.Next(); {
		if room -= g.Width(); room < 0 {
			break
		}
		b.WriteString(g.Str())
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

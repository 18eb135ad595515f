package term

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// Bold returns text in bold.
func (o Output) Bold(text string) string { return o.wrap("1", text) }

// Dim returns text in a fainter tone.
func (o Output) Dim(text string) string { return o.wrap("2", text) }

// Red returns text in red.
func (o Output) Red(text string) string { return o.wrap("31", text) }

// Green returns text in green.
func (o Output) Green(text string) string { return o.wrap("32", text) }

// Yellow returns text in yellow.
func (o Output) Yellow(text string) string { return o.wrap("33", text) }

// wrap adds escape sequences to text if the output renders them.
func (o Output) wrap(code, text string) string {
	if !o.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Clean returns text on one line without control characters: line breaks and tabs become
// spaces; other control characters and bidirectional controls are escaped as in Go, such as
// \x1b, so that what only they tell apart stays so.
func Clean(text string) string {
	control := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
	breaks := func(r rune) bool { return strings.ContainsRune("\n\t\r\u2028\u2029", r) }
	if !strings.ContainsFunc(text, func(r rune) bool { return control(r) || breaks(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case breaks(r):
			b.WriteByte(' ')
		case control(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// CleanLines returns text with each of its lines cleaned.
func CleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Clean(strings.TrimRight(line, "\r"))
	}
	return strings.Join(lines, "\n")
}

// Width returns the number of terminal columns of text.
func Width(text string) int { return uniseg.StringWidth(text) }

// Truncate returns text cut to at most width columns, with "…" at the end if it was cut.
func Truncate(text string, width int) string {
	if width < 1 {
		return ""
	}
	if Width(text) <= width {
		return text
	}
	var b strings.Builder
	left := width - 1
	for g := uniseg.NewGraphemes(text); g.Next(); {
		if left -= g.Width(); left < 0 {
			break
		}
		b.WriteString(g.Str())
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

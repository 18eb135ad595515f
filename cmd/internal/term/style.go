package term

import (
	"strings"

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

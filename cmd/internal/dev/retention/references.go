package retention

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
)

// referencesHeading begins the block of references at the end of a summary.
const referencesHeading = "## References\n"

// references counts the identifiers in the blocks of references that kept has and Pre has
// not, those of them that the user or the assistant uses after the cut, and the blocks'
// characters among those of all tokens kept.
func (c *Case) references(kept []chat.Message, tokens float64) (precision, share Count) {
	var listed []string
	for i := range kept {
		text := kept[i].Content.String()
		body, _, _ := frame.Unwrap(text)
		at := strings.LastIndex("\n"+body, "\n"+referencesHeading)
		if at < 0 || slices.ContainsFunc(c.Pre, func(m chat.Message) bool { return m.Content.String() == text }) {
			continue
		}
		block := strings.TrimSpace(body[at:])
		share.Kept += utf8.RuneCountInString(block)
		listed = append(listed, ids(block)...)
		// A quoted name may be listed without quotes. A label is none.
		words := strings.FieldsFunc(block, func(r rune) bool { return isSpace(r) || r == ',' || r == ';' })
		listed = append(listed, slices.DeleteFunc(words, func(w string) bool { return strings.HasSuffix(w, ":") })...)
	}
	if share.Kept == 0 {
		return precision, share
	}
	share.Of = int(4 * tokens)
	for _, id := range distinct(listed) {
		if !c.known[id] {
			continue
		}
		precision.Of++
		if c.used[id] {
			precision.Kept++
		}
	}
	return precision, share
}

package strategies

import "github.com/sessionstore/compactor/strategies/chat"

// hasWords reports whether content holds anything at all.
func hasWords(c chat.Content) bool {
	for _, p := range c.Parts {
		if p.Text != "" || p.IsMedia() {
			return true
		}
	}
	return c.Text != ""
}

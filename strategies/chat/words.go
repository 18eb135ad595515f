package chat

// HasContent reports whether content has text or media.
func HasContent(c Content) bool {
	for _, p := range c.Parts {
		if p.Text != "" || p.IsMedia() {
			return true
		}
	}
	return c.Text != ""
}

package chat

// hasWords reports whether content holds anything at all.
func HasContent(c Content) bool {
	for _, p := range c.Parts {
		if p.Text != "" || p.IsMedia() {
			return true
		}
	}
	return c.Text != ""
}

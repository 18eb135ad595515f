package web

// Patterns returns the patterns of all pages.
func Patterns() (all []string) {
	for _, p := range pages {
		all = append(all, p.pattern)
	}
	return all
}

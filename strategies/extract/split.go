package extract

import "strings"

// Split returns the prose of a summary and its block of references, "" if it has none.
func Split(summary string) (prose, references string) {
	if strings.HasPrefix(summary, referencesHeading) {
		return "", strings.TrimSpace(summary)
	}
	i := strings.LastIndex(summary, "\n"+referencesHeading)
	if i < 0 {
		return strings.TrimSpace(summary), ""
	}
	return strings.TrimSpace(summary[:i]), strings.TrimSpace(summary[i:])
}

// EscapeReferences returns prose without lines that Split takes for the heading of
// references.
func EscapeReferences(prose string) string {
	return strings.ReplaceAll("\n"+prose, "\n"+strings.TrimSpace(referencesHeading), "\n## Referenced")[1:]
}

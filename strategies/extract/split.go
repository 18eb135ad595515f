package extract

import "strings"

// Split takes a summary apart that References was put behind, or that Text wrote: what
// stands before the references, and their block, empty where there is none.
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

// EscapeReferences returns a text in which no line begins what Split takes for references.
func EscapeReferences(prose string) string {
	return strings.ReplaceAll("\n"+prose, "\n"+strings.TrimSpace(referencesHeading), "\n## Referenced")[1:]
}

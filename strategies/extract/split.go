package extract

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
)

// Split returns the prose of a summary and its block of references, "" if it has none.
func Split(summary string) (prose, references string) {
	if strings.HasPrefix(summary, reference.Heading) {
		return "", strings.TrimSpace(summary)
	}
	i := strings.LastIndex(summary, "\n"+reference.Heading)
	if i < 0 {
		return strings.TrimSpace(summary), ""
	}
	return strings.TrimSpace(summary[:i]), strings.TrimSpace(summary[i:])
}

// Prose returns the prose of a summary, without its log of actions and its references.
func Prose(summary string) string {
	prose, _ := Split(summary)
	if i := strings.LastIndex("\n"+prose, "\n"+actionsHeading); i >= 0 {
		return strings.TrimSpace(prose[:max(0, i-1)])
	}
	return prose
}

// IsExtract reports whether a Digest wrote a summary, so that lines with > quote the user.
func IsExtract(summary string) bool { return parsePrevious(summary).ownFormat }

// Escape returns prose without lines that Split and Prose take for headings of what is
// appended to it, or IsExtract for the origin of an extract.
func Escape(prose string) string {
	return strings.NewReplacer(
		"without a model. Lines with > quote the user.", "with no model.", "Made without a model.", "Made with no model.",
		"\n"+strings.TrimSpace(reference.Heading), "\n## Referenced", "\n"+strings.TrimSpace(actionsHeading), "\n## Actions logged",
	).Replace("\n" + prose)[1:]
}

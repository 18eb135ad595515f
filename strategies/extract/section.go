package extract

import "strings"

// section is a part of the summary, in the order of the text.
type section int

const (
	sectionTask section = iota
	sectionGoal
	sectionConstraints
	sectionCompleted
	sectionState
	sectionInProgress
	sectionBlocked
	sectionDecisions
	sectionResolved
	sectionPending
	sectionFiles
	sectionRemaining
	numSections
)

var headings = [numSections]string{
	"## Active Task", "## Goal", "## Constraints & Preferences", "## Completed Actions", "## Active State", "## In Progress",
	"## Blocked", "## Key Decisions", "## Resolved Questions", "## Pending User Asks", "## Relevant Files", "## Remaining Work",
}

// shares are how much of the prose a section may take at most.
var shares = [numSections]float64{
	sectionTask: 0.30, sectionGoal: 0.12, sectionConstraints: 0.12, sectionCompleted: 0.45, sectionState: 0.25, sectionInProgress: 0.08,
	sectionBlocked: 0.12, sectionDecisions: 0.15, sectionResolved: 0.12, sectionPending: 0.10, sectionFiles: 0.35, sectionRemaining: 0.12,
}

// Every line of a section begins with one of these, so that no text can pass for a
// heading or a marker.
const (
	bulletMark = "- "
	indentMark = "  "
	quoteMark  = "> "
	askedMark  = "- Asked: "
	callsMark  = "- Calls: "
	// beforeMark is an ask that the one above it refers to.
	beforeMark = "- Before: > "
)

// formatEntry returns a line of what somebody else than the user said or did, which begins like
// nothing that says that the user did.
func formatEntry(text string) string {
	text = strings.TrimLeft(text, "> ")
	for _, mark := range []string{askedMark, callsMark, beforeMark} {
		if strings.HasPrefix(bulletMark+text, mark) {
			text = "said: " + text
		}
	}
	return bulletMark + text + "\n"
}

// sectionOf returns the section that a line is the heading of.
func sectionOf(line string) (section, bool) {
	for s, h := range headings {
		if line == h {
			return section(s), true
		}
	}
	return 0, false
}

// splitEntries returns the items of a section's lines: a bullet and what is indented below it.
func splitEntries(lines []string) []string {
	var out []string
	for _, l := range lines {
		if strings.HasPrefix(l, indentMark) && len(out) > 0 {
			out[len(out)-1] += "\n" + l
			continue
		}
		out = append(out, l)
	}
	return out
}

package extract

import "strings"

// section is a part of the summary, in the order of the text.
type section int

const (
	activeTask section = iota
	goal
	constraints
	completed
	state
	inProgress
	blocked
	decisions
	resolved
	pending
	relevant
	remaining
	sections
)

var headings = [sections]string{
	"## Active Task", "## Goal", "## Constraints & Preferences", "## Completed Actions", "## Active State", "## In Progress",
	"## Blocked", "## Key Decisions", "## Resolved Questions", "## Pending User Asks", "## Relevant Files", "## Remaining Work",
}

// shares are how much of the prose a section may take at most.
var shares = [sections]float64{
	activeTask: 0.30, goal: 0.12, constraints: 0.12, completed: 0.45, state: 0.25, inProgress: 0.08,
	blocked: 0.12, decisions: 0.15, resolved: 0.12, pending: 0.10, relevant: 0.35, remaining: 0.12,
}

// Every line of a section begins with one of these, so that no text can pass for a
// heading or a marker.
const (
	bullet   = "- "
	indent   = "  "
	quote    = "> "
	askedFor = "- Asked: "
	callsOf  = "- Calls: "
	// beforeThat is an ask that the one above it refers to.
	beforeThat = "- Before: > "
)

// entry returns a line of what somebody else than the user said or did, which begins like
// nothing that says that the user did.
func entry(text string) string {
	text = strings.TrimLeft(text, "> ")
	for _, mark := range []string{askedFor, callsOf, beforeThat} {
		if strings.HasPrefix(bullet+text, mark) {
			text = "said: " + text
		}
	}
	return bullet + text + "\n"
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

// entries returns the items of a section's lines: a bullet and what is indented below it.
func entries(lines []string) []string {
	var out []string
	for _, l := range lines {
		if strings.HasPrefix(l, indent) && len(out) > 0 {
			out[len(out)-1] += "\n" + l
			continue
		}
		out = append(out, l)
	}
	return out
}

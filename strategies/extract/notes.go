package extract

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// addNotes adds lines of a summary in another format. Behind messages that work on files, which tell the same, only
// lines with new identifiers count. What it tells of the goal, and of what the user said, counts only if the log has no
// message of the user before it. Lines that the user has pasted are quoted.
func (d *Digest) addNotes(lines []string, quoted bool) {
	h := &d.history
	text := strings.Join(lines, "\n")
	told := h.messages > minTold && len(h.files) > 0
	var goal, said []string
	var into *[]string        // of the section, nil for one whose lines are findings
	stale, below := false, -1 // below is the indent of the heading of a section that is no finding
	for _, l := range prose.Lines(scratchpad().ReplaceAllString(text, "$1")) {
		line := l.Text
		if isNoteHeading(line) && (below < 0 || l.Indent <= below) {
			into, below = nil, -1
			if stale = staleHeading().MatchString(line); stale {
				below = l.Indent
			}
			switch {
			case goalHeading().MatchString(line):
				into = &goal
			case saidHeading().MatchString(line):
				into = &said
			}
			continue
		}
		if into != nil {
			if n := len(*into); n > 0 && !l.Listed { // it goes on
				(*into)[n-1] += " " + line
			} else {
				*into = append(*into, line)
			}
		}
		if !stale && !isIntention(line) && !prose.IsQuestion(line) && strings.Contains(line, " ") && (!told || d.ids.HasNew(line)) {
			found := strings.TrimSuffix(formatEntry(line), "\n")
			if quoted {
				found = requestMark + line
			}
			h.addEntry(sectionFindings, entry{text: found})
		}
	}
	if h.requests == 0 && !quoted {
		h.addTold(strings.Join(goal, " "), said)
	}
	d.scan(text, true)
}

// addTold adds what a summary of another program tells of the goal, and the messages of the user that it lists.
func (s *history) addTold(goal string, said []string) {
	s.toldGoal = prose.Excerpt(goal, maxLine)
	for _, x := range said[max(0, len(said)-maxToldMessages):] {
		x = strings.Trim(prose.OneLine(text.Head(x, maxRequest)), "\"“”")
		if x == "" || IsGenerated(x) || isInstruction(x) {
			continue
		}
		s.restoreRequest(entry{text: requestMark + x})
		s.readDemands(x, false)
	}
}

// addToldGoal adds that goal, which is no quotation.
func (s *history) addToldGoal(b *itemList) {
	if s.toldGoal != "" {
		b.add(sectionGoal, formatEntry(prose.Truncate(s.toldGoal, b.lineLimit)), worthDemand).tier = tierUser
	}
}

const (
	// minTold is the number of messages before a summary of another program from which they are taken for what it covers.
	minTold = 16
	// maxToldMessages is the number of messages of the user that are read from one, the newest.
	maxToldMessages = 40
)

// scratchpad is what a model notes before a summary, which says the same.
var scratchpad = text.Pattern(`(?is)^((?:[^\n]*\n){0,3}?)(?:<analysis>.*?</analysis>|analysis: *\n.*?\nsummary: *\n)`)

// staleHeading is the heading of what is known better from the log: what was to be done when the summary was written, and
// what is no finding: the goal, and the messages of the user.
var (
	staleHeading = text.Pattern(`(?i)\b(?:user messages|user requests|primary request|pending|current work|in progress|next steps?|to-?dos?|remaining|open tasks|active task)\b`)
	goalHeading  = text.Pattern(`(?i)\bprimary request\b`)
	saidHeading  = text.Pattern(`(?i)\ball user messages\b`)
)

// isNoteHeading reports whether a line without its markup is a heading.
func isNoteHeading(line string) bool {
	return len(line) < 60 && (strings.HasSuffix(line, ":") || staleHeading().MatchString(line) && !strings.ContainsAny(line, ".,"))
}

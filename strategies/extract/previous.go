package extract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// maxMessages is the most that a summary can say it was made from.
const maxMessages = 1 << 40

// maxPreviousEntries bounds the entries of one section of an earlier summary.
const maxPreviousEntries = 200

// AddPrevious takes in the summary that this one brings up to date; it comes before the
// messages. What a Digest wrote is read back part by part, so that nothing is summarized
// twice: its references stand where they stood, its asks are asks, its files are counted
// on. Any other text is a remark on what happened before.
func (d *Digest) AddPrevious(summary string) {
	summary = text.Head(d.redact(summary), maxChunk)
	defer d.ids.markPrevious()
	p := parsePrevious(summary)
	for _, line := range p.references {
		d.ids.addPreviousLine(line)
	}
	if !p.ownFormat {
		d.addNotes(p.prose)
		return
	}
	d.history.messages += p.messages
	for s, lines := range p.sections {
		d.ids.scan(strings.Join(lines, "\n"), true)
		d.history.restore(section(s), lines)
	}
}

// addNotes takes in lines that somebody else wrote.
func (d *Digest) addNotes(lines []string) {
	text := strings.Join(lines, "\n")
	d.scan(text, true)
	for _, line := range proseLines(text, maxLine) {
		if len(d.history.previous[sectionCompleted]) < maxPreviousEntries {
			d.history.previous[sectionCompleted] = append(d.history.previous[sectionCompleted], strings.TrimSuffix(formatEntry(line), "\n"))
		}
	}
}

// previous is a summary in its parts.
type previous struct {
	// ownFormat: it says that it was made here, from so many messages.
	ownFormat bool
	messages  int
	// prose is all but the references; sections are those of an own summary.
	prose      []string
	sections   [numSections][]string
	references []string
}

// parsePrevious reads what write has written, perhaps with something in front of it, and as much
// as it can of other texts.
func parsePrevious(summary string) (p previous) {
	var into *[]string
	for line := range strings.Lines(summary) {
		line = strings.TrimRight(line, "\r\n")
		if line+"\n" == referencesHeading {
			into = &p.references
			continue
		}
		if into != &p.references {
			p.prose = append(p.prose, line)
		}
		if s, ok := sectionOf(line); ok && p.ownFormat {
			into = &p.sections[s]
			continue
		}
		switch {
		case into != nil && line != "":
			*into = append(*into, line)
		case strings.HasSuffix(line, strings.TrimSuffix(originShort, "\n")):
			p.ownFormat = true
		case into == nil && strings.Contains(line, "Made from "):
			n := 0
			if _, err := fmt.Sscanf(line[strings.Index(line, "Made from "):], strings.TrimSuffix(originLong, "\n"), &n); err == nil {
				p.ownFormat, p.messages = true, min(max(n, 0), maxMessages)
			}
		}
	}
	return p
}

// restore takes in a section of an earlier summary.
func (s *history) restore(sec section, lines []string) {
	switch sec {
	case sectionTask:
		if a := parseRequest(lines); !a.empty() {
			s.turns = append(s.turns, &turn{request: a})
		}
	case sectionGoal:
		s.goal = parseRequest(lines)
	case sectionConstraints:
		for _, e := range splitEntries(lines) {
			c := strings.TrimPrefix(strings.TrimPrefix(e, bulletMark), quoteMark)
			s.constraints = appendNew(s.constraints, c)
		}
	case sectionFiles:
		for _, line := range lines {
			s.restoreFile(line)
		}
	case sectionRemaining:
		for _, e := range splitEntries(lines) {
			s.todos = appendBounded(s.todos, strings.TrimPrefix(e, bulletMark), maxNotes)
		}
	case sectionState, sectionInProgress, sectionPending: // that is how it was
		s.restoreEntries(sectionCompleted, lines)
	default:
		s.restoreEntries(sec, lines)
	}
}

func (s *history) restoreEntries(sec section, lines []string) {
	for _, e := range splitEntries(lines) {
		e = strings.TrimSuffix(e, noResult) // it may have one now
		if strings.HasPrefix(e, bulletMark) && !strings.HasPrefix(e, callsMark) && len(s.previous[sec]) < maxPreviousEntries && !slices.Contains(s.previous[sec], e) {
			s.previous[sec] = append(s.previous[sec], strings.Clone(e))
		}
	}
}

// parseRequest returns what quoted wrote.
func parseRequest(lines []string) request {
	var said []string
	for _, l := range lines {
		if l, ok := strings.CutPrefix(l, quoteMark); ok {
			said = append(said, strings.TrimSuffix(l, ellipsis))
		}
	}
	return request{head: strings.Join(said, "\n")}
}

// restoreFile reads the line of a file.
func (s *history) restoreFile(line string) {
	line, ok := strings.CutPrefix(line, bulletMark+"file ")
	i := strings.LastIndex(line, ": ")
	if !ok || i < 0 || len(s.files) >= maxFiles {
		return
	}
	f := &file{path: strings.Clone(line[:i])}
	for what := range strings.SplitSeq(line[i+2:], ", ") {
		n := 0
		if _, err := fmt.Sscanf(what, "changed %d", &n); err == nil {
			f.changes = n
		} else if _, err := fmt.Sscanf(what, "read %d", &n); err == nil {
			f.reads = n
		}
	}
	s.files[f.path] = f
}

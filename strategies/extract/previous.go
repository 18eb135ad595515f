package extract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// maxMessages is the most that a summary can say it was made from.
const maxMessages = 1 << 40

// maxBefore bounds the entries of one section of an earlier summary.
const maxBefore = 200

// AddPrevious takes in the summary that this one brings up to date; it comes before the
// messages. What a Digest wrote is read back part by part, so that nothing is summarized
// twice: its references stand where they stood, its asks are asks, its files are counted
// on. Any other text is a remark on what happened before.
func (d *Digest) AddPrevious(summary string) {
	summary = text.Head(d.masked(summary), chunk)
	defer d.ids.keepCarried()
	p := parts(summary)
	for _, line := range p.references {
		d.ids.carry(line)
	}
	if !p.own {
		d.remark(p.prose)
		return
	}
	d.history.messages += p.messages
	for s, lines := range p.sections {
		d.ids.read(strings.Join(lines, "\n"), true)
		d.history.carry(section(s), lines)
	}
}

// remark takes in lines that somebody else wrote.
func (d *Digest) remark(lines []string) {
	text := strings.Join(lines, "\n")
	d.read(text, true)
	for _, line := range prose(text, maxLine) {
		if len(d.history.before[completed]) < maxBefore {
			d.history.before[completed] = append(d.history.before[completed], strings.TrimSuffix(entry(line), "\n"))
		}
	}
}

// previous is a summary in its parts.
type previous struct {
	// own: it says that it was made here, from so many messages.
	own      bool
	messages int
	// prose is all but the references; sections are those of an own summary.
	prose      []string
	sections   [sections][]string
	references []string
}

// parts reads what write has written, perhaps with something in front of it, and as much
// as it can of other texts.
func parts(summary string) (p previous) {
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
		if s, ok := sectionOf(line); ok && p.own {
			into = &p.sections[s]
			continue
		}
		switch {
		case into != nil && line != "":
			*into = append(*into, line)
		case strings.HasSuffix(line, strings.TrimSuffix(originShort, "\n")):
			p.own = true
		case into == nil && strings.Contains(line, "Made from "):
			n := 0
			if _, err := fmt.Sscanf(line[strings.Index(line, "Made from "):], strings.TrimSuffix(origin, "\n"), &n); err == nil {
				p.own, p.messages = true, min(max(n, 0), maxMessages)
			}
		}
	}
	return p
}

// carry takes in a section of an earlier summary.
func (s *history) carry(sec section, lines []string) {
	switch sec {
	case activeTask:
		if a := unquoted(lines); !a.empty() {
			s.turns = append(s.turns, &turn{ask: a})
		}
	case goal:
		s.goal = unquoted(lines)
	case constraints:
		for _, e := range entries(lines) {
			c := strings.TrimPrefix(strings.TrimPrefix(e, bullet), quote)
			if !slices.Contains(s.constraints, c) {
				s.constraints = keep(s.constraints, c)
			}
		}
	case relevant:
		for _, line := range lines {
			s.carryFile(line)
		}
	case remaining:
		for _, e := range entries(lines) {
			s.todos = keep(s.todos, strings.TrimPrefix(e, bullet))
		}
	case state, inProgress, pending: // that is how it was
		s.carryEntries(completed, lines)
	default:
		s.carryEntries(sec, lines)
	}
}

func (s *history) carryEntries(sec section, lines []string) {
	for _, e := range entries(lines) {
		e = strings.TrimSuffix(e, noResult) // it may have one now
		if strings.HasPrefix(e, bullet) && !strings.HasPrefix(e, callsOf) && len(s.before[sec]) < maxBefore && !slices.Contains(s.before[sec], e) {
			s.before[sec] = append(s.before[sec], strings.Clone(e))
		}
	}
}

// unquoted returns what quoted wrote.
func unquoted(lines []string) ask {
	var said []string
	for _, l := range lines {
		if l, ok := strings.CutPrefix(l, quote); ok {
			said = append(said, strings.TrimSuffix(l, more))
		}
	}
	return ask{head: strings.Join(said, "\n")}
}

// carryFile reads the line of a file.
func (s *history) carryFile(line string) {
	line, ok := strings.CutPrefix(line, bullet+"file ")
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

package extract

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/charclass"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/reference"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

const (
	// maxMessages is the maximum number of messages that is read from an earlier summary.
	maxMessages = 1 << 40
	// maxPreviousEntries is the maximum number of entries in a section of one.
	maxPreviousEntries = 500
)

// AddPrevious adds the summary to be updated, before any message. A summary by a Digest is
// parsed, so that nothing is summarized twice; any other text counts as notes on completed
// work.
func (d *Digest) AddPrevious(summary string) {
	summary = text.Head(d.redact(summary), maxChunk)
	d.ids.BeginPrevious()
	defer d.ids.EndPrevious()
	p := parsePrevious(summary)
	byTools := false
	for _, line := range p.references {
		byTools = byTools || line+"\n" == reference.ToolsLine
		d.ids.AddPreviousLine(line, byTools)
	}
	d.ids.Scan(strings.Join(p.actions, "\n"), true)
	d.history.restoreEntries(sectionCompleted, p.actions)
	if !p.ownFormat {
		d.addNotes(p.prose, false)
		return
	}
	d.history.messages += p.messages
	for s, lines := range p.sections {
		d.ids.Scan(strings.Join(lines, "\n"), true)
		for _, l := range lines {
			if isQuoted(l) {
				d.ids.MarkUser(l)
			}
		}
		d.history.restore(section(s), lines)
	}
	for _, t := range d.history.turns[len(d.history.turns)-d.history.restored:] {
		if t.after == 0 { // no action is for it
			d.history.requests++
			t.after = d.history.requests
		}
	}
}

// previous is a parsed summary.
type previous struct {
	// ownFormat reports whether a Digest wrote the summary, from so many messages.
	ownFormat bool
	messages  int
	// prose holds all lines except the references; sections are set if ownFormat is.
	prose      []string
	sections   [numSections][]string
	references []string
	// actions are the entries of its log.
	actions []string
}

// parsePrevious parses a summary by writeText, which other lines may precede, or another
// text.
func parsePrevious(summary string) (p previous) {
	var into *[]string
	for line := range strings.Lines(summary) {
		line = strings.TrimRight(line, "\r\n")
		if line+"\n" == reference.Heading {
			into = &p.references
			continue
		}
		if line+"\n" == actionsHeading {
			into = &p.actions
			continue
		}
		if into != &p.references && into != &p.actions {
			p.prose = append(p.prose, line)
		}
		if s, ok := sectionOf(line); ok && p.ownFormat {
			into = &p.sections[s]
			continue
		}
		switch {
		case into == &p.actions && (!strings.HasPrefix(line, bulletMark) || strings.HasPrefix(line, actionsLeftOut)):
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

// restore adds a section of an earlier summary.
func (s *history) restore(sec section, lines []string) {
	if sec == sectionState || sec == sectionRemaining {
		lines = slices.DeleteFunc(lines, func(l string) bool {
			for _, mark := range []string{uncommittedMark, uncommittedAllMark} {
				if files, ok := strings.CutPrefix(strings.Replace(l, formerEarlierMark, " "+earlierMark, 1), mark); ok {
					files, cut := strings.CutSuffix(moreFiles().ReplaceAllString(strings.ReplaceAll(files, "; "+earlierMark, ", "), ""), prose.Ellipsis)
					if cut { // within a name, perhaps
						files = files[:max(0, strings.LastIndexAny(files, ",;"))]
					}
					s.edited, s.uncommittedAs = strings.Split(strings.Clone(strings.TrimPrefix(files, earlierMark)), ", "), mark
				}
			}
			h, ok := parseHandle(l)
			if ok {
				s.handles = appendBounded(s.handles, h, maxHandles)
			}
			return ok
		})
	}
	before := len(s.turns)
	switch sec {
	case sectionTask:
		var last *turn // of the lines below it
		for _, l := range lines {
			if before, ok := strings.CutPrefix(l, beforeMark); ok {
				last = &turn{request: request{head: strings.Clone(strings.TrimSuffix(before, prose.Ellipsis))}}
				s.turns = append(s.turns, last)
			} else if below, ok := strings.CutPrefix(l, indentMark); ok && last != nil {
				last.lines = append(last.lines, restoredLine(below))
			} else {
				last = nil
			}
		}
		if t := parseRequest(lines); !t.request.empty() {
			for _, l := range lines {
				if rest, ok := strings.CutPrefix(l, onMark); ok {
					if day, ok := parseDay(bulletMark + rest); ok {
						t.day, s.byDay = strings.Clone(day), true
					}
				}
			}
			if replied := parseReplied(lines); replied != "" {
				s.turns = append(s.turns, &turn{lastText: replied})
				t.asked = cmp.Or(lastQuestion(prose.FirstLine(replied)), lastQuestion(replied))
			}
			s.turns = append(s.turns, t)
		}
		s.restored = len(s.turns) - before
	case sectionGoal:
		if len(lines) == 1 && strings.HasPrefix(lines[0], bulletMark) {
			s.toldGoal = strings.Clone(lines[0][len(bulletMark):])
		}
		if t := parseRequest(lines); !t.request.empty() {
			s.goal, s.goalProgram = t.request, t.program
			for _, l := range lines {
				if below, ok := strings.CutPrefix(l, indentMark+bulletMark); ok {
					t.lines = append(t.lines, belowMark+below)
				} else if l, ok := strings.CutPrefix(l, bulletMark); ok {
					t.lines = append(t.lines, strings.Clone(l))
				}
			}
			s.turns = slices.Insert(s.turns, 0, t)
		}
	case sectionConstraints:
		for _, e := range splitEntries(lines) {
			if c, ok := strings.CutPrefix(e.text, requestMark); ok {
				s.constraints = appendNew(s.constraints, c)
			}
		}
	case sectionRequests:
		for _, e := range splitEntries(lines) {
			s.restoreRequest(e)
		}
	case sectionExchanges:
		s.wereRecords = s.wereRecords || len(lines) > 0
		for _, e := range splitEntries(lines) {
			switch {
			case strings.HasPrefix(e.text, requestMark):
				s.restoreRequest(e)
			case e.text == activeHere:
				s.requests++
				for _, t := range s.turns[len(s.turns)-s.restored:] {
					t.after = s.requests
				}
			default:
				s.restoreEntry(sectionCompleted, e)
			}
		}
	case sectionFiles:
		for _, line := range lines {
			s.restoreFile(line)
		}
	case sectionRemaining:
		for _, e := range splitEntries(lines) {
			if n, ok := strings.CutPrefix(e.text, tasksMark); ok {
				s.tasksLeft = counted(n)
				continue
			}
			s.todos = appendBounded(s.todos, strings.TrimPrefix(e.text, bulletMark), maxNotes)
		}
	case sectionState: // no longer current
		over := false // of a line and those below it
		s.restoreEntries(sectionFindings, slices.DeleteFunc(lines, func(l string) bool {
			if n, ok := strings.CutPrefix(l, omittedMark); ok {
				s.dropped += counted(n)
				return true
			}
			if !strings.HasPrefix(l, indentMark) {
				over = slices.ContainsFunc(stateMarks, func(mark string) bool { return strings.HasPrefix(l, mark) })
			}
			return over
		}))
	case sectionInProgress, sectionPending: // known again from what follows
	default:
		s.restoreEntries(sec, lines)
	}
}

// moreFiles counts the files that a line of files does not tell.
var moreFiles = text.Pattern(` and \d+ more$`)

// omittedMark is the beginning of omittedLine, tasksMark that of tasksLine.
var (
	omittedMark, _, _ = strings.Cut(omittedLine, "%")
	tasksMark, _, _   = strings.Cut(tasksLine, "%")
)

func (s *history) restoreEntries(sec section, lines []string) {
	for _, e := range splitEntries(lines) {
		s.restoreEntry(sec, e)
	}
}

func (s *history) restoreEntry(sec section, e entry) {
	e.text = strings.TrimSuffix(e.text, noResult) // there may be one now
	if n, ok := strings.CutPrefix(e.text, omittedMark); ok && sec == sectionCompleted {
		s.dropped += counted(n)
		return
	}
	if old, ok := strings.CutPrefix(e.text, strings.TrimSuffix(foundBefore, "\n")); ok {
		for _, l := range prose.SplitLines(old) {
			s.addEntry(sec, entry{text: l + editedMark, after: s.requests})
		}
	} else if proposed, ok := strings.CutPrefix(e.text, strings.TrimSuffix(proposedBefore, "\n")); ok {
		for _, l := range prose.SplitLines(proposed) {
			s.addEntry(sec, entry{text: l, after: s.requests})
		}
	} else if tasks, ok := strings.CutPrefix(strings.Replace(e.text, finishedOthers, finishedMark, 1), finishedMark); ok {
		s.moreFinished = s.moreFinished || strings.HasPrefix(e.text, finishedOthers)
		for task := range strings.SplitSeq(tasks, requestSeparator) {
			s.finished = appendNew(s.finished, task)
		}
	} else if strings.HasPrefix(e.text, bulletMark) && !slices.ContainsFunc(s.previous[sec], func(o entry) bool { return o.day == e.day && o.text == e.text }) {
		s.addEntry(sec, entry{strings.Clone(e.day), strings.Clone(e.text), s.requests})
	}
}

// counted returns the number that a line ends with, or that stands before what it counts.
func counted(s string) int {
	s, _, _ = strings.Cut(s, " ")
	n, _ := strconv.Atoi(s) // 0 for none
	return min(max(n, 0), maxMessages)
}

func (s *history) addEntry(sec section, e entry) {
	if len(s.previous[sec]) < maxPreviousEntries {
		s.previous[sec] = append(s.previous[sec], e)
		s.previousAt[e.text] = s.messages
	}
}

// editedMark ends what may be over, since files were edited after it was said.
const editedMark = " (files edited since)"

// dated returns a text that was said when there were at messages, marked if a file, or what is declared in one, that it
// names was edited, moved or deleted since: what an agent wrote about its work may be out of date.
func (s *history) dated(entry string, at int) string {
	if strings.Contains(entry, editedMark) {
		return entry
	}
	for _, f := range s.files {
		if f.changes > 0 && f.changed > at && namesFile(entry, f.path) {
			return entry + editedMark
		}
	}
	for name, since := range s.gone {
		if since > at && namesFile(entry, name) {
			return entry + editedMark
		}
	}
	if namesSince(entry, s.touched, at) {
		return entry + editedMark
	}
	return entry
}

// namesUnchanged reports whether a text names files, or what they declare, and none of these files was edited since there
// were at messages.
func (s *history) namesUnchanged(text string, at int) bool {
	var words []string // but for those of callers, which stand in other files
	if !usingIt().MatchString(text) {
		for w := range prose.Words(text) {
			if coined().MatchString(w) {
				words = append(words, w)
			}
		}
	}
	named, dotted := false, innerDot().MatchString(text) // which every name of a file has
	if !dotted && len(words) == 0 {
		return false
	}
	for _, f := range s.files {
		if (!dotted || !namesFile(text, f.path)) && !slices.ContainsFunc(words, func(w string) bool { return slices.Contains(f.declares, w) }) {
			continue
		}
		if f.changed > at {
			return false
		}
		named = true
	}
	if !named && dotted { // a file that no call has
		identifier.All(text, func(k identifier.Kind, start, end int) { // in code, or with a line: not Node.js
			named = named || k == identifier.File && (start > 0 && text[start-1] == '`' || end+1 < len(text) && text[end] == ':' && charclass.Digit.Has(text[end+1]))
		})
	}
	return named
}

// innerDot is a dot with something behind it.
var innerDot = text.Pattern(`\.\S`)

// usingIt is in what is said of where something is used.
var usingIt = text.Pattern(`(?i)\b(?:call(?:s|ed|ers?|ing)?|us(?:es?|ed|ages?|ing)|invok\w+|import(?:s|ed)?)\b`)

// namesFile reports whether a text names a file: by its name, or by the end of its path.
func namesFile(text, file string) bool {
	name := path.Base(file)
	if !strings.Contains(name, ".") {
		return false
	}
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		i += at
		start := charclass.Path.Backward(text, 0, i)
		for start > 0 && text[start-1] == '/' {
			start = charclass.Path.Backward(text, 0, start-1)
		}
		end := i + len(name)
		if after, _ := charclass.Next(text, end); after&charclass.Word == 0 && strings.HasSuffix("/"+file, "/"+strings.TrimLeft(text[start:end], "./@")) {
			return true
		}
		at = end
	}
}

// parseRequest parses the lines of request.quote and those of demands, which follow what is cut
// and the last line.
func parseRequest(lines []string) *turn {
	t := &turn{}
	var quoted []string
	end := len(lines) // of the request
	planned := false
	for i, l := range lines {
		if step, ok := strings.CutPrefix(l, indentMark+bulletMark); !ok {
			var title string
			if title, planned = strings.CutPrefix(l, planMark); planned {
				t.plan = []string{strings.Clone(title)}
			}
		} else if planned {
			t.plan = append(t.plan, strings.Clone(step))
		}
		l, ok := strings.CutPrefix(l, quoteMark)
		switch {
		case !ok:
		case i > end:
			t.demands = append(t.demands, demand{text: strings.Clone(l), pasted: true}) // perhaps of pasted text
		default:
			quoted = append(quoted, strings.TrimSuffix(l, prose.Ellipsis))
			if strings.HasSuffix(l, prose.Ellipsis) {
				end = i + 1
			}
		}
	}
	t.request.head = strings.Join(quoted, "\n")
	t.program = isInstruction(t.request.head)
	return t
}

// parseReplied returns the text of the assistant that the active task replies to.
func parseReplied(lines []string) string {
	var out []string
	for _, l := range lines {
		if first, ok := strings.CutPrefix(l, repliesMark); ok {
			out = []string{first}
		} else if more, ok := strings.CutPrefix(l, indentMark+bulletMark); ok && len(out) > 0 {
			out = append(out, more)
		} else if len(out) > 0 {
			break
		}
	}
	return strings.Join(out, "\n"+bulletMark)
}

// restoreRequest adds an entry of the earlier requests.
func (s *history) restoreRequest(e entry) {
	s.byDay = s.byDay || e.day != ""
	lines := strings.Split(e.text, "\n")
	head, ok := strings.CutPrefix(lines[0], requestMark)
	if !ok {
		return
	}
	var last *turn
	for head := range strings.SplitSeq(head, requestSeparator) {
		s.requests++
		last = &turn{after: s.requests, day: strings.Clone(e.day), request: request{head: strings.Clone(strings.TrimSuffix(head, prose.Ellipsis))}, program: isInstruction(head)}
		if s.goal.empty() { // it was no longer taken for the goal
			s.goal, s.longAgo = last.request, true
		}
		s.turns = slices.Insert(s.turns, max(0, len(s.turns)-s.restored), last) // before the active task, which comes first in the text
	}
	for _, l := range lines[1:] {
		l = strings.Clone(strings.TrimPrefix(l, indentMark))
		if d, ok := strings.CutPrefix(l, quoteMark); ok {
			last.demands = append(last.demands, demand{text: d, pasted: true})
		} else if d, ok := strings.CutPrefix(l, bulletMark+skillMark); ok {
			last.demands = append(last.demands, demand{text: d, pasted: true, rule: true})
		} else if d, ok := strings.CutPrefix(l, bulletMark+loadedMark); ok {
			last.demands = append(last.demands, demand{text: chat.SkillPrefix + d, pasted: true, rule: true})
		} else if q, ok := strings.CutPrefix(l, repliesMark); ok {
			last.asked = q
		} else if strings.HasPrefix(l, commitMark) {
			s.restoreEntry(sectionCompleted, entry{day: e.day, text: l})
		} else if !strings.HasPrefix(l, editedHereMark) && l+"\n" != documentMark { // which the log tells
			last.lines = append(last.lines, restoredLine(l))
		}
	}
}

// restoredLine returns the line of a turn that stands as an entry, or as one below it.
func restoredLine(l string) string {
	if below, ok := strings.CutPrefix(l, indentMark+bulletMark); ok {
		return belowMark + strings.Clone(below)
	}
	return strings.Clone(strings.TrimPrefix(l, bulletMark))
}

// restoreFile adds the file of a line by file.String.
func (s *history) restoreFile(line string) {
	line, created := strings.CutPrefix(line, createdFileMark)
	line, known := strings.CutPrefix(line, fileMark)
	i := strings.LastIndex(line, ": ")
	if !created && !known || i < 0 || len(s.files) >= maxFiles {
		return
	}
	f := &file{path: strings.Clone(line[:i]), created: created}
	for use := range strings.SplitSeq(line[i+2:], ", ") {
		n := int32(0)
		if _, err := fmt.Sscanf(use, "changed %d", &n); err == nil {
			f.changes = n
		} else if _, err := fmt.Sscanf(use, "read %d", &n); err == nil {
			f.reads = n
		}
	}
	s.files[f.path] = f
}

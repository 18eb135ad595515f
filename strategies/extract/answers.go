package extract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/argument"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// answer is what was said in a turn, while its lines become items.
type answer struct {
	*history
	list  *itemList
	turn  *turn
	index int // of the turn
	// request is the item below which it stands, nil for none; then it belongs to the goal, to the request that the
	// active one refers to, or is a finding.
	request                   *item
	isGoal, isBefore, finding bool
	lines                     []string
	last                      int // the first of the lines of the last message
	day                       string
	// edited reports that files were edited in the turn, editedLater that they were after it.
	edited, editedLater bool
	answered            bool // its result is listed
	// head is the item of the lines below it; of these, each may be marked by itself, and picked reports that the user
	// chose one.
	head         *item
	each, picked bool
}

// addAnswer adds what was said in a turn, below its request if that has an item; what was said
// last to the first request, below that. The last message of all describes the current state.
func (s *history) addAnswer(b *itemList, i int, request *item) {
	t := s.turns[i]
	switch {
	case i == len(s.turns)-1:
		s.addLastAnswer(b)
		return
	case request == nil && s.isRecords(): // not understood without it, and the calls tell the same
		return
	case !s.isTalk() && t.calls > t.callsBefore: // what was said while it worked is over
		return
	}
	a := answer{history: s, list: b, turn: t, index: i, request: request, lines: t.lines, last: t.lastStart, day: s.dayOf(i), edited: s.editedFor(t), editedLater: s.changedSince(t.lastAt, "")}
	if request == nil {
		a.isGoal = i != s.activeTurn() && s.isGoal(t.request)
		a.isBefore = !a.isGoal && i == b.before // it stands last in the task
		a.finding = !a.isGoal && !a.isBefore
	}
	if a.finding && i != s.activeTurn() && !s.isTalk() && t.isAside() {
		return
	}
	if !s.isTalk() {
		a.lines, a.last = a.lines[a.last:], 0
	}
	a.addLines()
}

// addLines adds the lines that are worth their room.
func (a *answer) addLines() {
	flat := a.finding && a.editedLater // without lists, which stand with their heading only
	var former, it *item               // of the line before, nil if that is left out
	counted, missing := false, false   // the line is an entry of a list that is told from its beginning, of which one was left out
	record, label := !a.isChat() && len(a.files) == 0, ""
	for j, line := range a.lines {
		line, below := strings.CutPrefix(line, belowMark)
		former, it = it, nil
		missing = missing || counted && former == nil
		counted = below && (record || listEntry().MatchString(line))
		if !below {
			a.head, missing = nil, false
		} else if flat || a.head == nil && j > a.last { // not understood without what it stands below
			continue
		}
		end := j + 1 // of what stands below it
		for !flat && !below && end < len(a.lines) && strings.HasPrefix(a.lines[end], belowMark) {
			end++
		}
		heads := end > j+1
		if j >= a.last && planning().MatchString(line) { // what was to be done is over, with all below it
			break
		}
		if namesSince(line, a.removed, a.turn.lastAt) || missing && !slices.ContainsFunc(prose.Sentences(line), isDecision) { // a list ends where an entry is left out
			continue
		}
		if !counted && !strings.HasSuffix(line, ":") { // what stands below it needs all of it
			line = a.statements(line)
		}
		plain := opening().ReplaceAllString(line, "")
		if !below { // else it keeps its number
			line = plain
		}
		first := j >= a.last && !a.answered && !isIntention(line) && !a.finding
		alike := false // an entry without a list of its own: Option 2: …
		if !below {
			before, _, _ := strings.Cut(line, ": ")
			alike = record && former != nil && len(before) < min(len(line), maxHeading) && argument.Form(before) == argument.Form(label)
			label = before
		}
		if follows := !below && following().MatchString(line); follows && former == nil && j > a.last { // not understood alone
			continue
		} else if !follows && !alike && (!counted || former == a.head) {
			former = nil
		}
		if !counted && (plain == "" || a.saysNothing(line, first, heads, below)) || a.isOver(line, first) {
			continue
		}
		worth := worthSaid
		if first || j == a.last {
			worth, a.answered = worthResult, true
		}
		if line = prose.Truncate(line, a.list.lineLimit); !heads {
			line = a.dated(line, a.turn.lastAt)
			if !first && !a.finding && a.index < len(a.turns)-recentTurns && strings.HasSuffix(line, editedMark) {
				continue
			}
		}
		if !below {
			a.readList(a.lines[j+1 : end])
		}
		about := ""
		if j == a.last { // it answers the request, which may say what it is about
			about = a.turn.request.head
		}
		line = a.marked(line, about, a.lines[j+1:end], flat, below)
		it = a.add(line, worth, first, j >= a.last)
		it.follows, it.repeats = former, counted && a.picked || alike
		if alike {
			former.repeats = true
		}
		if heads {
			a.head, it.heading = it, strings.HasSuffix(line, ":") || prose.IsRow(line)
		}
	}
}

// saysNothing reports whether a line is not worth its room: if it only says what was so then, how the work went, or
// what the files tell.
func (a *answer) saysNothing(line string, first, heads, below bool) bool {
	passing, empty := isPassing(line), isEmpty(line)
	switch {
	case heads:
		passing, empty = intending().MatchString(line) && !recapping().MatchString(line), false
	case below && !a.finding && prose.IsRow(line): // a row of a table stands with the others
		passing, empty = false, false
	}
	return empty || farewell().MatchString(line) || needing().MatchString(line) && !first || passing && (!first || a.editedLater) || isRemark(line) ||
		!a.isTalk() && (a.head == nil || !prose.IsRow(a.head.text)) && isProgramLine(line) ||
		a.finding && len(a.files) > 0 && (isChange(line) || instructing().MatchString(line))
}

// isOver reports whether what came of a line is in the files.
func (a *answer) isOver(line string, first bool) bool {
	return !first && !a.finding && a.edited && a.editedLater && !slices.ContainsFunc(prose.Sentences(line), isDecision)
}

// readList reads the lines below one that has none above it. If some of them hold, each is marked by itself.
func (a *answer) readList(below []string) {
	a.each = slices.ContainsFunc(below, func(l string) bool { return a.namesUnchanged(l, a.turn.lastAt) })
	a.picked = slices.ContainsFunc(below, func(l string) bool {
		return slices.Contains(a.decisions, chosenMark+strings.TrimPrefix(l, belowMark))
	})
}

// marked returns a line with editedMark if what it, what it is about or what stands below it names was edited since, or if
// any file was and it says that something is wrong or missing; of findings without lists, if any file was.
func (a *answer) marked(line, about string, list []string, flat, below bool) string {
	at := a.turn.lastAt
	about += "\n" + line
	if !a.each {
		about += "\n" + strings.Join(list, "\n")
	}
	switch {
	case a.each && len(list) > 0:
	case below && a.head != nil && strings.Contains(a.head.text, editedMark): // which stands for it
		return strings.TrimSuffix(line, editedMark)
	case (flat || (a.dated(about, at) != about || a.editedLater && faulted(line)) && (!below || a.each)) && !strings.Contains(line, editedMark) && !a.turn.isUndone() && !a.namesUnchanged(about, at):
		said := strings.TrimSuffix(line, ":")
		return said + editedMark + line[len(said):]
	}
	return line
}

// add adds the item of a line: of the last message, or the first that tells what came of it.
func (a *answer) add(line string, worth float64, first, last bool) *item {
	text := formatEntry(line)
	if a.request != nil || a.isBefore {
		text = indentMark + text
	}
	if a.head != nil {
		text = indentMark + text
	}
	it := a.list.add(sectionFindings, text, worth*decay(len(a.turns)-1-a.index, 8)*min(1, float64(len(text))/usualLine))
	it.day, it.parent = a.day, a.head
	if first && ((a.list.crowded || a.isBefore) && !a.isRecords() && !a.isTalk() && a.index >= len(a.turns)-1-newestRequests || a.isRecords() && a.index == a.activeTurn()-1) {
		it.tier = tierOpen
	}
	switch {
	case a.request != nil:
		it.section, it.parent = sectionRequests, cmp.Or(a.head, a.request)
	case a.isBefore:
		it.section, it.day = sectionTask, ""
	case a.isGoal && last:
		it.section, it.day = sectionGoal, ""
	}
	return it
}

// recapping begins a list of what was done.
var recapping = text.Pattern(`(?i)^\W*(?:here(?:['’]s| is| are) +)?(?:(?:a|an|the|my) +)?(?:\w+ +)?(?:summary|recap|overview|list)\b`)

// following begins a line that is not understood without the one before it.
var following = text.Pattern(`(?i)^(?:this|that|these|those|it|they|so|or|either|otherwise|therefore|hence|thus|which|then|both|but|however|instead)\b`)

// addCommits adds the commits of a turn that did nothing else, but for the last action of all, below its request, and
// reports whether there are any.
func (s *history) addCommits(b *itemList, i int, request *item) (added bool) {
	for _, e := range s.previous[sectionCompleted] {
		if line, ok := strings.CutPrefix(e.text, commitMark); ok && e.after == s.turns[i].after {
			b.restored[e] = true
			b.addCommit(line, request, decay(len(s.calls), 256))
			added = true
		}
	}
	for at, c := range s.calls {
		if c.after != s.turns[i].after || !c.onlyCommits || !c.done || c.failed {
			continue
		}
		if line := committed().FindString(c.outcome); line != "" && c.committed && s.tierOfLast(at, -1) < 0 {
			b.told[c] = true
			b.addCommit(line, request, decay(len(s.calls)-1-at, 256)).kind = c.kind()
			added = true
		}
	}
	return added
}

// addEdited adds the files that were edited in turns, and not taken back since, below their request, without those that it
// names.
func (s *history) addEdited(b *itemList, turns []int, request *item) {
	var files []string
	for _, i := range turns {
		for _, f := range b.edited[s.turns[i].after] {
			if !prose.ContainsWord(request.text, f) {
				files = appendNew(files, f)
			}
		}
	}
	if len(files) == 0 {
		return
	}
	line := strings.Join(files[:min(len(files), maxEditedHere)], ", ")
	if len(files) > maxEditedHere {
		line += fmt.Sprintf(" and %d more", len(files)-maxEditedHere)
	}
	it := b.add(sectionFiles, indentMark+editedHereMark+line+"\n", 0)
	it.section, it.day, it.parent, it.repeats = sectionRequests, request.day, request, true
	newest := turns[len(turns)-1]
	if it.tier = tierDone; newest >= len(s.turns)-1-newestRequests {
		it.tier = tierOpen
	}
	b.weigh(worthChanged * decay(len(s.turns)-1-newest, 16))
}

// editedByRequest returns the names of the files that were edited and not taken back since, by the number of the request,
// the newest first.
func (s *history) editedByRequest() map[int][]string {
	edited, name := map[int][]string{}, s.derived.fileName
	for c, p := range madeEdits(s.calls) {
		edited[c.after] = appendNew(edited[c.after], name(p))
	}
	return edited
}

// maxEditedHere is the number of files that are named below a request.
const maxEditedHere = 4

// addCommit adds a commit below its request.
func (b *itemList) addCommit(line string, request *item, age float64) *item {
	it := b.add(sectionCompleted, indentMark+commitMark+prose.Truncate(line, b.lineLimit)+"\n", 0)
	it.section, it.day, it.parent, it.tier, it.acted = sectionRequests, request.day, request, tierDone, true
	b.weigh(worthActed * age)
	return it
}

// planning begins the list of what is left to be done.
var planning = text.Pattern(`(?i)^(?:\W*(?:what['’]s|work|still|tasks?|steps?|items?) +)*(?:remaining|left|next(?: steps?| up)?|to-?dos?|pending|upcoming|not (?:yet )?(?:done|started))(?: +(?:work|tasks?|steps?|items?|to do|packages?))*(?::| (?:for|in|to|when|from|on|before|after)\b[^:.]{0,40}:$)`)

// editedFor reports whether files were edited in a turn.
func (s *history) editedFor(t *turn) bool {
	return slices.ContainsFunc(s.calls, func(c *toolCall) bool { return c.after == t.after && c.edited() })
}

// editedAfter reports whether files were edited for the request of a turn or a later one.
func (s *history) editedAfter(t *turn) bool {
	return slices.ContainsFunc(s.calls, func(c *toolCall) bool { return c.after >= t.after && c.edited() })
}

// isAside reports whether what was said in a turn without a line answers small talk or a command to the program,
// and nothing was looked at for it.
func (t *turn) isAside() bool {
	head := t.request.head
	return head != "" && (t.calls == 0 && !IsGenerated(head) || isCommand(head) || withoutCommands(head) == "")
}

// changedSince reports whether a file was changed after so many messages that was there before, or that what was said
// then may have missed.
func (s *history) changedSince(at int, said string) bool {
	lacks := lacking().MatchString(said)
	for _, f := range s.files {
		if f.changed > at && (lacks || !f.isNew()) {
			return true
		}
	}
	return false
}

// holds returns the mark of a reason that may be over since files were edited, and the share of its worth that is left: none
// of a fault that was found on the way and is settled.
func (s *history) holds(reason string) (mark string, share float64) {
	at := s.previousAt[reason]
	if !s.changedSince(at, reason) || slices.ContainsFunc(s.currentTurn().lines, func(l string) bool { return strings.Contains(l, reason) }) {
		return "", 1
	}
	switch fault, unchanged := faulty().MatchString(reason), s.namesUnchanged(reason, at); {
	case unchanged && !fault: // a fault may be settled by an edit elsewhere
		return "", 1
	case unchanged, !fault:
		return editedMark, 1
	case at < s.checkedAt && !slices.ContainsFunc(s.turns, func(t *turn) bool { return t.lastAt == at && t.calls == t.callsBefore }):
		return "", 0
	}
	return editedMark, 0.25
}

// statements returns a line without the sentences that are listed as decisions or reasons, without
// questions, which were answered, and without what was going to be done beside what was found.
func (s *history) statements(line string) string {
	if slices.Contains(s.decisions, line) {
		return ""
	}
	var rest []string
	line = withoutFarewell(line)
	all := prose.Sentences(line)
	last := len(all) - 1
	for last >= 0 && prose.IsQuestion(all[last]) { // what stands before others says what they are about
		last--
	}
	for _, x := range all[:last+1] {
		if !slices.Contains(s.decisions, x) && !slices.ContainsFunc(s.reasons, func(r string) bool { return strings.Contains(r, x) }) {
			rest = append(rest, x)
		}
	}
	if found := slices.DeleteFunc(slices.Clone(rest), func(x string) bool { return isIntention(x) || isRemark(x) }); len(found) > 0 {
		rest = found
	}
	if len(rest) == len(all) {
		return line
	}
	return strings.Join(rest, " ")
}

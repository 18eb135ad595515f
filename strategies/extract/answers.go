package extract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// addAnswer adds what was said in a turn, below its request if that has an item; what was said
// last to the first request, below that. The last message of all describes the current state.
func (s *history) addAnswer(b *itemList, i int, request *item) {
	t, age := s.turns[i], decay(len(s.turns)-1-i, 8)
	if i == len(s.turns)-1 {
		s.addLastAnswer(b)
		return
	}
	if request == nil && s.isRecords() { // not understood without it, and the calls tell the same
		return
	}
	isGoal := request == nil && i != s.activeTurn() && s.isGoal(t.request)
	isBefore := request == nil && !isGoal && i == b.before // it stands last in the task
	finding := request == nil && !isGoal && !isBefore
	if finding && i != s.activeTurn() && !s.isTalk() && t.isAside() {
		return
	}
	lines, last := t.lines, t.lastStart // those from last on are of the last message
	if !s.isTalk() {                    // what was said while it worked is over
		if t.calls > t.callsBefore {
			return
		}
		lines, last = lines[last:], 0
	}
	answered, day := false, s.dayOf(i) // answered: its result is listed
	edited, editedLater := s.editedFor(t), s.changedSince(t.lastAt, "")
	flat := finding && editedLater   // without lists, which stand with their heading only
	each, picked := false, false     // of the lines below the head is marked by itself, or was chosen by the user
	var head, former, it *item       // of the lines below it, and of the line before, nil if that is left out
	counted, missing := false, false // the line is an entry of a numbered list, of which one was left out
	for j, line := range lines {
		line, below := strings.CutPrefix(line, belowMark)
		former, it = it, nil
		missing = missing || counted && former == nil
		counted = below && listEntry().MatchString(line)
		if !below {
			head, missing = nil, false
		} else if flat || head == nil && j > last { // not understood without what it stands below
			continue
		}
		heads := !flat && !below && j+1 < len(lines) && strings.HasPrefix(lines[j+1], belowMark)
		if j >= last && planning().MatchString(line) { // what was to be done is over, with all below it
			break
		}
		if namesSince(line, s.removed, t.lastAt) || missing && !slices.ContainsFunc(sentences(line), isDecision) { // a list ends where an entry is left out
			continue
		}
		if !counted && !strings.HasSuffix(line, ":") { // what stands below it needs all of it
			line = s.statements(line)
		}
		plain := opening().ReplaceAllString(line, "")
		if !below { // else it keeps its number
			line = plain
		}
		first := j >= last && !answered && !isIntention(line) && !finding
		if follows := !below && following().MatchString(line); follows && former == nil && j > last { // not understood alone
			continue
		} else if !follows && (!counted || former == head) {
			former = nil
		}
		passing, empty := isPassing(line), isEmpty(line)
		switch {
		case heads:
			passing, empty = intending().MatchString(line) && !recapping().MatchString(line), false
		case below && !finding && isRow(line): // a row of a table stands with the others
			passing, empty = false, false
		}
		switch {
		case !counted && (plain == "" || empty || passing && (!first || editedLater) || isRemark(line) || !s.isTalk() && (head == nil || !isRow(head.text)) && isProgramLine(line) || finding && len(s.files) > 0 && (isChange(line) || instructing().MatchString(line))):
			continue
		case !first && !finding && edited && editedLater && !slices.ContainsFunc(sentences(line), isDecision): // what came of it is in the files
			continue
		}
		worth := worthSaid
		if first || j == last {
			worth, answered = worthResult, true
		}
		if line = truncate(line, b.lineLimit); !heads {
			line = s.dated(line, t.lastAt)
			if !first && !finding && i < len(s.turns)-recentTurns && strings.HasSuffix(line, editedMark) {
				continue
			}
		}
		end := j + 1 // of what stands below it
		for heads && end < len(lines) && strings.HasPrefix(lines[end], belowMark) {
			end++
		}
		if !below { // some of the lines below it hold: each is marked by itself
			each = slices.ContainsFunc(lines[j+1:end], func(l string) bool { return s.namesUnchanged(l, t.lastAt) })
			picked = slices.ContainsFunc(lines[j+1:end], func(l string) bool {
				return slices.Contains(s.decisions, chosenMark+strings.TrimPrefix(l, belowMark))
			})
		}
		about := line
		if !each {
			about += "\n" + strings.Join(lines[j+1:end], "\n")
		}
		switch {
		case each && heads:
		case below && head != nil && strings.Contains(head.text, editedMark): // which stands for it
			line = strings.TrimSuffix(line, editedMark)
		case (flat || (editedLater || s.changedSince(t.lastAt, about)) && (!below || each)) && !strings.Contains(line, editedMark) && !t.isUndone() && !s.namesUnchanged(about, t.lastAt):
			line = strings.TrimSuffix(line, ":") + editedMark + line[len(strings.TrimSuffix(line, ":")):]
		}
		text := formatEntry(line)
		if request != nil || isBefore {
			text = indentMark + text
		}
		if head != nil {
			text = indentMark + text
		}
		it = b.add(sectionFindings, text, worth*age*min(1, float64(len(text))/usualLine))
		it.day, it.parent, it.follows, it.repeats = day, head, former, counted && picked
		if first && (b.crowded || isBefore) && !s.isRecords() && !s.isTalk() && i >= len(s.turns)-1-newestRequests {
			it.tier = tierOpen
		}
		switch {
		case request != nil:
			it.section, it.parent = sectionRequests, cmp.Or(head, request)
		case isBefore:
			it.section, it.day = sectionTask, ""
		case isGoal && j >= last:
			it.section, it.day = sectionGoal, ""
		}
		if heads {
			head, it.heading = it, strings.HasSuffix(line, ":") || isRow(line)
		}
	}
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
			if !containsWord(request.text, f) {
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
	edited, name := map[int][]string{}, s.fileNames()
	for c, p := range madeEdits(s.calls) {
		edited[c.after] = appendNew(edited[c.after], name(p))
	}
	return edited
}

// maxEditedHere is the number of files that are named below a request.
const maxEditedHere = 4

// addCommit adds a commit below its request.
func (b *itemList) addCommit(line string, request *item, age float64) *item {
	it := b.add(sectionCompleted, indentMark+commitMark+truncate(line, b.lineLimit)+"\n", 0)
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

// statements returns a line without the sentences that are listed as decisions or reasons, without
// questions, which were answered, and without what was going to be done beside what was found.
func (s *history) statements(line string) string {
	if slices.Contains(s.decisions, line) {
		return ""
	}
	var rest []string
	all := sentences(line)
	last := len(all) - 1
	for last >= 0 && isQuestion(all[last]) { // what stands before others says what they are about
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

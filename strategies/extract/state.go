package extract

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/extract/internal/toolname"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// maxWholeAnswer is the number of lines of an answer of which all are kept, also those that say
// nothing alone.
const maxWholeAnswer = 8

// maxBeforeLast is the number of lines before the last message that are told as the state.
const maxBeforeLast = 2

// addLastAnswer adds the answer of the last turn.
func (s *history) addLastAnswer(b *itemList) {
	t := s.currentTurn()
	pending := ""
	if t.calls == t.callsBefore {
		pending = lastQuestion(t.lastText)
	}
	last := s.lastCall()
	stuck := last != nil && last.failed && last.blocks()
	long := len(t.lines)-t.lastStart > maxWholeAnswer
	named := namedOption().FindString(pending)
	conclusion := len(t.lines) - 1
	for conclusion > t.lastStart && (pending != "" && strings.HasPrefix(t.lines[conclusion], pending) || isEmpty(t.lines[conclusion]) || farewell().MatchString(t.lines[conclusion])) {
		conclusion--
	}
	var before []*item           // what was said before the last message, since the newest edit
	var head, above, entry *item // of the lines below it, and of the entry before in a numbered list below a line and in that of the answer
	next, announced := "", false // what comes next, and that a list begins with it
	if last != nil && !stuck {
		next = t.intention()
	}
	for j, line := range t.lines { // what is said last is read as a whole, unless it is long
		line, below := strings.CutPrefix(line, belowMark)
		if !below {
			head, above = nil, nil
		}
		// What was said before the newest edit is over, unless it names code: it may be the cause of what the edit fixes.
		early := !s.isTalk() && (j < s.saidBefore || j < s.lackedBefore && lacking().MatchString(line))
		if j < t.lastStart && !s.isTalk() && (below || early && (!strings.ContainsAny(line, "`/_") || isChange(line))) { // entries are not understood alone
			continue
		}
		if pending != "" { // it stands with what is pending
			line = strings.TrimSpace(strings.Replace(line, pending, "", 1))
		}
		line = withoutFarewell(line)
		heads := j+1 < len(t.lines) && strings.HasPrefix(t.lines[j+1], belowMark)
		announced = announced || heads && next != "" && strings.Contains(line, next)
		if !heads {
			over := func(said string) bool { // it leads code
				return strings.HasSuffix(said, ":") && (j+1 == len(t.lines) || !listEntry().MatchString(t.lines[j+1]))
			}
			if last != nil || j < t.lastStart && t.callsBefore > 0 { // the calls stand for what was to be done
				over = announces
			}
			said := prose.Sentences(line)
			if line = strings.Join(slices.DeleteFunc(slices.Clone(said), over), " "); line != strings.Join(said, " ") && isEmpty(line) {
				continue
			}
		}
		if j < t.lastStart {
			line = opening().ReplaceAllString(line, "")
		}
		if line == "" || isPathLine(line) && len(t.lines)-t.lastStart > 1 || claiming().MatchString(line) || last != nil && last.edited() && correcting().MatchString(line) || farewell().MatchString(line) || last != nil && (isRemark(line) || !heads && (isNextStep(line) || line == last.description)) || j < t.lastStart && (announces(line) || isRemark(line) || prose.IsQuestion(line)) || (j < t.lastStart || j > t.lastStart && long && !heads) && isEmpty(line) {
			continue
		}
		numbered, brief := !below && listEntry().MatchString(line), line
		if long && (below || numbered) { // all entries say more than some of them as a whole
			brief = lead(line, numbered)
		}
		text, whole := formatEntry(prose.Truncate(brief, b.lineLimit)), formatEntry(line)
		if head != nil {
			text, whole = indentMark+text, indentMark+whole
		}
		it := b.add(sectionState, text, worthState)
		switch it.tier, it.parent, it.follows = tierState, head, above; {
		case j == conclusion && !below, named != "" && strings.Contains(line, named): // what it comes to, and what is asked about
		case j > t.lastStart:
			it.tier = tierDemands
			far := min(j-t.lastStart, len(t.lines)-1-j) // from the beginning and from the end, which say most
			if numbered {
				far = 0 // the entries are equal
			}
			b.weigh(worthStateLine * decay(far, 6))
		case j < t.lastStart:
			it.section, it.share, it.tier, it.value = sectionFindings, sectionFindings, tierOther, worthSaid*min(1, float64(len(text))/usualLine)
			if early {
				it.text = strings.TrimSuffix(it.text, "\n") + editedMark + "\n"
				it.value = worthEarly * decay(t.lastStart-j, 16) * min(1, float64(len(text))/usualLine)
			} else {
				before = append(before, it)
			}
		}
		if numbered && long {
			if it.tier == tierDemands {
				it.follows = entry // a list loses its end first
			}
			entry = it
		} else if !below {
			entry = nil
		}
		if below && listEntry().MatchString(line) {
			above = it
		} else if !below {
			it.stands = long && numbered && len(line) > minSaid
			head, it.heading = it, heads && !it.stands && (strings.HasSuffix(line, ":") || prose.IsRow(line))
		}
		if j >= t.lastStart {
			b.addWhole(it, whole)
		}
	}
	if !s.isTalk() {
		for _, it := range before[max(0, len(before)-maxBeforeLast):] { // what the work goes on from
			it.section, it.share, it.tier, it.value = sectionState, sectionState, tierOpen, worthStateLine*float64(len(it.text))/usualLine
		}
	}
	if last != nil && !stuck {
		if next != "" && !announced && !s.carriedOut(t) {
			said := b.add(sectionState, saidLastMark+prose.Truncate(next, minExcerpt)+"\n", worthState)
			said.tier = tierState
			b.addWhole(said, saidLastMark+prose.Truncate(next, b.lineLimit)+"\n")
		}
		if !last.acts || len(last.options) > 0 {
			s.addLastCall(b, last)
		}
	}
	if len(s.unlinked) > 0 {
		b.add(sectionState, lastCallMark+prose.Truncate(strings.TrimLeft(strings.Join(s.unlinked[:min(len(s.unlinked), maxOutputLines)], "; "), "-* "), b.lineLimit+b.listLimit)+"\n", worthState).tier = tierState
	}
	files := s.taskFiles()
	addFiles := func(mark string, files []string) {
		line := mark + strings.ReplaceAll(strings.Join(files, ", "), ", "+earlierMark, "; "+earlierMark)
		it := b.add(sectionState, cutFiles(line, minExcerpt)+"\n", worthState)
		it.tier = tierState
		if whole := b.addWhole(it, cutFiles(line, max(b.lineLimit*2/3, minExcerpt))+"\n"); whole != nil {
			whole.tier = tierDemands
		}
	}
	open, mark := s.uncommitted()
	commit, forTask := s.lastCommit()
	name := s.derived.fileName
	var lost []string
	for _, p := range s.discarded {
		if !slices.Contains(open, name(p)) {
			lost = append(lost, name(p))
		}
	}
	switch {
	case len(files) > 0 && len(files) < len(open) && slices.Equal(open[:len(files)], files):
		open[len(files)] = earlierMark + open[len(files)]
	case len(files) > 0 && len(open) == 0 && forTask:
		addFiles(editedAndCommitted, files)
	case len(files) > 0 && !slices.Equal(open, files):
		addFiles(editedForMark, files)
	case len(files) == 0 && len(open) > 0 && len(s.edited) == 0 && s.requests > 1:
		open[0] = earlierMark + open[0]
	case last != nil && len(last.paths) > 0 && len(open) == 0 && len(s.discarded) == 0 && !forTask && !slices.ContainsFunc(s.taskCalls(), (*toolCall).delegates):
		addFiles(nothingEdited, nil)
	}
	if len(lost) > 0 {
		addFiles(discardedMark, lost)
	}
	if len(open) > 0 {
		addFiles(mark, open)
	} else if commit != nil && (forTask || s.tierOfLast(slices.Index(s.calls, commit), -1) < 0) { // else it is told as the last action
		line, mark := commit.commitLine(), committedMark
		if s.mergedSince(commit) {
			mark = mergedMark
		}
		it := b.add(sectionState, mark+prose.Truncate(line, minExcerpt)+"\n", worthState)
		if it.tier = tierState; !forTask {
			it.tier = tierDone
		}
		if whole := b.addWhole(it, mark+prose.Truncate(line, b.lineLimit)+"\n"); whole != nil {
			whole.tier = tierDemands
		}
	}
	if len(open) > 0 || commit != nil { // which changed nothing
		s.addChecked(b, len(open) > 0)
	}
}

// lead returns the first sentence of an entry, of one with a title that, with what is before it; all of it if that is short.
func lead(entry string, titled bool) string {
	rest := opening().ReplaceAllString(entry, "")
	said := prose.FirstSentence(rest)
	if title, _, ok := strings.Cut(said, ": "); ok && titled {
		said = title
	}
	if len(said) < minSaid {
		return entry
	}
	return strings.TrimSuffix(entry, rest) + said
}

// namedOption names an entry of a list.
var namedOption = text.Pattern(`(?i)\b(?:option|approach|choice|plan|phase|step|item) (?:[a-h]|\d{1,2})\b`)

// cutFiles truncates a line of files to about n characters, and tells how many have no room.
func cutFiles(line string, n int) string {
	head, cut := strings.CutSuffix(prose.Truncate(line, n), prose.Ellipsis)
	if !cut {
		return line
	}
	if at := strings.LastIndexAny(head, ",;"); strings.IndexByte(",;", line[len(head)]) < 0 { // within a name
		if at < strings.Index(line, ": ") {
			return head + prose.Ellipsis
		}
		head = head[:at]
	}
	rest := line[len(head):]
	return fmt.Sprintf("%s and %d more", head, strings.Count(rest, ", ")+strings.Count(rest, "; "))
}

// addLastCall adds the last call with what came of it.
func (s *history) addLastCall(b *itemList, last *toolCall) {
	mark := lastCallMark
	if n := s.callsOfLast(last); n > 1 && !inBackground().MatchString(last.outcome) { // none of them needs to be made again
		mark += fmt.Sprintf(lastOfMark, n)
	}
	asked := []string{s.goal.head}
	for _, t := range s.turns[max(0, len(s.turns)-recentTurns):] {
		asked = append(asked, t.request.head)
	}
	line := func(listLimit, excerpt, limit int) string { // with as much of a listing, or of an output, in all
		text := mark + strings.TrimPrefix(strings.TrimSuffix(last.line(b.lineLimit), "\n"), bulletMark)
		if found := last.listed(listLimit, strings.Join(asked, "\n")); found != "" && last.chosen < 0 { // the user may not know it yet
			text += " → " + found
		} else if last == s.shown.of && !strings.Contains(text, " → ") && !s.declaresIn(last) {
			if said := s.shown.excerpt(asked, excerpt); said != "" {
				text += " → " + said
			}
		} else if last.edited() {
			text += last.oneChange(" → ", minExcerpt)
		}
		return last.cut(text, limit) + "\n"
	}
	most := b.add(sectionState, line(b.listLimit, min(b.listLimit, maxLine), b.lineLimit+b.listLimit), worthState)
	most.tier, most.covers = tierState, b.add(sectionState, line(b.listLimit, 0, b.lineLimit), worthState) // where there is no room for all of it
	most.covers.covers = most
	most.value *= 1.1 * float64(len(most.text)) / float64(len(most.covers.text)) // it is tried first
	b.addWhole(most, line(maxAct, maxLine, 2*maxAct))
}

// declaresIn reports whether a call shows a file of which the names that it declares are told.
func (s *history) declaresIn(c *toolCall) bool {
	return slices.ContainsFunc(c.paths, func(p string) bool { return s.files[p] != nil && len(s.toldNames(s.files[p])) > 0 })
}

// callsOfLast returns the number of calls of the tool of the last one since the last message, with results and
// without another tool between.
func (s *history) callsOfLast(last *toolCall) int {
	t := s.currentTurn()
	since := s.calls[max(0, len(s.calls)-(t.calls-t.callsBefore)):]
	from := len(since) - 1
	for from > 0 && since[from-1].tool == last.tool && since[from-1].done && !since[from-1].failed && !last.administers && len(since[from-1].paths) == 0 {
		from--
	}
	return len(since) - from
}

// taskCalls returns the calls since the active request; all if there is none.
func (s *history) taskCalls() []*toolCall {
	since := s.currentTurn().after
	if at := s.activeTurn(); at >= 0 {
		since = s.turns[at].after
	}
	from := len(s.calls)
	for from > 0 && s.calls[from-1].after >= since {
		from--
	}
	return s.calls[from:]
}

// taskFiles returns the names of the files that were edited for the active task, the newest first, without edits that take
// back those of an earlier request.
func (s *history) taskFiles() []string {
	task := s.taskCalls()
	from := len(s.calls) - len(task)
	for from > 0 && !s.calls[from-1].committed {
		from--
	}
	made := s.editedFiles(s.calls[from:])
	return slices.DeleteFunc(s.editedFiles(task), func(f string) bool { return !slices.Contains(made, f) })
}

// lastCommit returns the last commit, if files were not edited since, else nil, and reports whether it was made for the
// active task.
func (s *history) lastCommit() (last *toolCall, forTask bool) {
	if len(s.files) == 0 { // it is of something else
		return nil, false
	}
	since, back := len(s.calls)-len(s.taskCalls()), takenBack(s.calls)
	for i, c := range slices.Backward(s.calls) {
		switch {
		case c.committed && (c.commits && !cleanTree().MatchString(c.outcome) || committed().MatchString(c.outcome)):
			return c, i >= since
		case c.edited() && !back[c]:
			return nil, false
		}
	}
	return nil, false
}

// mergedSince reports whether other work was brought in after a commit, which is not the newest any more.
func (s *history) mergedSince(commit *toolCall) bool {
	return slices.ContainsFunc(s.calls[slices.Index(s.calls, commit)+1:], func(c *toolCall) bool {
		return c.isShell && c.done && !c.failed && bringing().MatchString(c.description) && !strings.Contains(c.description, "--abort") && !strings.Contains(c.outcome, "up to date")
	})
}

var bringing = text.Pattern(`\bgit (?:merge|pull|rebase)\b`)

// maxOutputLines is the number of lines of an output that are listed.
const maxOutputLines = 3

// carriedOut reports whether a call since the last message of a turn did more than look at files: what was
// announced before it is done, or under way.
func (s *history) carriedOut(t *turn) bool {
	return len(s.files) == 0 || slices.ContainsFunc(s.calls[max(0, len(s.calls)-t.calls+t.callsBefore):], func(c *toolCall) bool {
		return c.acts || c.changes || len(c.paths) == 0 && !c.reads() && !toolname.Looks(c.tool)
	})
}

// intention returns the last sentence of the last message that says what comes next, "" for none; with a brief
// verdict before it, which has no line of its own.
func (t *turn) intention() string {
	for _, line := range slices.Backward(t.lines[t.lastStart:]) {
		all := prose.Sentences(line)
		for i, x := range slices.Backward(all) {
			if !intending().MatchString(x) {
				continue
			}
			x = strings.TrimRight(x, ":：")
			if i == 0 || !strings.Contains(all[i-1], " ") || isPolite(all[i-1]) || isRemark(all[i-1]) {
				return x
			}
			if intending().MatchString(all[i-1]) != isEmpty(all[i-1]) { // a verdict, or the step of which this is a part
				x = all[i-1] + " " + x
			}
			return x
		}
	}
	return ""
}

// lastCall returns the last call, but for those that set tasks, if it followed the last message and has a result, or nil.
func (s *history) lastCall() *toolCall {
	t := s.currentTurn()
	for _, c := range slices.Backward(s.calls[max(0, len(s.calls)-t.calls+t.callsBefore):]) {
		if !c.done {
			return nil
		}
		if !c.administers || c.plan != "" {
			return c
		}
	}
	return nil
}

// uncommitted returns the names of the files that were edited after the last commit, or of all if there
// is none, the newest first, and the mark of their line.
func (s *history) uncommitted() (files []string, mark string) {
	for i, c := range slices.Backward(s.calls) {
		if c.committed {
			return s.editedFiles(s.calls[i+1:]), uncommittedMark
		}
	}
	files = s.editedFiles(s.calls)
	for _, f := range s.edited {
		files = appendNew(files, f)
	}
	return files, cmp.Or(s.uncommittedAs, uncommittedAllMark)
}

// editedFiles returns the names of the files that calls edited, the newest first, without edits that were
// taken back.
func (s *history) editedFiles(calls []*toolCall) []string {
	var files []string
	name := s.derived.fileName
	for _, p := range madeEdits(calls) {
		files = appendNew(files, name(p))
	}
	return files
}

// madeEdits yields the edits among calls that were not taken back, each with a file that may be in a repository, the newest
// first.
func madeEdits(calls []*toolCall) iter.Seq2[*toolCall, string] {
	return func(yield func(*toolCall, string) bool) {
		back := takenBack(calls)
		for _, c := range slices.Backward(calls) {
			if !c.edited() || back[c] {
				continue
			}
			for _, p := range c.paths {
				if !strings.Contains(p, plansFolder) && !strings.Contains("/"+p, "/.git/") && !yield(c, p) {
					return
				}
			}
		}
	}
}

// plansFolder is in the paths of the plans that an agent writes for its user.
const plansFolder = "/.claude/plans/"

// fileNames returns the function that names a file: without its folder, unless another file that was changed has
// the same name.
func (s *history) fileNames() func(file string) string {
	times := map[string]int{}
	for p, f := range s.files {
		if f.changes > 0 {
			times[path.Base(p)]++
		}
	}
	return func(file string) string {
		name := path.Base(file)
		if times[name] > 1 {
			name = path.Join(path.Base(path.Dir(file)), name)
		}
		return name
	}
}

// edited reports whether a call changed files.
func (c *toolCall) edited() bool {
	return c.changes && c.done && (!c.failed || c.runsToo) && len(c.paths) > 0
}

// takenBack returns the edits that a later one reverses, with that.
func takenBack(calls []*toolCall) map[*toolCall]bool {
	back := map[*toolCall]bool{}
	made := map[[2]uint32][]*toolCall{} // the edits that are in force, by their texts
	for _, c := range calls {
		if c.edited() && c.change.from != c.change.to {
			reverse := made[[2]uint32{c.change.to, c.change.from}]
			if n := len(reverse) - 1; n >= 0 && !back[reverse[n]] && slices.Equal(reverse[n].paths, c.paths) {
				back[reverse[n]], back[c] = true, true
				made[[2]uint32{c.change.to, c.change.from}] = reverse[:n]
			} else {
				made[[2]uint32{c.change.from, c.change.to}] = append(made[[2]uint32{c.change.from, c.change.to}], c)
			}
		}
	}
	return back
}

// isPathLine reports whether a line is the name of a file alone, as above what is written to it.
func isPathLine(l string) bool {
	return !strings.Contains(l, " ") && (identifier.KindOf(l) == identifier.Path || identifier.KindOf(l) == identifier.File)
}

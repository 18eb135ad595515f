package extract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
)

// The headings of sections that an earlier summary is read by; actionsHeading begins the log of calls.
const (
	taskHeading     = "## Active Task"
	requestsHeading = "## Earlier Requests"
	actionsHeading  = "## Actions"

	addedMark, removedMark = "  + ", "  - "
)

// sections are the sections of a summary in their order, each with its share of the room: in general, where most calls are
// ones with short values, as those of services, which say what was asked for, and where there are no calls. The block of
// references comes last.
var sections = []sectionRow{
	{taskHeading, 0.30, 0.08, 0.25, (*Digest).taskItems},
	{"## Remaining Work", 0.08, 0.05, 0.05, (*Digest).remainingItems},
	{"## Earlier Summary", 0.10, 0.05, 0.10, (*Digest).earlierItems},
	{"## State", 0.12, 0.12, 0.05, (*Digest).stateItems},
	{requestsHeading, 0.22, 0.05, 0.25, (*Digest).requestItems},
	{actionsHeading, 0.12, 0.75, 0, (*Digest).actionItems},
	{"## Looked Up", 0.02, 0.04, 0, (*Digest).lookItems},
	{"## Changes", 0.15, 0.02, 0, (*Digest).changeItems},
	{"## Notes", 0.03, 0.02, 0.40, (*Digest).noteItems},
}

// sectionRow is a section with its shares.
type sectionRow struct {
	heading              string
	share, records, talk float64
	items                func(*Digest) []item
}

// referenceShare is the share of the references, recordsReferenceShare that beside calls with short values.
const (
	referenceShare        = 0.15
	recordsReferenceShare = 0.03
)

// write returns the summary in at most limit characters.
func (d *Digest) write(limit int) string {
	first := madeMark + strconv.Itoa(d.messages) + madeAfter + "\n"
	if len(first) > limit {
		return ""
	}
	records, references := d.isRecords(), referenceShare
	if records {
		references = recordsReferenceShare
	}
	p := page{room: limit - len(first) - int(references*float64(limit))}
	var parts []part
	for _, s := range sections {
		share := s.share
		if records {
			share = s.records
		} else if d.calls.total == 0 {
			share = s.talk
		}
		parts = append(parts, part{heading: s.heading, share: share, items: s.items(d)})
	}
	if d.ids.HasTopic() {
		raise(d.ids.IsTopical, parts)
	}
	p.fill(parts)
	body := first + p.String()
	block := d.ids.Block(p.room+int(references*float64(limit)), body)
	return strings.TrimSpace(body + block)
}

// isRecords reports whether most calls have results with short values, as those of services do, and none edits files.
func (d *Digest) isRecords() bool {
	records := 0
	for _, c := range d.calls.calls {
		if len(c.result) > 0 || c.rows > 0 {
			records++
		}
	}
	return records > len(d.calls.calls)/2 && len(d.tree.changes) == 0
}

// quoted returns lines of the user, with the blanks before them, which code needs.
func quoted(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		out[i] = quoteMark + strings.ReplaceAll(indent, "\t", "  ") + prose.OneLine(l)
	}
	return out
}

// indented returns lines that stand below an entry.
func indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		depth := "  "
		if strings.HasPrefix(l, "  ") {
			depth = "    "
		}
		out[i] = depth + said(l, 600)
	}
	return out
}

// forms returns the forms of an entry with the lines of a text in several sizes, head parts of four from its beginning.
func forms(above string, lines []string, head int, sizes ...int) [][]string {
	var out [][]string
	if len(lines) == 0 {
		return nil
	}
	for _, n := range sizes {
		picked := indented(endLines(lines, n, head))
		if above != "" {
			picked = slices.Concat([]string{above}, picked)
		}
		if len(out) == 0 || len(picked) != len(out[len(out)-1]) || !slices.Equal(picked, out[len(out)-1]) {
			out = append(out, picked)
		}
	}
	return out
}

// active returns the index of the newest turn that the user began, -1 for none.
func (d *Digest) active() int {
	for i, x := range slices.Backward(d.talk.turns) {
		if x.request != "" {
			return i
		}
	}
	return -1
}

// shortRequest is the number of characters up to which a request may reply to what was said before it.
const shortRequest = 300

// taskItems returns the newest request, what it replies to, and what the assistant said since.
func (d *Digest) taskItems() []item {
	i := d.active()
	if i < 0 {
		return nil
	}
	x := d.talk.turns[i]
	request := collapsed(prose.IndentedLines(x.request))
	task := item{order: 0, value: 9}
	for _, n := range []int{300, 700, 1200, 2000, 3500, 6000, maxRequest + 100} {
		picked := quoted(endLines(request, n, 2))
		if len(task.forms) == 0 || !slices.Equal(picked, task.forms[len(task.forms)-1]) {
			task.forms = append(task.forms, picked)
		}
	}
	out := []item{task}
	if x.before != "" && (len(x.texts) == 0 || len(x.request) < shortRequest) && d.day(x.at) == d.day(x.beforeAt) {
		before := item{order: 1, value: 6, forms: forms("- Before that, on the request before, the assistant had said:", proseLines(x.before), 1, 250, 600)}
		if len(x.request) < shortRequest && !d.ended { // it may be a reply to a list, or accept what was proposed, code and all
			before.value = 7
			before.forms = forms("- The assistant had said:", reply(x.before), 3, 300, 900)
			if x.last == 0 {
				before.forms = append(before.forms, forms("- The assistant had said:", prose.IndentedLines(x.before), 3, 2500, maxPassage)...)
			}
		}
		out = append(out, before)
	}
	if before := d.substantial(i); before != nil {
		out = append(out, item{order: -1, value: 7, forms: [][]string{{"- Before: > " + before.demand(200)}, {"- Before: > " + before.demand(800)}}})
	}
	if !x.at.IsZero() && d.manyDays() {
		out = append(out, item{order: 3, value: 5, forms: [][]string{{"- Asked on " + x.at.Format(time.DateOnly)}}})
	}
	if last := x.lastText(); last != "" {
		above := "- The assistant said last:"
		if since := d.calls.total - x.texts[len(x.texts)-1].calls; d.ended {
			above = "- The assistant replied:"
		} else if since > 2 {
			above = fmt.Sprintf("- The assistant said last, %d calls ago:", since)
		}
		out = append(out, item{order: 2, value: 8, forms: forms(above, proseLines(last), 3, 300, 900, 2500, maxPassage)})
	}
	return out
}

// tinyRequest is the number of characters of a request that names no task of its own, such as to go on.
const tinyRequest = 40

// substantial returns the newest turn before a tiny request that says more, nil for none.
func (d *Digest) substantial(i int) *turn {
	if utf8.RuneCountInString(d.talk.turns[i].request) >= tinyRequest {
		return nil
	}
	for _, x := range slices.Backward(d.talk.turns[max(0, i-5):i]) {
		if utf8.RuneCountInString(x.request) >= tinyRequest {
			return x
		}
	}
	return nil
}

// manyDays reports whether the messages are of more than one day.
func (d *Digest) manyDays() bool {
	return !d.first.IsZero() && d.first.Format(time.DateOnly) != d.newest.Format(time.DateOnly)
}

// remainingItems returns the tasks of the list that a tool keeps: those that are not done with their states, and of the
// others the number.
func (d *Digest) remainingItems() []item {
	var out []item
	var done []string
	for i, t := range d.tasks.list {
		if finished[strings.ToLower(t.state)] {
			done = append(done, t.title)
			continue
		}
		out = append(out, item{order: i + 1, value: 2, forms: [][]string{{"- [" + said(t.state, 30) + "] " + said(t.title, 200)}}})
	}
	if len(done) > 0 {
		few := said(strings.Join(done, " · "), 300)
		out = append(out, item{order: 0, value: 1, forms: [][]string{{fmt.Sprintf("- Done %d of %d: %s", len(done), len(d.tasks.list), few)}}})
	}
	return out
}

// earlierItems returns the summary that stood in the conversation, or before it, as one block.
func (d *Digest) earlierItems() []item {
	e := d.earlier
	if len(e.lines) == 0 {
		return nil
	}
	above, head := "- Written by the host before these messages:", 1 // what remains stands at its end
	if e.message > 1 {
		above = "- Written by the host before message " + strconv.Itoa(e.message) + ":"
	}
	if e.own {
		above, head = "- Of the messages before:", 3
	}
	if since := d.active() - e.turns; since > 1 && !e.own {
		above = strings.TrimSuffix(above, ":") + fmt.Sprintf(" (%d requests since, so its next steps may be done):", since)
		head = 3
	}
	x := item{value: 1}
	for _, n := range []int{600, 2000, 5000, 12_000, 60_000} {
		picked := []string{above}
		for _, l := range endLines(e.lines, n, head) {
			picked = append(picked, "  "+l)
		}
		if len(x.forms) == 0 || len(picked) != len(x.forms[len(x.forms)-1]) {
			x.forms = append(x.forms, picked)
		}
	}
	return []item{x}
}

// stateItems returns how the files stand, the last check, failures that were not repeated with success, and what is open.
func (d *Digest) stateItems() []item {
	var out []item
	add := func(value float64, lines ...string) {
		out = append(out, item{order: len(out), value: value, forms: [][]string{lines}})
	}
	t := &d.tree
	files, by := t.edits()
	files = slices.DeleteFunc(files, func(f string) bool { return by[f][len(by[f])-1].message <= t.committed })
	if slices.Reverse(files); len(files) > 0 {
		above := "- Edited: "
		if t.committed > 0 {
			above = "- Edited since the last commit: "
		} else if d.calls.hasCommands {
			above = "- Edited, no commit seen: "
		}
		add(9, above+said(strings.Join(baseNames(files), ", "), 600))
	}
	if cur := d.talk.current(); cur != nil && len(cur.edited) == 0 && cur.last > 0 && (len(t.changes) > 0 || len(t.read) > 0) {
		add(5, "- Nothing edited for this task yet.")
	}
	if n := len(t.commits); n > 0 {
		x := t.commits[n-1]
		add(6, strings.TrimRight("- Last commit: "+strings.TrimSpace(x.hash+" "+said(x.subject, 120)), ": "))
	}
	if n := len(t.checks); n > 0 {
		k := t.checks[n-1]
		when := ""
		if k.message < t.edited {
			when = ", before the last edit"
		}
		result := "passed"
		if k.call.failed {
			result = "failed"
		} else if !k.call.answered {
			result = "no result yet"
		}
		lines := []string{"- Last check (" + result + when + "): " + k.call.describeShort(160)}
		if k.call.failed {
			for _, l := range k.call.failure {
				lines = append(lines, "  "+l)
			}
		} else if k.call.brief != "" {
			lines[0] += " → " + k.call.brief
		}
		add(8, lines...)
	} else if t.edited > 0 && d.calls.hasCommands {
		add(4, "- No test or build seen.")
	}
	failures, passed := 0, 0
	for _, k := range t.checks {
		if !k.call.failed {
			passed = max(passed, k.message)
		}
	}
	for _, f := range slices.Backward(t.failures) {
		c := f.call
		switch {
		case failures == maxFailures || c.kind() == looks || c.refused || c.turn < len(d.talk.turns)-2:
			continue
		case c.check && f.message < passed, len(t.checks) > 0 && t.checks[len(t.checks)-1].call == c:
			continue
		}
		lines := []string{"- Failed, not repeated since: " + c.describeShort(120)}
		for _, l := range c.failure {
			lines = append(lines, "  "+l)
		}
		add(7-float64(failures), lines...)
		failures++
	}
	open := 0
	for _, c := range slices.Backward(d.calls.calls) {
		if h := c.handle(); open < 8 && !c.closed && (!c.answered && c.message >= d.messages-maxRemembers || h != "") {
			l := "- Without a result: " + c.describeShort(160)
			if h != "" {
				l = "- In the background, " + h + ": " + c.describeShort(160)
			}
			add(5, l)
			open++
		}
	}
	if c := d.lastCall(); c != nil {
		out = append(out, item{order: len(out), value: 6, forms: c.forms("- Last call: ", shortLine, 600, 1500)})
	}
	if len(t.read) > 0 {
		read := slices.Clone(t.read)
		slices.Reverse(read)
		read = slices.DeleteFunc(read, func(p string) bool {
			return !strings.Contains(base(p), ".") || slices.ContainsFunc(t.changes, func(x *change) bool { return x.path == p })
		})
		if len(read) > 0 {
			out = append(out, item{order: 99, value: 1, mixed: true, forms: [][]string{
				{"- Read, not edited: " + strings.Join(read[:min(3, len(read))], ", ")},
				{"- Read, not edited: " + strings.Join(read[:min(10, len(read))], ", ")},
				{"- Read, not edited: " + strings.Join(read[:min(30, len(read))], ", ")},
			}})
		}
	}
	return out
}

// maxFailures is the number of failures that are shown.
const maxFailures = 3

// lastCall returns the last call with its result if nothing was said since, nil otherwise.
func (d *Digest) lastCall() *call {
	n := len(d.calls.calls)
	if n == 0 || d.ended {
		return nil
	}
	if c := d.calls.calls[n-1]; c.answered && !c.check && !c.ofTasks && c.turn == len(d.talk.turns)-1 {
		return c
	}
	return nil
}

// baseNames returns the last elements of paths.
func baseNames(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = base(p)
	}
	return out
}

// requestItems returns the earlier requests of the user with what came of each.
func (d *Digest) requestItems() []item {
	var out []item
	last := d.active()
	records, newest := d.isRecords(), map[string]int{}
	for i, x := range d.talk.turns {
		newest[x.request] = i
	}
	for i, x := range d.talk.turns {
		if i == last || newest[x.request] != i && x.request != "" || x.request == "" && len(x.texts) == 0 || records && utf8.RuneCountInString(x.request) < tinyRequest && i < last-3 {
			continue
		}
		var did []string
		if x.interrupted {
			did = append(did, "  - Interrupted by the user.")
		}
		if len(x.edited) > 0 && i < last {
			did = append(did, "  - Edited: "+said(strings.Join(baseNames(x.edited), ", "), 200))
		}
		for _, c := range x.commits[max(0, len(x.commits)-2):] {
			did = append(did, "  - Committed: "+strings.TrimSpace(c.hash+" "+said(c.subject, 100)))
		}
		answer := proseLines(x.lastText())
		if len(answer) > 1 && len(answer[0]) < 25 && strings.HasSuffix(answer[0], "!") { // "Perfect!"
			answer = answer[1:]
		}
		entry := item{order: i, value: float64(i) + 1, group: d.day(x.at)}
		if binds(x.request) { // it holds, however old it is
			entry.value += float64(len(d.talk.turns)) / 3
		}
		for _, n := range [][3]int{{160, 0, 0}, {160, 160, 2}, {500, 160, 2}, {1000, 400, 4}, {1500, 900, 12}, {4000, 2500, 60}} {
			var lines []string
			if x.request != "" {
				lines = append(lines, "- "+quoteMark+x.demand(n[0]))
			}
			if n[1] > 0 {
				lines = append(lines, did...)
				outcome := headLines(answer, n[1])
				outcome = withoutLead(outcome[:min(n[2], len(outcome))])
				if last := len(outcome) - 1; last >= 0 && len(outcome) < len(answer) && !strings.HasSuffix(outcome[last], "…") {
					outcome = append(slices.Clone(outcome[:last]), outcome[last]+" …")
				}
				if last := len(outcome) - 1; last >= 0 && strings.HasPrefix(outcome[last], "| ") && (last == 0 || !strings.HasPrefix(outcome[last-1], "| ")) { // the head of a table
					outcome = outcome[:last]
				}
				lines = append(lines, d.dated(indented(outcome), i)...)
			}
			if len(lines) > 0 && (len(entry.forms) == 0 || !slices.Equal(lines, entry.forms[len(entry.forms)-1])) {
				entry.forms = append(entry.forms, lines)
			}
		}
		out = append(out, entry)
	}
	return out
}

// dated marks the lines about files that were edited after a turn.
func (d *Digest) dated(lines []string, turn int) []string {
	if turn+1 >= len(d.talk.turns) {
		return lines
	}
	end := d.talk.turns[turn+1].message
	for i, l := range lines {
		if slices.ContainsFunc(d.tree.changes, func(x *change) bool { return x.message > end && strings.Contains(l, base(x.path)) }) {
			lines[i] = l + " (edited since)"
		}
	}
	return lines
}

// day returns the line above entries of a day, "" where all messages are of one day.
func (d *Digest) day(at time.Time) string {
	if at.IsZero() || !d.manyDays() {
		return ""
	}
	return at.Format(time.DateOnly) + ":"
}

// actionItems returns the calls that changed something or that failed, lookItems those that looked for what came of use.
func (d *Digest) actionItems() []item { return d.callItems(acts) }

func (d *Digest) lookItems() []item { return d.callItems(looks) }

// callItems returns the calls of a kind: those on values of earlier results first, then the newest; of those that looked, the
// ones with values that are named again, and that no call that changed something has.
func (d *Digest) callItems(of kind) []item {
	var out []item
	all := d.calls.calls
	last := d.lastCall()
	seen, told := map[string]bool{}, map[string]bool{}
	for i, c := range slices.Backward(all) {
		if c.hint != acts && (len(c.changes) > 0 && !c.failed || c.check || c.ofTasks || c.isSlight()) || !c.answered || c == last {
			continue
		}
		if c.kind() == acts {
			for _, f := range slices.Concat(c.arguments, c.result) {
				told[f.value] = true
			}
		}
		if c.kind() != of || of == looks && len(c.result) == 0 || d.isMadeAgain(c, all[i+1:]) {
			continue
		}
		value := float64(i) / float64(len(all))
		if of == looks {
			fresh := slices.DeleteFunc(c.shown(false), func(f *field) bool { return told[f.value] || f.named == 0 })
			if len(fresh) > 1 || len(fresh) == 1 && isDistinct(fresh[0].value) {
				value += 1 + float64(min(len(fresh), 6))/6
			}
		} else if c.uses > 0 {
			value += 0.8
		}
		if c.isCommand {
			value--
		}
		x := item{order: i, value: value, group: d.day(c.at), forms: c.forms("- ", shortLine, 500, 1200)}
		key := x.forms[0][0]
		if c.isCommand {
			key = c.text
		}
		if !seen[key] { // only the newest stays
			seen[key] = true
			out = append(out, x)
		}
	}
	return out
}

// isDistinct reports whether a value has at least three digits: an address, a number, a price.
func isDistinct(v string) bool {
	n := 0
	for i := range len(v) {
		if '0' <= v[i] && v[i] <= '9' {
			n++
		}
	}
	return n > 2
}

// isMadeAgain reports whether one of later calls did with success what a call failed to do, or was made with the value that a call
// gave in place of the one that it was asked for.
func (d *Digest) isMadeAgain(c *call, later []*call) bool {
	return slices.ContainsFunc(later, func(l *call) bool {
		return l.tool == c.tool && l.answered && !l.failed && (c.failed && repeats(l, c) || !c.failed && l.corrects(c))
	})
}

// commitItems returns the commits.
func (d *Digest) commitItems() []item {
	var out []item
	for i, x := range d.tree.commits {
		if l := strings.TrimSpace(x.hash + " " + said(x.subject, 120)); l != "" {
			out = append(out, item{order: 1<<20 + i, value: 2, forms: [][]string{{"- Committed: " + l}}})
		}
	}
	return out
}

// changeItems returns the files edited since the last commit with the lines that say most of what changed in them, and those
// edited before.
func (d *Digest) changeItems() []item {
	var out []item
	files, by := d.tree.edits()
	for i, f := range files {
		all := by[f]
		above, value := "- "+f, float64(i)
		if all[0].created {
			above += " (created)"
		}
		if len(all) > 1 {
			above += fmt.Sprintf(" (%d edits)", len(all))
		}
		if d.tree.committed > 0 && all[len(all)-1].message <= d.tree.committed {
			above += ", committed"
		} else {
			value += float64(len(files))
		}
		var added, removed []string
		for _, x := range all {
			removed = slices.DeleteFunc(append(removed, x.removed...), func(l string) bool { return slices.Contains(x.added, l) })
			added = slices.DeleteFunc(added, func(l string) bool { return slices.Contains(x.removed, l) })
			added = append(added, x.added...)
		}
		x := item{order: i, value: value, forms: [][]string{{above}}}
		for _, n := range []int{3, 8, 20, 60} {
			lines := []string{above}
			for _, l := range d.telling(added, n) {
				lines = append(lines, addedMark+l)
			}
			for _, l := range d.telling(removed, n/3) {
				if !slices.Contains(added, l) {
					lines = append(lines, removedMark+l)
				}
			}
			if len(lines) > len(x.forms[len(x.forms)-1]) {
				x.forms = append(x.forms, lines)
			}
		}
		out = append(out, x)
	}
	return out
}

// telling returns the n lines of code with the words that say most, in their order: those that stand further in say less, and
// comments less than code.
func (d *Digest) telling(lines []string, n int) []string {
	seen := map[string]bool{}
	var distinct []string
	for _, l := range lines {
		if !seen[l] {
			seen[l] = true
			distinct = append(distinct, l)
		}
	}
	if len(distinct) <= n {
		return distinct
	}
	weights := make([]float64, len(distinct))
	for i, l := range distinct {
		code := strings.TrimLeft(l, " ")
		weights[i] = d.words.density(code) / float64(1+len(l)-len(code))
		if slices.ContainsFunc(commentSigns, func(sign string) bool { return strings.HasPrefix(code, sign) }) {
			weights[i] /= 4
		}
	}
	sorted := slices.Clone(weights)
	slices.Sort(sorted)
	least := sorted[len(sorted)-n]
	var out []string
	for i, l := range distinct {
		switch {
		case weights[i] >= least && len(out) < n:
			out = append(out, l)
		case len(out) > 0 && !strings.HasSuffix(out[len(out)-1], "…"): // lines are left out here
			out[len(out)-1] += " …"
		}
	}
	return out
}

// noteItems returns, of a conversation without calls, the sentences with the rarest words that come back; of others the long
// texts of the assistant between calls.
func (d *Digest) noteItems() []item {
	var out []item
	add := func(value float64, forms ...[]string) {
		out = append(out, item{order: len(out), value: value, forms: forms})
	}
	for i, x := range d.talk.turns {
		for j, p := range x.texts {
			lines := proseLines(p.text)
			if d.calls.total > 0 {
				if j < len(x.texts)-1 && len(p.text) > minNote && len(lines) > 2 {
					add(float64(p.message), forms("- "+said(lines[0], 400), lines[1:], 3, 300, 900, 2500)...)
				}
				continue
			}
			for _, s := range sentencesOf(strings.Join(lines, "\n")) {
				if len(s) >= minRepeated {
					add(d.words.density(s), []string{"- " + said(s, 400)})
				}
			}
		}
		if d.calls.total == 0 && i != d.active() && len(x.request) > 160 {
			for _, s := range sentencesOf(x.request) {
				if len(s) >= minRepeated {
					add(d.words.density(s), []string{"- " + quoteMark + line(s, 400)})
				}
			}
		}
	}
	return out
}

// minNote is the size of a text between calls that says more than which call comes next.
const minNote = 400

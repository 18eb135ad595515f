package extract

import (
	"fmt"
	"path"
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
// ones with short values, as those of services, which repeat the requests, and where there are no calls. The block of
// references comes last.
var sections = []sectionRow{
	{taskHeading, 0.32, 0.12, 0.15, (*Digest).taskItems},
	{"## Remaining Work", 0.08, 0.05, 0.05, (*Digest).remainingItems},
	{"## Earlier Summary", 0.10, 0.05, 0.10, (*Digest).earlierItems},
	{"## State", 0.12, 0.18, 0.05, (*Digest).stateItems},
	{requestsHeading, 0.22, 0.15, 0.42, (*Digest).requestItems},
	{actionsHeading, 0.15, 0.75, 0, (*Digest).actionItems},
	{"## Looked Up", 0.02, 0.04, 0, (*Digest).lookItems},
	{"## Changes", 0.15, 0.02, 0, (*Digest).changeItems},
	{"## Notes", 0.03, 0.02, 0.45, (*Digest).noteItems},
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
	most := utf8.RuneCountInString(body) * int(100*referenceShare) / int(100*(1-referenceShare)) // of the text as it is
	block := d.ids.Block(min(p.room+int(references*float64(limit)), most), body)
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
		out = addForm(out, picked)
	}
	return out
}

// addForm appends a form unless it equals the one before.
func addForm(forms [][]string, form []string) [][]string {
	if n := len(forms); n > 0 && slices.Equal(form, forms[n-1]) {
		return forms
	}
	return append(forms, form)
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

// taskItems returns the newest request, the text that it replies to, and the last text of the assistant since.
func (d *Digest) taskItems() []item {
	i := d.active()
	if i < 0 {
		return nil
	}
	x := d.talk.turns[i]
	request := collapsed(prose.IndentedLines(x.request))
	task := item{order: 0, value: 9}
	for _, n := range []int{300, 700, 1000, 1400, 2000, 2800, 4000, 6000, 9000, maxRequest + 100} {
		task.forms = addForm(task.forms, quoted(endLines(request, n, 3)))
	}
	out := []item{task}
	started := x.last > 0 && !asks(x.before) // what was said before is done
	if x.before != "" && !started && (len(x.texts) == 0 || len(x.request) < shortRequest) && d.day(x.at) == d.day(x.beforeAt) {
		before := item{order: 1, value: 6, forms: forms("- Before that, on the request before, the assistant had said:", proseLines(x.before), 1, 250, 600)}
		if len(x.request) < shortRequest && !d.ended { // it may be a reply to a list, or accept a proposal, code and all
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
	if cur := d.active(); !d.tasks.open() && cur >= 0 && d.tasks.message < d.talk.turns[cur].message { // a list of the past
		return nil
	}
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
	above, head := "- Written by the host before these messages:", 1 // its open points stand at its end
	if e.message > 1 {
		above = "- Written by the host before message " + strconv.Itoa(e.message) + ":"
	}
	if e.own {
		above, head = "- Of the messages before:", 3
	}
	if since := d.active() - e.turns; since > 1 && !e.own {
		above = strings.TrimSuffix(above, ":") + fmt.Sprintf("; %d requests since, so its next steps are left out:", since)
		head = 4
	}
	x := item{value: 1}
	for _, n := range []int{600, 2000, 5000, 12_000, maxEarlier} {
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

// stateItems returns how the files stand, the last check, failures that were not repeated with success, and open calls.
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
	if cur := d.talk.current(); cur != nil && len(cur.edited) == 0 && cur.last > 0 && len(t.changes)+len(t.read) > 0 {
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
		if k.failed {
			result = "failed"
		} else if !k.answered {
			result = "no result yet"
		}
		above := "- Last check (" + result + when + "): " + k.describeShort(160)
		if !k.failed && k.brief != "" {
			above += " → " + k.brief
		}
		add(8, k.withFailure(above)...)
	} else if t.edited > 0 && d.calls.hasCommands {
		add(4, "- No test or build seen.")
	}
	failures, passed := 0, 0
	for _, k := range t.checks {
		if !k.failed {
			passed = max(passed, k.message)
		}
	}
	for _, c := range slices.Backward(t.failures) {
		switch {
		case failures == maxFailures || c.kind() == looks || c.refused || c.turn < len(d.talk.turns)-2:
			continue
		case c.check && c.message < passed, len(t.checks) > 0 && t.checks[len(t.checks)-1] == c:
			continue
		}
		add(7-float64(failures), c.withFailure("- Failed, not repeated since: "+c.describeShort(120))...)
		failures++
	}
	open := 0
	for _, c := range slices.Backward(d.calls.calls) {
		h := c.handle()
		waits := !c.answered && c.message >= d.messages-maxRemembers
		if open < 8 && !c.closed && (waits || h != "") {
			l := "- Without a result: " + c.describeShort(160)
			if h != "" {
				l = "- In the background, " + h + ": " + c.describeShort(160)
			}
			add(5, l)
			open++
		}
	}
	for _, c := range d.lastCalls() {
		out = append(out, item{order: len(out), value: 6, forms: c.forms("- Last call: ", shortLine, 400, 700, 1500)})
	}
	if len(t.read) > 0 {
		read := slices.Clone(t.read)
		slices.Reverse(read)
		read = slices.DeleteFunc(read, func(p string) bool {
			return !strings.Contains(path.Base(p), ".") || slices.ContainsFunc(t.changes, func(x *change) bool { return x.path == p })
		})
		if len(read) > 0 {
			x := item{order: 99, value: 1, mixed: true}
			for _, n := range []int{3, 10, 30} {
				x.forms = append(x.forms, []string{"- Read, not edited: " + strings.Join(read[:min(n, len(read))], ", ")})
			}
			out = append(out, x)
		}
	}
	return out
}

// withFailure returns a line about a call with those of its failure below it.
func (c *call) withFailure(above string) []string {
	lines := []string{above}
	for _, l := range c.failure {
		lines = append(lines, "  "+l)
	}
	return lines
}

// maxFailures is the number of failures that are shown.
const maxFailures = 3

// lastCalls returns the calls of the last message with some, with their results, that were made for the active task or returned a
// list of which the user may choose.
func (d *Digest) lastCalls() []*call {
	all := d.calls.calls
	i := len(all)
	for i > 0 && len(all)-i < maxParallel && all[i-1].message == all[len(all)-1].message {
		i--
	}
	return slices.DeleteFunc(slices.Clone(all[i:]), func(c *call) bool {
		turns := 1
		if c.rows > 1 {
			turns = 2
		} else if d.ended {
			turns = 0
		}
		return !c.answered || c.check || c.ofTasks || len(d.talk.turns)-c.turn > turns
	})
}

// maxParallel is the number of calls of one message that are shown as the last ones.
const maxParallel = 4

// baseNames returns the last elements of paths.
func baseNames(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = path.Base(p)
	}
	return out
}

package extract

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// requestItems returns the earlier requests of the user with the outcome of each.
func (d *Digest) requestItems() []item {
	var out []item
	last := d.active()
	records, newest := d.isRecords(), map[string]int{}
	for i, x := range d.talk.turns {
		newest[x.request] = i
	}
	for i, x := range d.talk.turns {
		past := records && d.day(x.at) != d.day(d.newest) // of an earlier visit, of which the calls are shown
		switch {
		case i == last, newest[x.request] != i && x.request != "", x.request == "" && len(x.texts) == 0:
			continue
		case past && utf8.RuneCountInString(x.request) < tinyRequest:
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
		var answer []string
		if !past && d.calls.total > 0 { // of a talk, the notes hold the answers
			answer = proseLines(x.lastText())
		}
		if len(answer) > 1 && len(answer[0]) < 25 && strings.HasSuffix(answer[0], "!") { // "Perfect!"
			answer = answer[1:]
		}
		entry := item{order: i, value: float64(i) + 1, group: d.day(x.at)}
		if past {
			entry.value += lateValue
		} else if binds(x.request) { // it holds, however old it is
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
				if endsWithHead(outcome) {
					outcome = outcome[:len(outcome)-1]
				}
				lines = append(lines, d.dated(indented(outcome), i)...)
			}
			if len(lines) > 0 {
				entry.forms = addForm(entry.forms, lines)
			}
		}
		out = append(out, entry)
	}
	return out
}

// endsWithHead reports whether the last of some lines is the head of a table.
func endsWithHead(lines []string) bool {
	last := len(lines) - 1
	return last >= 0 && strings.HasPrefix(lines[last], "| ") && (last == 0 || !strings.HasPrefix(lines[last-1], "| "))
}

// dated marks the lines about files that were edited after a turn.
func (d *Digest) dated(lines []string, turn int) []string {
	if turn+1 >= len(d.talk.turns) {
		return lines
	}
	end := d.talk.turns[turn+1].message
	for i, l := range lines {
		if slices.ContainsFunc(d.tree.changes, func(x *change) bool { return x.message > end && strings.Contains(l, path.Base(x.path)) }) {
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

// actionItems returns the calls that changed something or that failed, lookItems those that found values of use.
func (d *Digest) actionItems() []item { return d.callItems(acts) }

func (d *Digest) lookItems() []item { return d.callItems(looks) }

// callItems returns the calls of a kind: those on values of earlier results first, then the newest; of those that looked, the
// ones with values that are named again, and that no call that changed something has.
func (d *Digest) callItems(of kind) []item {
	var out []item
	all := d.calls.calls
	last := d.lastCalls()
	seen, told := map[string]bool{}, map[string]bool{}
	for i, c := range slices.Backward(all) {
		shown := len(c.changes) > 0 && !c.failed || c.check || c.ofTasks || c.isSlight() // in another section
		if c.hint != acts && shown || !c.answered || slices.Contains(last, c) {
			continue
		}
		if c.kind() == acts {
			for _, f := range slices.Concat(c.arguments, c.result) {
				told[f.value] = true
			}
		}
		if c.kind() != of || c.refused || c.madeAgain || isCorrected(c, all[i+1:]) {
			continue
		}
		if of == looks && len(c.result) == 0 {
			continue
		}
		value := float64(i) / float64(len(all))
		if of == looks {
			fresh := slices.DeleteFunc(c.shown(false), func(f *field) bool { return told[f.value] || f.named == 0 })
			if len(fresh) > 1 || len(fresh) == 1 && isDistinct(fresh[0].value) {
				value += 1 + float64(min(len(fresh), 6))/6
			}
		} else {
			if value += c.orders(); c.uses > 0 {
				value += 0.8
			}
			if c.brief == "nothing" {
				value--
			}
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

// isCorrected reports whether one of later calls was made with the values that a call gave in place of those it was asked for.
func isCorrected(c *call, later []*call) bool {
	return c.gaveOther && slices.ContainsFunc(later, func(l *call) bool {
		return l.tool == c.tool && l.answered && !l.failed && l.corrects(c)
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

// changeItems returns the files edited since the last commit with the lines that say most of the change, and those
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
		added, removed := sum(all)
		if len(added)+len(removed) == 0 && len(all) > 1 { // taken back
			continue
		}
		x := item{order: -i, value: value, forms: [][]string{{above}}} // the newest first
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

// sum returns the lines that several edits of a file added and removed in all.
func sum(all []*change) (added, removed []string) {
	for _, x := range all {
		added, removed = cancel(added, removed, x.removed)
		removed, added = cancel(removed, added, x.added)
	}
	return added, removed
}

// cancel takes lines out of one list, and appends those that are not in it to another.
func cancel(from, to, lines []string) (rest, others []string) {
	for _, l := range lines {
		if i := slices.Index(from, l); i >= 0 {
			from = slices.Delete(from, i, i+1)
		} else {
			to = append(to, l)
		}
	}
	return from, to
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
		if text.HasAnyPrefix(code, commentSigns...) {
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

package summary

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// modelWishes is the title of the section Wishes in an answer that does not say which messages it
// rests on.
const modelWishes = "Wishes and limits as noted by the model"

// reader checks an answer against the messages that its items name. An item in a section of the
// user must rest on a message of the user. Nothing here depends on a language.
type reader struct {
	sources  *sourceIndex
	sections []Section
	// bare reports that the numbers of messages stand in brackets without a letter.
	bare bool
	// numbered reports that the answer says which messages it rests on.
	numbered bool
	// dropped counts the parts of items that were left out, unquoted the quotations that lost
	// their marks.
	dropped, unquoted int
}

func newReader(sources *sourceIndex, sections []Section, answer string) *reader {
	r := &reader{sources: sources, sections: sections}
	known := func(bare bool) bool {
		return slices.ContainsFunc(tagsIn(answer, bare), func(t tag) bool { return len(t.seqs(sources.authors)) > 0 })
	}
	r.numbered = known(false)
	if !r.numbered && known(true) {
		r.bare, r.numbered = true, true
	}
	return r
}

// compose returns the answer with its sections in order, under their titles.
func (r *reader) compose(answer string, hs []heading) string {
	bodies := make([]string, len(r.sections))
	add := func(section int, body string) {
		if body = withoutDivider(body); strings.TrimSpace(body) != "" {
			bodies[section] += body + "\n"
		}
	}
	at := -1
	for _, h := range hs {
		if h.section >= 0 {
			at = h.section
		} else if at >= 0 && r.sections[at].Title == ActiveTask {
			at++ // the request takes the place of the active task
		}
		switch body := answer[h.body:h.end]; {
		case at < 0: // before the first section
			add(r.firstNote(), r.notes(plainHeading(h)+body))
		case r.sections[at].Users && r.numbered:
			if items := r.usersItems(body, r.seqsOf(h.tag)); items != "" {
				add(at, items+r.link(h.tag))
			}
		case h.section >= 0:
			add(at, r.notes(strings.TrimRight(body, "\n")+"\n"+h.tag))
		default:
			add(at, r.notes(plainHeading(h)+body))
		}
	}
	var parts []string
	for i, s := range r.sections {
		title := s.Title
		if title == Wishes && !r.numbered {
			title = modelWishes
		}
		if body := strings.TrimRight(bodies[i], "\n"); !isNothing(body) {
			parts = append(parts, "## "+title+"\n"+body)
		}
	}
	return strings.Join(parts, "\n\n")
}

// withoutDivider returns the body of a section without the line that divides it from the next one.
func withoutDivider(body string) string {
	body = strings.Trim(body, "\n")
	last := body[strings.LastIndexByte(body, '\n')+1:]
	if len(last) >= 3 && strings.Trim(last, "-*_ ") == "" {
		body = strings.TrimRight(strings.TrimSuffix(body, last), "\n")
	}
	return body
}

// firstNote returns the index of the first section that is not the user's.
func (r *reader) firstNote() int {
	return slices.IndexFunc(r.sections, func(s Section) bool { return !s.Users })
}

// plainHeading returns a heading within a section as a bold line.
func plainHeading(h heading) string {
	if h.title == "" {
		return ""
	}
	return "**" + h.title + "**" + h.tag + "\n"
}

// isNothing reports whether a section says that there is nothing to say.
func isNothing(body string) bool {
	words := wordsOf(body)
	return words == "" || words == "none" || words == "n a"
}

// notes returns a text with the links that are known, their authors, and without quotation marks
// around words that occur in no message.
func (r *reader) notes(text string) string {
	return r.unquote(r.link(text), &r.sources.all)
}

// link replaces the tags of a text by those of known messages, with their authors.
func (r *reader) link(text string) string {
	return replaceTags(text, r.bare, func(t *tag) string {
		known := t.seqs(r.sources.authors)
		if open := text[t.start]; len(known) == 0 && (r.bare || open == '(') {
			return text[t.start:t.end] // it may be no reference
		}
		return formatTag(known, r.sources.authors)
	})
}

// seqsOf returns the known messages that the tags of a text name.
func (r *reader) seqsOf(text string) (out []chat.Seq) {
	for _, t := range tagsIn(text, r.bare) {
		out = append(out, t.seqs(r.sources.authors)...)
	}
	return out
}

// restsOnUser reports whether one of some messages is the user's.
func (r *reader) restsOnUser(seqs []chat.Seq) bool {
	return slices.ContainsFunc(seqs, func(n chat.Seq) bool { return r.sources.authors[n] == chat.RoleUser })
}

// unquote removes the quotation marks around words that do not occur in some texts.
func (r *reader) unquote(text string, in *phraseSet) string {
	code := codeIn(text)
	var b strings.Builder
	at := 0
	for line := range strings.Lines(text) {
		done := 0
		for _, q := range quotations(line) {
			unknown := slices.ContainsFunc(quotedPhrases(line[q.from:q.to]), func(words string) bool { return !in.has(words) })
			if unknown && !code.has(at+q.start) && !code.has(at+q.to) {
				b.WriteString(line[done:q.start] + line[q.from:q.to])
				done = q.end
				r.unquoted++
			}
		}
		b.WriteString(line[done:])
		at += len(line)
	}
	return b.String()
}

// item is an item of a section of the user: a line with the mark of a list, a row of a table, or a
// paragraph, with the code after it.
type item struct {
	indent     int
	mark, text string
	seqs       []chat.Seq // that it rests on
	parent     int        // index of the item that it is indented under, -1 for none
	keep       bool
}

// usersItems returns the items of a section that rest on a message of the user. An item that names
// none rests on those of the items under it, of the one above it, or of the heading: inherited.
func (r *reader) usersItems(body string, inherited []chat.Seq) string {
	items := splitItems(body)
	for i := range slices.Backward(items) {
		x := &items[i]
		if own := r.seqsOf(x.text); own != nil {
			x.seqs = own
		}
		if x.parent >= 0 {
			items[x.parent].seqs = append(items[x.parent].seqs, x.seqs...)
		}
	}
	var b strings.Builder
	for i := range items {
		x, from := &items[i], inherited
		if x.parent >= 0 && items[x.parent].seqs != nil {
			from = items[x.parent].seqs
		}
		above := x.seqs == nil
		if above {
			x.seqs = from
		}
		if x.keep = r.keepItem(x, from); !x.keep {
			continue
		}
		orphaned := x.parent >= 0 && !items[x.parent].keep
		if orphaned || x.parent < 0 { // a line that goes on may be indented less than its first
			x.indent = 0
		}
		if first, _, _ := strings.Cut(x.text, "\n"); fenceAfter("", first) != "" { // it begins a line
			x.mark = ""
		}
		if (orphaned || !above) && r.seqsOf(x.text) == nil { // nothing above it names them
			x.text += " " + formatTag(x.seqs, nil)
		}
		b.WriteString(strings.Repeat(" ", x.indent) + x.mark + r.link(x.text) + "\n")
	}
	return r.unquote(b.String(), &r.sources.users)
}

// keepItem reports whether something of an item rests on a message of the user, and removes the
// rest of its text, and of the messages that it rests on.
func (r *reader) keepItem(x *item, from []chat.Seq) bool {
	parts, rest := []string{x.text}, x.seqs
	var kept []chat.Seq
	if !strings.HasPrefix(x.text, "|") && len(r.seqsOf(x.text)) > 0 {
		parts = r.split(x.text)
		rest = from // for a part that names no message
	}
	x.text = ""
	for _, part := range parts {
		seqs := r.seqsOf(part)
		if seqs == nil {
			seqs = rest
		}
		if r.restsOnUser(seqs) && r.knows(part) {
			x.text += part
			kept = append(kept, seqs...)
		} else if wordsOf(part) != "" {
			r.dropped++
		}
	}
	x.text, x.seqs = strings.Trim(x.text, " \t\n;；,，"), kept
	return wordsOf(withoutTags(x.text)) != ""
}

// knows reports whether all identifiers of a text occur in the messages.
func (r *reader) knows(text string) bool {
	for w := range Identifiers(replaceTags(text, r.bare, func(*tag) string { return "" })) {
		if !r.sources.all.has(wordsOf(w)) {
			return false
		}
	}
	return true
}

// sentenceEnds are the signs at the end of a sentence or a clause.
const sentenceEnds = ".;!?。；！？"

// split splits the text of an item after its tags, or before them if it begins with one: each part
// rests on the messages of its own. The rest belongs to the last tag unless a sentence ended.
func (r *reader) split(text string) (parts []string) {
	tags := tagsIn(text, r.bare)
	leading := strings.TrimSpace(text[:tags[0].start]) == ""
	done := 0
	for i, t := range tags {
		at := t.start
		if !leading {
			at = t.end
			if i+1 < len(tags) && strings.Trim(text[t.end:tags[i+1].start], " \t,") == "" {
				continue // the next one belongs to the same part
			}
			at += len(text[at:]) - len(strings.TrimLeft(text[at:], sentenceEnds+",)"))
			before := strings.TrimRight(text[done:t.start], " \t\n")
			ends := at > t.end || strings.HasPrefix(text[at:], "\n") || before != strings.TrimRight(before, sentenceEnds)
			if i+1 == len(tags) && !ends {
				break
			}
		} else if i > 0 && strings.Trim(text[tags[i-1].end:at], " \t,") == "" {
			continue
		}
		parts = append(parts, text[done:at])
		done = at
	}
	return append(parts, text[done:])
}

// splitItems splits the body of a section into items.
func splitItems(body string) (out []item) {
	fence, open := "", false // open: the last item may go on
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, " \t\r\n")
		was := fence
		fence = fenceAfter(fence, line)
		bare := strings.TrimLeft(line, " \t")
		if was == "" && fence == "" && (bare == "" || strings.Trim(bare, "-*_|: ") == "") {
			open = false
			continue
		}
		x := item{indent: len(line) - len(bare), parent: -1}
		if was == "" && fence == "" {
			x.mark = listMark(bare)
		}
		x.text = bare[len(x.mark):]
		row := strings.HasPrefix(bare, "|")
		goesOn := open && !row && x.mark == "" && x.indent >= out[len(out)-1].indent
		if len(out) > 0 && (goesOn || was+fence != "" || wordsOf(withoutTags(bare)) == "") {
			out[len(out)-1].text += "\n" + line
			continue
		}
		for k := range slices.Backward(out) {
			if out[k].indent < x.indent {
				x.parent = k
				break
			}
		}
		open = !row
		out = append(out, x)
	}
	return out
}

// listMark returns the mark of a list that a line begins with, with the blank after it.
func listMark(line string) string {
	n := len(line) - len(strings.TrimLeft(line, "0123456789"))
	switch {
	case n > 0 && n < 4 && n < len(line) && strings.IndexByte(".)", line[n]) >= 0:
		n++
	case n == 0 && strings.IndexByte("-*+>", line[0]) >= 0:
		n = 1
	case strings.HasPrefix(line, "•"):
		n = len("•")
	default:
		return ""
	}
	blanks := len(line[n:]) - len(strings.TrimLeft(line[n:], " \t"))
	if blanks == 0 {
		return ""
	}
	return line[:n+blanks]
}

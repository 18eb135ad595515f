package summary

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Link names the messages that a line of a summary rests on.
type Link struct {
	// Line is the index of the line, from 0.
	Line int `json:"line"`
	// Seqs are the messages, in the order in which the line names them.
	Seqs []chat.Seq `json:"seqs"`
}

// Links returns the links of a stored summary to messages of its session, by line. A summary
// without a model has none, and neither has one whose messages had no seqs.
func Links(summary string) []Link {
	var out []Link
	n := -1
	for line := range strings.Lines(summary) {
		n++
		var seqs []chat.Seq
		for _, t := range tagsIn(line, false) {
			for _, p := range t.parts {
				if p.role != "" { // stored links have the author
					seqs = append(seqs, p.from)
				}
			}
		}
		if seqs != nil {
			out = append(out, Link{n, seqs})
		}
	}
	return out
}

// tag is a reference to messages in a text: [m12, m40-m42], (m12), 【m12】, and in stored texts
// [m12 user, m40 tool].
type tag struct {
	start, end int
	parts      []tagPart
}

// tagPart is a message, or a range of them, with its author as written, "" for none.
type tagPart struct {
	from, to chat.Seq
	role     chat.Role
}

var (
	tagPattern = regexp.MustCompile(`[\[(【（][\s]*(?:(?:(?:m|[mM]sg\.? |[mM]essages? )?\d{1,9}(?: (?:user|assistant|tool))?[\s,;，；、…–—-]*)+)[\])】）]`)
	tagNumber  = regexp.MustCompile(`(m|msg\.? |messages? )?(\d{1,9})(?: (user|assistant|tool))?(?:\s*[–—…-]\s*m?(\d{1,9}))?`)
)

// tagsIn returns the tags of a text outside of code. Numbers without a letter count only if bare
// says so, in square brackets.
func tagsIn(s string, bare bool) []tag {
	found := tagPattern.FindAllStringIndex(s, -1)
	if found == nil {
		return nil
	}
	var out []tag
	code := codeIn(s)
	for _, f := range found {
		if code.has(f[0]) || bare && f[0] > 0 && isAlnum(s[f[0]-1]) { // an index
			continue
		}
		t := tag{start: f[0], end: f[1]}
		explicit := bare && s[f[0]] != '('
		for _, m := range tagNumber.FindAllStringSubmatch(strings.ToLower(s[f[0]:f[1]]), -1) {
			explicit = explicit || m[1] != ""
			from, _ := strconv.ParseInt(m[2], 10, 64) // up to nine digits
			p := tagPart{chat.Seq(from), chat.Seq(from), chat.Role(m[3])}
			if to, err := strconv.ParseInt(m[4], 10, 64); err == nil && to > from {
				p.to = chat.Seq(to)
			}
			t.parts = append(t.parts, p)
		}
		if explicit {
			out = append(out, t)
		}
	}
	return out
}

// maxLinks is how many messages an item names at most.
const maxLinks = 8

// seqs returns the messages of a tag that are known, in order.
func (t *tag) seqs(authors map[chat.Seq]chat.Role) []chat.Seq {
	var out []chat.Seq
	for _, p := range t.parts {
		for n := p.from; n <= p.to && len(out) < maxLinks; n++ {
			if authors[n] != "" && !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// replaceTags returns a text with each tag replaced, without the blanks before it if there is
// nothing left of it.
func replaceTags(s string, bare bool, replace func(*tag) string) string {
	tags := tagsIn(s, bare)
	if tags == nil {
		return s
	}
	var b strings.Builder
	done := 0
	for i := range tags {
		by, before := replace(&tags[i]), s[done:tags[i].start]
		if by == "" {
			before = strings.TrimRight(before, " \t")
		}
		b.WriteString(before + by)
		done = tags[i].end
	}
	return b.String() + s[done:]
}

// formatTag returns a tag with the authors of its messages.
func formatTag(seqs []chat.Seq, authors map[chat.Seq]chat.Role) string {
	if len(seqs) == 0 {
		return ""
	}
	names := make([]string, len(seqs))
	for i, n := range seqs {
		names[i] = strings.TrimSuffix("m"+strconv.FormatInt(int64(n), 10)+" "+string(authors[n]), " ")
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// withoutAuthors returns a stored text with the tags as a model writes them.
func withoutAuthors(s string) string {
	return replaceTags(s, false, func(t *tag) string {
		var seqs []chat.Seq
		for _, p := range t.parts {
			seqs = append(seqs, p.from)
		}
		return formatTag(seqs, nil)
	})
}

// withoutTags returns a text without its tags.
func withoutTags(s string) string {
	return replaceTags(s, false, func(*tag) string { return "" })
}

// cutTags splits a line into the text and the tags at its end.
func cutTags(line string) (before, tags string) {
	all := tagsIn(line, true)
	end := len(line)
	for _, t := range slices.Backward(all) {
		if strings.Trim(line[t.end:end], " \t,;:：*") != "" {
			break
		}
		end = t.start
	}
	if end == 0 {
		return line, ""
	}
	return line[:end], line[end:]
}

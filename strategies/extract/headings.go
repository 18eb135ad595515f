package extract

import (
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
)

// maxHeading is the size of a heading that stands before the line below it.
const maxHeading = 60

// belowMark begins a line of headed that belongs to the nearest one before it without the mark.
const belowMark = "\t"

// headed returns lines with a short heading before the line below it, not on a line of its own, and with belowMark
// before each entry of a list with a heading or a line with a colon above it, and before the rows of a table but the first.
func headed(lines []prose.Line) []string {
	var out []string
	heading, listing, indent := "", false, 0 // of the list's heading, if that is an entry itself
	level, bold := 0, false                  // of the heading
	label, labelled := "", 0                 // the heading of lists within an entry, and their indent
	for i, l := range lines {
		if l.Indent < labelled {
			label, labelled = "", 0
		}
		leadsCode := l.Code && strings.HasSuffix(l.Text, ":") && !l.Listed && !l.Bold && l.Level == 0
		if leadsCode {
			if said := prose.Sentences(l.Text); len(said) > 1 {
				l.Text, leadsCode = strings.Join(said[:len(said)-1], " "), false
			}
		}
		opens := strings.HasSuffix(l.Text, ":")
		listed := func(i int) bool { return i < len(lines) && (lines[i].Listed || lines[i].Row) }
		opens = opens || l.Listed && listed(i+1) && lines[i+1].Indent > l.Indent || l.Bold && !l.Listed && listed(i+1) // a list of its own
		nested := l.Listed && listed(i+1) && listed(i+2) && lines[i+1].Indent > l.Indent && lines[i+2].Indent > lines[i+1].Indent
		if bold && l.Bold && opens { // nothing stands below the heading, or code alone
			heading = ""
		}
		switch {
		case leadsCode && heading == "": // and nothing else
			out, listing = append(out, l.Text), false
		case strings.HasSuffix(l.Text, ":") && len(l.Text) <= maxHeading && !intending().MatchString(l.Text) && (!listed(i+1) || !listed(i+2) || lines[i+1].Row || nested):
			if heading, level, bold = l.Text+" ", l.Level, l.Bold; nested {
				label, labelled = heading, lines[i+1].Indent
			}
			continue
		case label != "" && heading == "" && opens && l.Indent == labelled:
			out, listing = append(out, prose.Truncate(label+opening().ReplaceAllString(l.Text, ""), maxLine)), true
		case heading != "" && l.Level > 0 && (level == 0 || l.Level <= level): // nothing stands below the line before
			if level == 0 {
				out = append(out, strings.TrimSpace(heading))
			}
			out, listing = append(out, l.Text), opens
		case heading != "":
			out, listing = append(out, prose.Truncate(heading+opening().ReplaceAllString(l.Text, ""), maxLine)), opens || l.Row
		case listing && listed(i) && !opens && l.Indent >= indent && (!l.Row || !lines[i-1].Listed): // a table stands by itself behind a list
			out = append(out, belowMark+l.Text)
		default:
			out, listing, indent = append(out, l.Text), opens || l.Row, 0
			if l.Listed {
				indent = l.Indent + 1
			}
		}
		heading, bold = "", false
	}
	return withShortLists(out)
}

// withShortLists puts the entries of lists of words on the line that they belong to.
func withShortLists(lines []string) []string {
	var out []string
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && strings.HasPrefix(lines[end], belowMark) {
			end++
		}
		group := lines[i:end]
		ended := strings.HasSuffix(group[0], ".") || strings.HasSuffix(group[0], "!") || strings.HasSuffix(group[0], "?")
		line := strings.TrimSuffix(group[0], ":") + ": " + strings.ReplaceAll(strings.Join(group[1:], "; "), belowMark, "")
		if len(group) > 1 && !ended && len(line) <= maxLine && !prose.IsRow(line) && !slices.ContainsFunc(group[1:], func(l string) bool { return len(l) > minSaid }) {
			group = []string{line}
		}
		out = append(out, group...)
		i = end
	}
	return out
}

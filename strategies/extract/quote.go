package extract

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// minQuote is the minimum number of characters for the beginning of a quoted line.
const minQuote = 24

var (
	// tellingHeading is a heading that says something without the text below it.
	tellingHeading = text.Pattern(`^#{1,6} +(?:\d+[.)]? +\S|\S+(?: +\S+){3})`)
	// listEntry begins an entry of a numbered list.
	listEntry = text.Pattern(`^\d{1,2}[.)] +\S`)
)

// quote returns the request in at most n characters, each line as a quotation. Of one that is cut, it
// is what outline takes, with an ellipsis where lines are left out.
func (r request) quote(n int) string {
	lines := slices.DeleteFunc(append(prose.IndentedLines(r.head), prose.IndentedLines(r.tail)...), func(l string) bool { return saysNothing().MatchString(l) })
	total := 0
	for _, l := range lines {
		total += quotedSize(l)
	}
	taken, room := make([]bool, len(lines)), 0
	if total > n && total > 0 {
		taken, room = outline(lines, n)
	}
	var b strings.Builder
	for i, l := range lines {
		if total > n && !taken[i] {
			head := prose.TruncateHead(l, room-quotedSize(prose.Ellipsis))
			if room < minQuote || head == "" {
				continue
			}
			l, room = head+prose.Ellipsis, 0
		} else if total > n && i+1 < len(lines) && !taken[i+1] && room < minQuote {
			l += prose.Ellipsis
		}
		b.WriteString(quoteMark + l + "\n")
	}
	return b.String()
}

// oneLine returns a quotation as one line.
func (it *item) oneLine() string {
	return prose.OneLine(strings.ReplaceAll(it.text, "\n"+quoteMark, " "))
}

// quoted returns the size of the whole request as a quotation, in characters.
func (r request) quoted() int { return utf8.RuneCountInString(r.quote(math.MaxInt)) }

// quotedSize returns the size of a line as a quotation, in characters.
func quotedSize(line string) int { return utf8.RuneCountInString(line) + len(quoteMark) + 1 }

// isPlan reports whether a text is divided by headings.
func isPlan(lines []string) bool {
	return count(lines, tellingHeading().MatchString) >= minHeadings
}

// outline reports which lines of a request that is cut are quoted, and returns the room that is left of n
// characters: the beginning, the last line if that is short, the headings and the numbered lines, and
// those that follow the beginning.
func outline(lines []string, n int) (taken []bool, room int) {
	taken, room = make([]bool, len(lines)), n
	take := func(i, most int) bool {
		size := quotedSize(lines[i]) + len(prose.Ellipsis)
		if !taken[i] && size <= min(most, room) {
			taken[i] = true
			room -= size
		}
		return taken[i]
	}
	last, plan := len(lines)-1, isPlan(lines)
	if last > 0 && !plan { // a plan does not end with what it is about
		take(last, n/3)
	}
	for i := 0; i < last && room > n/3; i++ {
		most := room
		if plan { // its steps need the rest
			most -= n / 3
		}
		if !take(i, most) {
			break
		}
	}
	kept := 0 // for the beginning of the first line
	if !taken[0] {
		kept = n / 3
	}
	patterns := []func() *text.Regexp{tellingHeading, listEntry}
	if first := slices.IndexFunc(lines, listEntry().MatchString); !plan && first >= 0 && !beginsList(lines[first]) { // the rest of a list says little
		patterns = patterns[:1]
	}
	for _, pattern := range patterns {
		size := 0
		for i, l := range lines {
			if !taken[i] && pattern().MatchString(l) {
				size += quotedSize(l) + len(prose.Ellipsis)
			}
		}
		for i, l := range lines {
			if pattern().MatchString(l) && (plan || size <= room-kept) { // a few of many rules say little
				take(i, room-kept)
			}
		}
	}
	for i := range lines {
		if !take(i, room) {
			break
		}
	}
	return taken, room
}

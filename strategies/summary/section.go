package summary

import "strings"

// Section is a part of a summary that the model is asked for, under a heading.
type Section struct {
	Title string
	// Ask describes the content for the model.
	Ask string
	// Users marks a section for the words of the user: its items must rest on messages of the user.
	Users bool
}

// Titles of the sections of the user.
const (
	ActiveTask = "Active task"
	Wishes     = "The user's wishes and limits"
)

// DefaultSections returns the sections of handoff notes, in order. The caller owns the slice.
func DefaultSections() []Section {
	sections := []Section{
		{Title: ActiveTask, Users: true},
		{Title: Wishes, Users: true},
		{Title: "Done and decided"},
		{Title: "State"},
		{Title: "Problems and open questions"},
		{Title: "Next"},
		{Title: "Values needed"},
	}
	for i := range sections {
		sections[i].Ask = wording["ask "+sections[i].Title]
	}
	return sections
}

// heading is a heading of a text.
type heading struct {
	title string // without marks, number and links
	tag   string // the links behind the title, as written
	// style is the number of # in front of it, boldStyle or plainStyle.
	style int
	// number is the number in front of the title, 0 for none.
	number int
	// section is the index of the section that it begins, -1 for none.
	section int
	// start is the index where its line begins, body where the line ends, and end where the
	// next heading begins.
	start, body, end int
}

const boldStyle, plainStyle = 7, 8

// headingsOf returns the headings of a text outside of fenced code: lines that begin with #,
// bold lines, and lines that consist of a title of the sections.
func headingsOf(text string, sections []Section) []heading {
	var out []heading
	fence := ""
	at := 0
	for line := range strings.Lines(text) {
		end := at + len(line)
		if fence = fenceAfter(fence, line); fence == "" {
			if h, ok := parseHeading(line, sections); ok {
				h.start, h.body, h.end = at, end, len(text)
				if n := len(out); n > 0 {
					out[n-1].end = at
				}
				out = append(out, h)
			}
		}
		at = end
	}
	return out
}

// maxHeading is the maximum length of a heading in bytes.
const maxHeading = 160

// parseHeading parses a line as a heading: "## 3. Title", "**Title:** [m3]", "3. Title".
func parseHeading(line string, sections []Section) (heading, bool) {
	line = strings.TrimSpace(line)
	if line == "" || len(line) > maxHeading {
		return heading{}, false
	}
	bare := strings.TrimLeft(line, "#")
	h := heading{section: -1, style: len(line) - len(bare)}
	title, tag := cutTags(bare)
	h.tag = tag
	h.number, h.title = plainTitle(title)
	switch {
	case h.style > 0:
		return h, h.style <= 6 && (bare == "" || bare[0] == ' ' || bare[0] == '\t')
	case isBold(strings.TrimSpace(title)):
		h.style = boldStyle
		return h, true
	}
	h.style = plainStyle
	for i := range sections {
		if strings.IndexByte("->|", line[0]) < 0 && sameTitle(sections[i].Title, h.title) {
			return h, true
		}
	}
	return h, false
}

// isBold reports whether a line is bold from end to end, perhaps with a number before and a
// colon after it.
func isBold(line string) bool {
	line = strings.TrimLeft(line, "0123456789.) ")
	line = strings.TrimRight(line, ":： ")
	inner, ok := strings.CutPrefix(line, "**")
	inner, closed := strings.CutSuffix(inner, "**")
	return ok && closed && inner != "" && !strings.Contains(inner, "**")
}

// plainTitle returns a heading without its number, emphasis and colon, and the number.
func plainTitle(s string) (number int, title string) {
	s = strings.Trim(s, " \t#*_")
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if digits > 0 && digits < 3 && digits < len(s) && strings.IndexByte(".) :", s[digits]) >= 0 {
		for _, c := range s[:digits] {
			number = 10*number + int(c-'0')
		}
		s = s[digits+1:]
	}
	return number, strings.Trim(s, " \t#*_.:：")
}

// sameTitle reports whether two titles have the same letters and digits, in any case.
func sameTitle(a, b string) bool { return wordsOf(a) == wordsOf(b) }

// assignSections sets the sections that headings begin and returns how many sections have one.
// A heading begins a section by its title or a part of it, by its number if the numbers of its style
// ascend or if others of its style have titles, or by its order if there are as many headings of its
// style as sections.
func assignSections(hs []heading, sections []Section) int {
	styles, titled := map[int][]int{}, map[int]bool{}
	for i := range hs {
		h := &hs[i]
		for k := range sections {
			if h.section < 0 && (isTitle(h.title, sections[k].Title) || sections[k].Title == Wishes && sameTitle(h.title, modelWishes)) {
				h.section, titled[h.style] = k, true
			}
		}
		styles[h.style] = append(styles[h.style], i)
	}
	known := countSections(hs)
	for style := 1; style <= plainStyle; style++ {
		of := styles[style]
		byNumber := known > 1 && titled[style] || known < 2 && ascending(hs, of, len(sections))
		for k, i := range of {
			switch h := &hs[i]; {
			case h.section >= 0 && known > 1:
			case byNumber && h.number > 0 && h.number <= len(sections):
				h.section = h.number - 1
			case known < 2 && len(of) == len(sections):
				h.section = k
			}
		}
	}
	return countSections(hs)
}

// isTitle reports whether a heading has the words of a title, perhaps among others, or some of them.
func isTitle(heading, title string) bool {
	a, b := " "+wordsOf(heading)+" ", " "+wordsOf(title)+" "
	return a != "  " && (strings.Contains(a, b) || strings.Contains(b, a))
}

// ascending reports whether headings have ascending numbers of up to n, at least three.
func ascending(hs []heading, of []int, n int) bool {
	last := 0
	for _, i := range of {
		if hs[i].number <= last || hs[i].number > n {
			return false
		}
		last = hs[i].number
	}
	return len(of) >= 3
}

func countSections(hs []heading) int {
	seen := map[int]bool{}
	for i := range hs {
		if hs[i].section >= 0 {
			seen[hs[i].section] = true
		}
	}
	return len(seen)
}

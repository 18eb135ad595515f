package summary

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// scratchpad is the tag that the prompt offers for thoughts.
const scratchpad = "scratchpad"

var (
	// thoughtTags matches the tags that models put around their reasoning.
	thoughtTags = text.Pattern(`(?i)(?:<|&lt;)\s{0,3}(/?)\s{0,3}(scratch[ _-]?pad|think|thinking|thoughts?|reasoning|reflection|analysis)(?:\s[^<>\n]{0,80})?(?:>|&gt;)` +
		`|\[\s{0,3}(/?)\s{0,3}(scratch[ _-]?pad|think|thinking|thoughts?)\s{0,3}\]`)
	// withinNotes matches those that are thoughts behind the first line, too; others are if
	// they are alone on their lines.
	withinNotes = text.Pattern(`^(?:` + scratchpad + `|think|thinking)$`)
	// lineStart matches what may precede a tag on its line: marks of lists, quotations and
	// headings, and emphasis.
	lineStart = text.Pattern("^[ \t>#+-]*(?:\\d{1,3}[.)][ \t]*)?[ \t*_`~+-]*$")
	// thoughtSections matches a first or a last section of thoughts.
	thoughtSections = text.Pattern(`(?i)\A(?:` + titleMark + `)?` + thoughtSection + `|\n` + titleMark + thoughtSection + `\z`)
	anyTitle        = text.Pattern(`(?m)^ {0,3}(?:#{1,6} |\*\*[^*\n]+\*\*:?[ \t]*$)`)
)

// thoughtSection matches a section of thoughts up to the next heading, without the mark of its own.
const (
	titleMark      = `(?:#{1,6}[ \t]+|\*\*)[* \t]*`
	thoughtSection = `scratch[ _-]?pad[:* \t]*\n(?:(?:[^#*\n]|\*[^*\n])[^\n]*|\n)*`
)

// thoughtTag is a tag in a text.
type thoughtTag struct {
	start, end int
	name       string
	closes     bool
}

// thoughtTagsIn returns the tags in a text, whatever letters and brackets they are written in.
func thoughtTagsIn(s string) (tags []thoughtTag) {
	folded, at := text.Fold(s)
	index := func(i int) int {
		if at == nil {
			return i
		}
		return at[i]
	}
	for _, t := range thoughtTags().FindAllStringSubmatchIndex(folded, -1) {
		slash, name := t[2:4], t[4:6]
		if t[2] < 0 {
			slash, name = t[6:8], t[8:10]
			if strings.HasPrefix(folded[t[1]:], "(") { // a link
				continue
			}
		}
		tag := strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(folded[name[0]:name[1]]))
		tags = append(tags, thoughtTag{index(t[0]), index(t[1]), strings.TrimSuffix(tag, "s"), slash[0] < slash[1]})
	}
	return tags
}

// maxThoughts is how many blocks of reasoning are removed from an answer.
const maxThoughts = 64

// withoutThoughts removes the blocks of reasoning that begin an answer, or a line of it
// outside of code, and the text before a lone closing tag, which some templates leave.
// thinking reports a block without an end.
func withoutThoughts(s string) (answer string, thinking bool) {
	for range maxThoughts {
		s = text.Trim(s)
		start, end := nextThought(s)
		switch {
		case start < 0:
			return text.Trim(thoughtSections().ReplaceAllString(withoutLoneThought(s), "")), false
		case end < 0:
			return "", true
		}
		s = s[:start] + s[end:]
	}
	return "", true
}

// nextThought returns where the first block of reasoning begins, -1 without one, and where it
// ends, -1 without an end.
func nextThought(s string) (start, end int) {
	tags := thoughtTagsIn(s)
	if tags == nil {
		return -1, -1
	}
	code := codeIn(s)
	notes := 0 // where they begin
	if title := firstOutside(code, anyTitle().FindAllStringIndex(s, -1)); title != nil {
		notes = title[0]
	}
	ends := closingTags(tags)
	for i, t := range tags {
		if t.closes {
			continue
		}
		line := strings.LastIndexByte(s[:t.start], '\n') + 1
		begins := lineStart().MatchString(s[line:t.start])
		first := begins && (line == 0 || strings.IndexByte(s, '\n') == line-1 && fenceAfter("", s[:line]) != "")
		alone := begins && aloneBehind(s, t.end) >= 0
		end = ends[i]
		closed, within := end >= 0, withinNotes().MatchString(t.name)
		switch opener, closer, fenced := fenceAround(s, line, end); {
		case fenced && begins && (first || opener <= notes || t.name == scratchpad && text.Trim(s[closer:]) == ""):
			return opener, closer
		case first && (closed || !code.has(t.start)):
		case !closed && within && alone && t.start < notes:
		case code.has(t.start):
			continue
		case closed && (t.start < notes || begins && within || alone && aloneBehind(s, end) >= 0):
		case !closed && within && (alone || t.name == scratchpad && line == t.start):
		default:
			continue
		}
		if !closed {
			return t.start, -1
		}
		if behind := aloneBehind(s, end); begins && behind >= 0 { // the marks around it, too
			return line, behind
		}
		return t.start, end
	}
	return -1, -1
}

// firstOutside returns the first of some ranges that is not in code, nil without one.
func firstOutside(code codeRanges, ranges [][]int) []int {
	for _, r := range ranges {
		if !code.has(r[0]) {
			return r
		}
	}
	return nil
}

// aloneBehind returns the end of the line of index i, -1 if it holds more than emphasis there.
func aloneBehind(s string, i int) int {
	if i < 0 {
		return -1
	}
	n := strings.IndexByte(s[i:], '\n')
	if n < 0 {
		n = len(s) - i
	}
	if strings.Trim(s[i:i+n], " \t\r*_`~") != "" {
		return -1
	}
	return i + n
}

// fenceAround returns where a fence begins and ends that holds nothing but the lines from line to
// the one of index end.
func fenceAround(s string, line, end int) (opener, closer int, ok bool) {
	behind := aloneBehind(s, end)
	if line == 0 || behind < 0 || behind == len(s) {
		return 0, 0, false
	}
	opener = strings.LastIndexByte(s[:line-1], '\n') + 1
	fence := fenceAfter("", s[opener:line])
	closer = len(s)
	if n := strings.IndexByte(s[behind+1:], '\n'); n >= 0 {
		closer = behind + 1 + n
	}
	return opener, closer, fence != "" && fenceAfter(fence, s[behind+1:closer]) == ""
}

// closingTags returns for each tag that opens a block where it ends: behind its closing tag or,
// if not all are closed, behind the last one; -1 without one.
func closingTags(tags []thoughtTag) []int {
	ends := make([]int, len(tags))
	open, last := map[string][]int{}, map[string]int{}
	for i, t := range tags {
		of := open[t.name]
		switch {
		case !t.closes:
			open[t.name] = append(of, i)
			continue
		case len(of) > 0:
			ends[of[len(of)-1]] = t.end
			open[t.name] = of[:len(of)-1]
		}
		last[t.name] = t.end
	}
	for name, of := range open {
		for _, i := range of {
			if ends[i] = last[name]; ends[i] < tags[i].end {
				ends[i] = -1
			}
		}
	}
	return ends
}

// withoutLoneThought removes the text before a closing tag of reasoning without an opening
// one that is alone on its line or at the end of one.
func withoutLoneThought(s string) string {
	from, opened, code := 0, map[string]bool{}, codeIn(s)
	for _, t := range thoughtTagsIn(s) {
		switch behind := aloneBehind(s, t.end); {
		case !t.closes:
			opened[t.name] = true
		case !opened[t.name] && withinNotes().MatchString(t.name) && behind >= 0 && !code.has(t.start):
			from = behind
		}
	}
	return text.Trim(s[from:])
}

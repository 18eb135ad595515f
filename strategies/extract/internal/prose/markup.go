package prose

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// Line is a line of prose without its markup. Listed reports that it was an entry of a list, Row one of a table, Bold
// that it begins with words in bold type.
type Line struct {
	Text              string
	Listed, Row, Bold bool
	Indent            int  // in bytes
	Level             int  // of a heading, the number of its signs; else 0
	Code              bool // stands below it
}

// Lines returns the lines of s outside of fenced code, without the markup of emphasis,
// headings and lists, truncated to MaxLine characters.
func Lines(s string) []Line {
	var out []Line
	fenced := false
	for _, indented := range IndentedLines(s) {
		line := text.Trim(indented)
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			if fenced = !fenced; fenced && len(out) > 0 {
				out[len(out)-1].Code = true
			}
			continue
		}
		if fenced {
			continue
		}
		heading, listed, row, bold := headingLine().MatchString(line), IsListed(line), strings.HasPrefix(line, "|"), strings.HasPrefix(line, "**")
		level := 0
		if heading {
			level = len(line) - len(strings.TrimLeft(line, "#"))
		}
		line = strings.ReplaceAll(line, "**", "")
		if line = strings.TrimRight(Unmarked(line), "| \t"); heading && line != "" && strings.IndexByte(".:!?", line[len(line)-1]) < 0 {
			line += ":"
		}
		if !strings.ContainsFunc(line, IsLetterOrDigit) {
			continue
		}
		out = append(out, Line{
			Text: Truncate(OneLine(line), MaxLine), Listed: listed, Row: row, Bold: bold, Level: level,
			Indent: strings.Index(indented, text.Head(text.Trim(indented), 1)),
		})
	}
	return out
}

// headingLine is a heading of Markdown, or a line that is bold as a whole.
var headingLine = text.Pattern(`^(?:#{1,6} +\S|\*\*[^*]+\*\*$)`)

// IsRow reports whether a line of Lines is divided like a row of a table, as some lines of code are.
func IsRow(line string) bool { return strings.Contains(line, " | ") }

// IsListed reports whether a line is an entry of a list.
func IsListed(l string) bool {
	if strings.HasPrefix(l, "* ") {
		return true
	}
	l = strings.TrimLeft(l, "*")
	mark := l[:min(len(l), 1)] // the number or the letter
	if len(l) > 1 && '0' <= l[0] && l[0] <= '9' && '0' <= l[1] && l[1] <= '9' {
		mark = l[:2]
	}
	rest := l[len(mark):]
	return strings.HasPrefix(l, "- ") || strings.HasPrefix(l, "• ") || len(rest) > 1 && IsLetterOrDigit(rune(mark[0])) && (rest[0] == '.' || rest[0] == ')')
}

// Elements divides a text into the elements of markup that begin a line, with their names, and the text between them,
// without one. An element ends at the first tag that closes it, one with a name in outermost at the last.
func Elements(s string, outermost map[string]bool) (names, parts []string) {
	for s != "" {
		m := element().FindStringSubmatchIndex(s)
		if m == nil {
			break
		}
		name := s[m[2]:m[3]]
		find := strings.Index
		if outermost[name] {
			find = strings.LastIndex
		}
		end := find(s[m[1]:], "</"+name+">")
		if end < 0 {
			break
		}
		names, parts = append(names, "", name), append(parts, s[:m[0]], s[m[1]:m[1]+end])
		s = s[m[1]+end+len("</"+name+">"):]
	}
	return append(names, ""), append(parts, s)
}

// element begins an element of markup on a line of its own.
var element = text.Pattern(`(?m)^[ \t]*<([A-Za-z][\w-]*)(?:\s[^<>]*)?>`)

package extract

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/identifier"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// isLineBreak reports whether a line of a summary cannot contain r: a line break of any
// kind, a control character or the replacement of invalid UTF-8.
func isLineBreak(r rune) bool {
	return r == utf8.RuneError || r != '\t' && unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

// splitLines returns the lines of s that are not blank, trimmed. They share memory with s.
func splitLines(s string) []string {
	lines := indentedLines(s)
	for i, l := range lines {
		lines[i] = text.Trim(l)
	}
	return lines
}

// indentedLines returns the lines of s that are not blank, with the blanks before them, which code
// needs. They share memory with s.
func indentedLines(s string) []string {
	parts := strings.FieldsFunc(s, isLineBreak)
	kept := parts[:0]
	for _, p := range parts {
		if p = strings.TrimRightFunc(p, text.IsBlank); p != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

// oneLine returns s with white space and line breaks replaced by single blanks.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || isLineBreak(r) }), " ")
}

// ellipsis marks a truncated text.
const ellipsis = " …"

// truncate returns s, or truncateHead of it with an ellipsis if it has more than n
// characters.
func truncate(s string, n int) string {
	head := truncateHead(s, n)
	if len(head) == len(s) {
		return s
	}
	return head + ellipsis
}

// truncateHead returns the first n characters of s, without a partial word at the end
// unless that is more than half of them.
func truncateHead(s string, n int) string {
	if !text.Longer(s, n) {
		return s
	}
	head := text.Head(s, n)
	if i := strings.LastIndexFunc(head, unicode.IsSpace); i > len(head)/2 {
		head = head[:i]
	}
	return strings.TrimRightFunc(head, unicode.IsSpace)
}

// excerpt returns a copy of s on one line, truncated to n characters.
func excerpt(s string, n int) string { return strings.Clone(truncate(oneLine(s), n)) }

// proseLine is a line of prose; listed reports that it is an entry of a list, row one of a table.
type proseLine struct {
	text        string
	listed, row bool
	indent      int // in bytes
	level       int // of a heading, the number of its signs; else 0
}

// proseLines returns the lines of s outside of fenced code, without the markup of emphasis,
// headings and lists, truncated to maxLine characters.
func proseLines(s string) []proseLine {
	var out []proseLine
	fenced := false
	for _, indented := range indentedLines(s) {
		line := text.Trim(indented)
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		heading, listed, row := headingLine().MatchString(line), isListed(line), strings.HasPrefix(line, "|")
		level := 0
		if heading {
			level = len(line) - len(strings.TrimLeft(line, "#"))
		}
		line = strings.ReplaceAll(line, "**", "")
		if line = strings.TrimRight(unmarked(line), "| \t"); heading && line != "" && strings.IndexByte(".:!?", line[len(line)-1]) < 0 {
			line += ":"
		}
		if !strings.ContainsFunc(line, isLetterOrDigit) {
			continue
		}
		out = append(out, proseLine{truncate(oneLine(line), maxLine), listed, row, strings.Index(indented, text.Head(text.Trim(indented), 1)), level})
	}
	return out
}

// headingLine is a heading of Markdown, or a line that is bold as a whole.
var headingLine = text.Pattern(`^(?:#{1,6} +\S|\*\*[^*]+\*\*$)`)

// maxHeading is the size of a heading that stands before the line below it.
const maxHeading = 60

// isPathLine reports whether a line is the name of a file alone, as above what is written to it.
func isPathLine(l string) bool {
	return !strings.Contains(l, " ") && (identifier.KindOf(l) == identifier.Path || identifier.KindOf(l) == identifier.File)
}

// belowMark begins a line of headed that belongs to the nearest one before it without the mark.
const belowMark = "\t"

// headed returns lines with a short heading before the line below it, not on a line of its own, and with belowMark
// before each entry of a list with a heading or a line with a colon above it, and before the rows of a table but the first.
func headed(lines []proseLine) []string {
	var out []string
	heading, listing, indent := "", false, 0 // of the list's heading, if that is an entry itself
	level := 0                               // of the heading
	for i, l := range lines {
		opens := strings.HasSuffix(l.text, ":")
		listed := func(i int) bool { return i < len(lines) && (lines[i].listed || lines[i].row) }
		opens = opens || l.listed && listed(i+1) && lines[i+1].indent > l.indent // a list of its own
		switch {
		case strings.HasSuffix(l.text, ":") && len(l.text) <= maxHeading && !intending().MatchString(l.text) && (!listed(i+1) || !listed(i+2) || lines[i+1].row):
			heading, level = l.text+" ", l.level
			continue
		case heading != "" && l.level > 0 && (level == 0 || l.level <= level): // nothing stands below the line before
			if level == 0 {
				out = append(out, strings.TrimSpace(heading))
			}
			out, listing = append(out, l.text), opens
		case heading != "":
			out, listing = append(out, truncate(heading+opening().ReplaceAllString(l.text, ""), maxLine)), opens || l.row
		case listing && listed(i) && !opens && l.indent >= indent && (!l.row || !lines[i-1].listed): // a table stands by itself behind a list
			out = append(out, belowMark+l.text)
		default:
			out, listing, indent = append(out, l.text), opens || l.row, 0
			if l.listed {
				indent = l.indent + 1
			}
		}
		heading = ""
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
		if len(group) > 1 && !ended && len(line) <= maxLine && !isRow(line) && !slices.ContainsFunc(group[1:], func(l string) bool { return len(l) > minSaid }) {
			group = []string{line}
		}
		out = append(out, group...)
		i = end
	}
	return out
}

// unmarked returns s without the marks of headings, quotations and lists before it. The sign of a
// number is no mark.
func unmarked(s string) string {
	for s != "" && (strings.IndexByte("#>*| \t", s[0]) >= 0 || (s[0] == '-' || s[0] == '+') && (len(s) == 1 || s[1] == ' ' || s[1] == '\t')) {
		s = s[1:]
	}
	return s
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// sentences returns the sentences of s, which end with a punctuation mark or with the line.
// They share memory with s.
func sentences(s string) []string {
	var out []string
	for _, line := range splitLines(s) {
		start := 0
		for i, r := range line {
			end := i + utf8.RuneLen(r)
			if !endsSentence(r) || r < utf8.RuneSelf && end < len(line) && line[end] != ' ' || r == '.' && abbreviates(line[start:end], strings.TrimLeft(line[end:], " ")) {
				continue
			}
			out = append(out, unmarked(line[start:end]))
			start = end
		}
		if rest := unmarked(line[start:]); rest != "" {
			out = append(out, rest)
		}
	}
	return out
}

// firstSentence returns the first of the sentences of s, "" if it has none.
func firstSentence(s string) string { return append(sentences(s), "")[0] }

// abbreviates reports whether the point at the end of s is that of an abbreviation or of an ordinal number, behind which
// the sentence goes on with next.
func abbreviates(s, next string) bool {
	at := strings.LastIndexAny(s, " \t(/") + 1
	word := s[at : len(s)-1]
	first, _ := utf8.DecodeRuneInString(next)
	switch always, known := abbreviations[word]; {
	case word == "" || next == "":
		return false
	case known:
		return always || unicode.IsDigit(first)
	case len(word) == 1 && unicode.IsLetter(rune(word[0])): // it may be in two parts
		former := strings.LastIndexByte(strings.TrimRight(s[:at], " "), ' ') + 1
		return twoPart().MatchString(s[at:]+next) || twoPart().MatchString(s[former:])
	case len(word) <= len("22") && strings.Trim(word, "0123456789") == "":
		before := text.Tail(s[:at], maxAbbreviation)
		return monthName().MatchString(next) || ordinal().MatchString(before) || unicode.IsLower(first) && dating().MatchString(before)
	}
	return unicode.IsDigit(first) && strings.HasSuffix(word, "str") || unicode.IsLower(first) && pointed().MatchString(word)
}

// maxAbbreviation is the size, in characters, of what before a number tells that it is an ordinal one.
const maxAbbreviation = 12

// abbreviations are words with a point that more follows: a number where it is false.
var abbreviations = map[string]bool{
	"e.g": true, "i.e": true, "vs": true, "cf": true, "etc": true, "approx": true, "incl": true, "excl": true,
	"Mr": true, "Mrs": true, "Ms": true, "Dr": true, "dr": true, "Prof": true, "St": true, "Mt": true, "Rev": true,
	"bzw": true, "ca": true, "Ca": true, "inkl": true, "exkl": true, "zzgl": true, "ggf": true, "evtl": true, "sog": true, "z.B": true, "d.h": true, "u.a": true, "Nr": true, "nr": true, "Hr": true, "Tel": true, "tel": true,
	"Sr": true, "Sra": true, "Srta": true, "Dra": true, "Ud": true, "Uds": true, "Mme": true, "Mlle": true,
	"Art": false, "Abs": false, "Kap": false, "Fig": false, "fig": false, "Eq": false, "Sec": false, "Vol": false, "Ch": false, "p": false, "pp": false, "pág": false, "max": false, "Max": false, "min": false, "Min": false,
	"Jan": false, "Feb": false, "Mar": false, "Apr": false, "Jun": false, "Jul": false, "Aug": false, "Sep": false, "Sept": false, "Oct": false, "Okt": false, "Nov": false, "Dec": false, "Dez": false,
}

var (
	// twoPart is an abbreviation in two parts, pointed one with points between its letters.
	twoPart = text.Pattern(`^(?:z\. ?B|d\. ?h|u\. ?a|s\. ?[ou]|i\. ?d|p\. ?ej|[ap]\. ?m|e\. ?g|i\. ?e)\.`)
	pointed = text.Pattern(`^(?:\p{L}\.)+\p{L}$`)
	// monthName begins what follows the number of a day; ordinal and dating end what comes before an ordinal number, dating
	// if the sentence goes on.
	monthName = text.Pattern(`(?i)^(?:jan(?:uar|ner|\.)|jänner|feb(?:ruar|er|\.)|märz|mrz\.|apr(?:il|\.)|mai|juni|juli|aug(?:ust|\.)|sept?(?:ember|\.)|okt(?:ober|\.)|nov(?:ember|\.)|dez(?:ember|\.))(?:\P{L}|$)`)
	ordinal   = text.Pattern(`(?i)(?:^|\W)(?:der|die|das|dem|den|des|im|zum|zur|vom|beim) $`)
	dating    = text.Pattern(`(?i)(?:^|\W)(?:am|bis|ab|seit|und|oder|jede[nrms]?) $`)
)

// endsSentence reports whether r ends a sentence.
func endsSentence(r rune) bool { return strings.ContainsRune(".!?。！？؟।", r) }

// isQuestion reports whether a sentence is a question.
func isQuestion(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(s, "\"'`)*_»”’ "))
	// A Greek question ends with a semicolon.
	return r == '?' || r == '？' || r == '؟' || r == ';' && strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Greek, r) })
}

// lastLine returns the last line of a text that is not blank, "" for none.
func lastLine(s string) string {
	if lines := splitLines(s); len(lines) > 0 {
		return lines[len(lines)-1]
	}
	return ""
}

func firstLine(s string) string {
	lines := splitLines(text.Head(s, maxRequest))
	if len(lines) == 0 {
		return ""
	}
	return truncateHead(lines[0], maxLine)
}

// isRow reports whether a line of proseLines is divided like a row of a table, as some lines of code are.
func isRow(line string) bool { return strings.Contains(line, " | ") }

// namesAndWords yields the words of a text, names of code with underscores as a whole.
func namesAndWords(s string) iter.Seq[string] {
	return strings.FieldsFuncSeq(s, func(r rune) bool { return r != '_' && !isLetterOrDigit(r) })
}

package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/str"
)

// writing is a writing system as far as it tells languages apart. Han, kana and
// bopomofo are one: Japanese mixes them.
type writing uint8

const (
	noWriting writing = iota
	latin
	cyrillic
	greek
	arabic
	hebrew
	devanagari
	bengali
	tamil
	thai
	georgian
	armenian
	hangul
	han
	otherWriting
	writings
)

// String returns the name of the script.
func (w writing) String() string {
	return [writings]string{
		"", "Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Devanagari", "Bengali", "Tamil", "Thai", "Georgian", "Armenian", "Hangul", "Han", "other",
	}[w]
}

// weight makes letters of different scripts comparable: some write a syllable or a word
// with one.
func (w writing) weight() int {
	switch w {
	case han:
		return 3
	case hangul:
		return 2
	default:
		return 1
	}
}

var tables = []struct {
	table *unicode.RangeTable
	w     writing
}{
	{unicode.Han, han},
	{unicode.Cyrillic, cyrillic},
	{unicode.Hiragana, han},
	{unicode.Katakana, han},
	{unicode.Hangul, hangul},
	{unicode.Arabic, arabic},
	{unicode.Greek, greek},
	{unicode.Hebrew, hebrew},
	{unicode.Devanagari, devanagari},
	{unicode.Bengali, bengali},
	{unicode.Tamil, tamil},
	{unicode.Thai, thai},
	{unicode.Georgian, georgian},
	{unicode.Armenian, armenian},
	{unicode.Bopomofo, han},
	{unicode.Latin, latin},
}

func writingOf(r rune) writing {
	if r < utf8.RuneSelf {
		if isLetter(byte(r)) {
			return latin
		}
		return noWriting
	}
	if !unicode.IsLetter(r) {
		return noWriting
	}
	for _, t := range tables {
		if unicode.Is(t.table, r) {
			return t.w
		}
	}
	return otherWriting
}

// counts are weighted letters by script.
type counts [writings]int

// prose counts the letters of what is no code: not in fences and inline code, nor in
// words that look like paths, addresses or identifiers; without headings and quotations
// where those say nothing about who wrote the rest.
func prose(text string, strict bool) (c counts) {
	fence := ""
	for line := range strings.Lines(text) {
		open := fence
		if fence = fenceAfter(fence, line); fence != "" || open != "" {
			continue
		}
		if strict {
			if t := strings.TrimSpace(line); t == "" || t[0] == '#' || t[0] == '>' {
				continue
			}
			line = withoutQuotations(line)
		}
		for i, s := range strings.Split(line, "`") {
			if i%2 == 0 {
				c.add(s)
			}
		}
	}
	return c
}

func withoutQuotations(line string) string {
	quotes := quotations(line)
	if len(quotes) == 0 {
		return line
	}
	var b strings.Builder
	at := 0
	for _, q := range quotes {
		b.WriteString(line[at:len(q.before)])
		at = len(q.before) + len(q.text)
	}
	b.WriteString(line[at:])
	return b.String()
}

func (c *counts) add(s string) {
	for w := range strings.FieldsSeq(s) {
		if isCode(w) {
			continue
		}
		for _, r := range w {
			k := writingOf(r)
			c[k] += k.weight()
		}
	}
	c[noWriting] = 0
}

// isCode reports a word of plain letters and signs that no sentence has.
func isCode(w string) bool {
	w = strings.TrimRight(w, ".,:;!?)*")
	for i := range len(w) {
		switch c := w[i]; {
		case c >= utf8.RuneSelf:
			return false // a name between letters of another script
		case strings.IndexByte("/\\_=<>{}[]$@&|^~#", c) >= 0, c == '.' && i > 0 && i+1 < len(w), isDigit(c), isUpper(c) && i > 0 && isLower(w[i-1]):
			return true
		}
	}
	return false
}

func (c *counts) total() (n int) {
	for _, k := range c {
		n += k
	}
	return n
}

// foreign returns the most frequent script but the Latin one, which is that of code and
// names everywhere.
func (c *counts) foreign() writing {
	top := noWriting
	for w := latin + 1; w < writings; w++ {
		if c[w] > c[top] {
			top = w
		}
	}
	return top
}

// voteOf returns the script that a message of the user is written in, noWriting where it
// says too little. The first and the last line tell, for what is pasted stands between
// or below; only if those are too short does all of it.
func voteOf(text string) writing {
	text = str.Head(text, maxScanned)
	trimmed := str.Trim(text)
	first, _, _ := strings.Cut(trimmed, "\n")
	last := trimmed[strings.LastIndexByte(trimmed, '\n')+1:]
	c := prose(str.Head(first, maxLine)+"\n"+str.Head(last, maxLine), false)
	if w := c.vote(); w != noWriting {
		return w
	}
	c = prose(text, false)
	return c.vote()
}

const (
	maxScanned = 64 << 10 // characters of a message whose script is looked at
	maxLine    = 400      // of its first and last line
)

func (c *counts) vote() writing {
	if w := c.foreign(); c[w] >= 8 && 10*c[w] >= c.total() {
		return w
	}
	if c[latin] >= 8 {
		return latin
	}
	return noWriting
}

// enoughLetters is how many letters an answer has to have before its script is judged.
const enoughLetters = 60

// wrongScript reports whether an answer is written in a script that the user, as
// his messages voted, does not write. A tenth of the messages is enough to allow one.
func wrongScript(answer string, votes counts) (got writing, wrong bool) {
	all := votes.total()
	c := prose(answer, true)
	n := c.total()
	if all == 0 || n < enoughLetters {
		return noWriting, false
	}
	allowed := func(w writing) bool { return 10*votes[w] >= all }
	if w := c.foreign(); 10*c[w] >= 3*n && !allowed(w) {
		return w, true
	}
	if allowed(latin) {
		return latin, false
	}
	theirs := 0
	for w := latin + 1; w < writings; w++ {
		if allowed(w) {
			theirs += c[w]
		}
	}
	return latin, 10*theirs < n
}

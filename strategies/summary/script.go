package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// script is a writing system. Han, kana and bopomofo count as one, as Japanese mixes them.
type script uint8

const (
	noScript script = iota
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
	otherScript
	scripts
)

// String returns the name of the script.
func (w script) String() string {
	return [scripts]string{
		"", "Latin", "Cyrillic", "Greek", "Arabic", "Hebrew", "Devanagari", "Bengali", "Tamil", "Thai", "Georgian", "Armenian", "Hangul", "Han", "other",
	}[w]
}

// weight returns the weight of a letter: in some scripts it is a syllable or a word.
func (w script) weight() int {
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
	w     script
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

func scriptOf(r rune) script {
	if r < utf8.RuneSelf {
		if isLetter(byte(r)) {
			return latin
		}
		return noScript
	}
	if !unicode.IsLetter(r) {
		return noScript
	}
	for _, t := range tables {
		if unicode.Is(t.table, r) {
			return t.w
		}
	}
	return otherScript
}

// scriptCounts holds weighted letters by script.
type scriptCounts [scripts]int

// countScripts counts letters outside of code: not in fences and inline code, nor in words
// that look like paths, addresses or identifiers. strict also omits headings and
// quotations, which do not show the language of the author.
func countScripts(text string, strict bool) (c scriptCounts) {
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

func (c *scriptCounts) add(s string) {
	for w := range strings.FieldsSeq(s) {
		if isCode(w) {
			continue
		}
		for _, r := range w {
			k := scriptOf(r)
			c[k] += k.weight()
		}
	}
	c[noScript] = 0
}

// isCode reports whether a word of ASCII contains signs that no sentence has.
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

func (c *scriptCounts) total() (n int) {
	for _, k := range c {
		n += k
	}
	return n
}

// foreign returns the most frequent script other than Latin, which code and names use
// everywhere.
func (c *scriptCounts) foreign() script {
	top := noScript
	for w := latin + 1; w < scripts; w++ {
		if c[w] > c[top] {
			top = w
		}
	}
	return top
}

// messageScript returns the script of a user message, noScript if it is too short. The first and
// the last line decide, as pasted text is between or below; all of it only if those are too
// short.
func messageScript(said string) script {
	said = text.Head(said, maxScanned)
	trimmed := text.Trim(said)
	first, _, _ := strings.Cut(trimmed, "\n")
	last := trimmed[strings.LastIndexByte(trimmed, '\n')+1:]
	c := countScripts(text.Head(first, maxLine)+"\n"+text.Head(last, maxLine), false)
	if w := c.dominant(); w != noScript {
		return w
	}
	c = countScripts(said, false)
	return c.dominant()
}

const (
	maxScanned = 64 << 10 // characters of a message whose script is looked at
	maxLine    = 400      // of its first and last line
)

func (c *scriptCounts) dominant() script {
	if w := c.foreign(); c[w] >= 8 && 10*c[w] >= c.total() {
		return w
	}
	if c[latin] >= 8 {
		return latin
	}
	return noScript
}

// minScriptLetters is the minimum number of letters to determine the script of an answer.
const minScriptLetters = 60

// wrongScript reports whether an answer is written in a script that less than a tenth of
// the user's messages use.
func wrongScript(answer string, votes scriptCounts) (got script, wrong bool) {
	all := votes.total()
	c := countScripts(answer, true)
	n := c.total()
	if all == 0 || n < minScriptLetters {
		return noScript, false
	}
	allowed := func(w script) bool { return 10*votes[w] >= all }
	if w := c.foreign(); 10*c[w] >= 3*n && !allowed(w) {
		return w, true
	}
	if allowed(latin) {
		return latin, false
	}
	theirs := 0
	for w := latin + 1; w < scripts; w++ {
		if allowed(w) {
			theirs += c[w]
		}
	}
	return latin, 10*theirs < n
}

package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// script is a writing system, an index of scriptTable. Han, kana and bopomofo count as one,
// as Japanese mixes them.
type script uint8

const (
	noScript    script = 0
	latin       script = 1
	otherScript        = scripts - 1
	scripts     script = script(len(scriptTable))
)

// scriptTable describes the scripts. A letter of some scripts is a syllable or a word and
// has more weight.
var scriptTable = [...]struct {
	name   string
	weight int
	tables []*unicode.RangeTable
}{
	noScript: {},
	latin:    {"Latin", 1, []*unicode.RangeTable{unicode.Latin}},
	{"Cyrillic", 1, []*unicode.RangeTable{unicode.Cyrillic}},
	{"Greek", 1, []*unicode.RangeTable{unicode.Greek}},
	{"Arabic", 1, []*unicode.RangeTable{unicode.Arabic}},
	{"Hebrew", 1, []*unicode.RangeTable{unicode.Hebrew}},
	{"Devanagari", 1, []*unicode.RangeTable{unicode.Devanagari}},
	{"Bengali", 1, []*unicode.RangeTable{unicode.Bengali}},
	{"Tamil", 1, []*unicode.RangeTable{unicode.Tamil}},
	{"Thai", 1, []*unicode.RangeTable{unicode.Thai}},
	{"Georgian", 1, []*unicode.RangeTable{unicode.Georgian}},
	{"Armenian", 1, []*unicode.RangeTable{unicode.Armenian}},
	{"Hangul", 2, []*unicode.RangeTable{unicode.Hangul}},
	{"Han", 3, []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo}},
	{"other", 1, nil},
}

// String returns the name of the script.
func (w script) String() string { return scriptTable[w].name }

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
	for w := latin; w < otherScript; w++ {
		if unicode.In(r, scriptTable[w].tables...) {
			return w
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
	for line := range outsideFences(text) {
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
	var b strings.Builder
	at := 0
	for _, q := range quotations(line) {
		b.WriteString(line[at:q.start])
		at = q.end
	}
	return b.String() + line[at:]
}

func (c *scriptCounts) add(s string) {
	for w := range strings.FieldsSeq(s) {
		if isCode(w) {
			continue
		}
		for _, r := range w {
			k := scriptOf(r)
			c[k] += scriptTable[k].weight
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
		case strings.IndexByte("/\\_=<>{}[]$@&|^~#", c) >= 0, c == '.' && i > 0 && i+1 < len(w), isDigit(c), c >= 'A' && c <= 'Z' && i > 0 && w[i-1] >= 'a' && w[i-1] <= 'z':
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

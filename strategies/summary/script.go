package summary

import (
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/internal/text"
)

// script is a writing system, an index of scriptTable. Han, kana and bopomofo count as one,
// as Japanese mixes them.
type script uint8

const (
	noScript script = iota
	latin
	scripts script = script(len(scriptTable))
)

// scriptTable holds the scripts. A letter of some is a syllable or a word and has more weight.
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
	{"Thai", 1, []*unicode.RangeTable{unicode.Thai}},
	{"Hangul", 2, []*unicode.RangeTable{unicode.Hangul}},
	{"Han", 3, []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo}},
	{"other", 1, []*unicode.RangeTable{unicode.L}},
}

func (w script) String() string { return scriptTable[w].name }

// scriptCounts holds weighted letters by script.
type scriptCounts [scripts]int

// countScripts counts the letters of a text without code, links, headings and quotations, nor
// words that look like paths, addresses or identifiers.
func countScripts(s string) (c scriptCounts) {
	for line := range strings.Lines(codeIn(s).outside(s)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' || line[0] == '>' {
			continue
		}
		for w := range strings.FieldsSeq(withoutQuotations(withoutTags(line))) {
			if strings.ContainsAny(w, `/\_=<>{}[]$@&|^~#0123456789`) && w[0] < 0x80 {
				continue
			}
			for _, r := range w {
				for k := latin; k < scripts && unicode.IsLetter(r); k++ {
					if unicode.In(r, scriptTable[k].tables...) {
						c[k] += scriptTable[k].weight
						break
					}
				}
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

// maxLine is how many characters of the first and the last line of a message are looked at.
const maxLine = 400

// messageScript returns the script of a user message, noScript if it is too short. The first and
// the last line decide, as pasted text is between or below.
func messageScript(said string) script {
	first, rest, _ := strings.Cut(text.Trim(said), "\n")
	last := rest[strings.LastIndexByte(rest, '\n')+1:]
	c := countScripts(text.Head(first, maxLine) + "\n" + text.Head(last, maxLine))
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
	all, c := votes.total(), countScripts(answer)
	n := c.total()
	if all == 0 || n < minScriptLetters {
		return noScript, false
	}
	allowed := func(w script) bool { return 10*votes[w] >= all }
	if w := c.foreign(); 10*c[w] >= 3*n && !allowed(w) {
		return w, true
	}
	theirs := 0
	for w := latin; w < scripts; w++ {
		if allowed(w) {
			theirs += c[w]
		}
	}
	return latin, 10*theirs < n
}

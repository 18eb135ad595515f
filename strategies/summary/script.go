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

// maxLine is how many characters of the first and the last line of a message are looked at.
const maxLine = 400

// addMessage counts the letters of the first and the last line of a message of the user, as pasted
// text is between or below.
func (c *scriptCounts) addMessage(said string) {
	first, rest, _ := strings.Cut(text.Trim(said), "\n")
	last := rest[strings.LastIndexByte(rest, '\n')+1:]
	for w, n := range countScripts(text.Head(first, maxLine) + "\n" + text.Head(last, maxLine)) {
		c[w] += n
	}
}

// minScriptLetters is the minimum number of letters to determine the script of an answer.
const minScriptLetters = 60

// wrongScript reports whether an answer is written in a script that the user hardly uses. Latin
// letters are used in every language, for code and names.
func wrongScript(answer string, users scriptCounts) (got script, wrong bool) {
	all, c := users.total(), countScripts(answer)
	n := c.total()
	if all == 0 || n < minScriptLetters {
		return noScript, false
	}
	theirs := 0
	for w := latin; w < scripts; w++ {
		if 10*users[w] >= all {
			theirs += c[w]
		} else if w > latin && 10*c[w] >= 3*n {
			return w, true
		}
	}
	return latin, 10*theirs < n
}

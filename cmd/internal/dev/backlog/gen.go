package backlog

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// vocabulary holds, by name, the words and templates to choose from.
type vocabulary map[string][]string

// parseVocabulary reads the lists: "name: a|b|c" lines, and blocks that are headed
// by "== name" and separated by lines of "--".
func parseVocabulary() vocabulary {
	v := vocabulary{}
	for line := range strings.SplitSeq(words, "\n") {
		if name, list, ok := strings.Cut(line, ": "); ok {
			v[name] = strings.Split(list, "|")
		}
	}
	for _, text := range []string{supportTexts, codingTexts, goCode, pythonCode} {
		for _, block := range strings.Split(text, "\n== ")[1:] {
			name, body, _ := strings.Cut(block, "\n")
			v[name] = strings.Split(strings.TrimRight(body, "\n"), "\n--\n")
		}
	}
	return v
}

// gen fills templates. Words are chosen at random, but for the facts of a session,
// which stay what they are.
type gen struct {
	r     *rand.Rand
	words vocabulary
	facts map[string]string
	// scope holds the words that stay the same within one text, subject those that
	// the session is about.
	scope, subject [scoped]string
}

// scoped is the number of words in a scope, see scopeIndex.
const scoped = 5

func newGen(r *rand.Rand, words vocabulary) *gen {
	return &gen{r: r, words: words, facts: map[string]string{}}
}

// line is one of the templates of a name, filled.
func (g *gen) line(name string) string {
	g.reset()
	from := g.words[name]
	return g.fill(from[g.r.IntN(len(from))])
}

// fix makes a word a fact.
func (g *gen) fix(name, template string) { g.facts[name] = g.fill(template) }

// fill replaces every ~name~: by the fact of that name; by a number of d digits
// (~n3~); by d hexadecimal digits (~hex8~) or letters and digits (~id24~); or by a
// word of the list, which is a template itself. ~Name~ has a capital.
func (g *gen) fill(template string) string {
	var b strings.Builder
	g.expand(&b, template)
	return b.String()
}

func (g *gen) expand(b *strings.Builder, template string) {
	for {
		start := strings.IndexByte(template, '~')
		if start < 0 {
			b.WriteString(template)
			return
		}
		length := strings.IndexByte(template[start+1:], '~')
		if length < 0 {
			b.WriteString(template)
			return
		}
		b.WriteString(template[:start])
		g.word(b, template[start+1:start+1+length])
		template = template[start+length+2:]
	}
}

func (g *gen) word(b *strings.Builder, name string) {
	if fact, ok := g.facts[name]; ok {
		b.WriteString(fact)
		return
	}
	if i := scopeIndex(name); i >= 0 {
		if g.scope[i] == "" {
			list := g.words[name]
			g.scope[i] = list[g.r.IntN(len(list))]
		}
		b.WriteString(g.scope[i])
		return
	}
	if list, ok := g.words[name]; ok {
		g.expand(b, list[g.r.IntN(len(list))])
		return
	}
	if lower := strings.ToLower(name[:1]) + name[1:]; lower != name {
		var inner strings.Builder
		g.word(&inner, lower)
		s := inner.String()
		b.WriteString(strings.ToUpper(s[:1]) + s[1:])
		return
	}
	kind := strings.TrimRight(name, "0123456789")
	digits, _ := strconv.Atoi(name[len(kind):])
	alphabet := "0123456789"
	switch kind {
	case "hex":
		alphabet = "0123456789abcdef"
	case "id":
		alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	case "n":
		b.WriteByte("123456789"[g.r.IntN(9)])
		digits--
	default:
		panic("backlog: no list " + name) // a template is wrong; a test fills them all
	}
	for range digits {
		b.WriteByte(alphabet[g.r.IntN(len(alphabet))])
	}
}

// reset lets the words of the scope be chosen anew. Every other time they are what
// the session is about, where it has such a subject.
func (g *gen) reset() {
	g.scope = [scoped]string{}
	if g.subject[0] != "" && g.r.IntN(2) == 0 {
		g.scope = g.subject
	}
}

// scopeIndex is the place of a word in the scope, -1 for none.
func scopeIndex(name string) int {
	switch name {
	case "noun":
		return 0
	case "verb":
		return 1
	case "adjective":
		return 2
	case "product":
		return 3
	case "colour":
		return 4
	}
	return -1
}

// until joins lines of a template until they come to a size.
func (g *gen) until(size int, name, separator string) string {
	var b strings.Builder
	for b.Len() < size || b.Len() == 0 {
		if b.Len() > 0 {
			b.WriteString(separator)
		}
		g.reset()
		from := g.words[name]
		g.expand(&b, from[g.r.IntN(len(from))])
	}
	return b.String()
}

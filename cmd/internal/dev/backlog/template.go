package backlog

import (
	"embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// data holds the texts in the format of data/README.md.
//
//go:embed data/*.txt
var data embed.FS

// vocabulary maps the name of a list to its words or templates.
type vocabulary map[string][]string

// read adds the lists of a file to v.
func (v vocabulary) read(file string) {
	text, err := data.ReadFile("data/" + file + ".txt")
	if err != nil {
		panic(err) // the names are those of embedded files
	}
	blocks := strings.Split("\n"+string(text), "\n== ")
	for line := range strings.SplitSeq(blocks[0], "\n") {
		if name, list, ok := strings.Cut(line, ": "); ok {
			v.add(name, strings.Split(list, "|"))
		}
	}
	for _, block := range blocks[1:] {
		name, list, _ := strings.Cut(strings.TrimRight(block, "\n"), "\n")
		v.add(name, strings.Split(list, "\n--\n"))
	}
}

func (v vocabulary) add(name string, entries []string) {
	for _, entry := range entries {
		number, rest, _ := strings.Cut(entry, "*")
		weight, err := strconv.Atoi(number)
		if err != nil || number == entry {
			weight, rest = 1, entry
		}
		v[name] = append(v[name], slices.Repeat([]string{rest}, weight)...)
	}
}

// reset starts a new scope, which in half of the cases is that of the subject.
func (w *writer) reset() {
	w.scope = map[string]string{}
	if w.r.IntN(2) == 0 {
		w.scope = maps.Clone(w.subject)
	}
}

// pick returns a random entry of a list unexpanded, or "" if the list does not exist.
func (w *writer) pick(name string) string {
	list := w.words[name]
	if len(list) == 0 {
		return ""
	}
	return list[w.r.IntN(len(list))]
}

// line returns a random entry of a list with its placeholders expanded.
func (w *writer) line(name string) string {
	w.reset()
	return w.fill(w.pick(name))
}

// renew chooses new values for the facts that a list names.
func (w *writer) renew(list string) {
	for _, name := range w.words[list] {
		delete(w.facts, name)
		w.scope = maps.Clone(w.subject)
		w.facts[name] = w.word(name)
	}
}

// fill expands the placeholders of a template.
func (w *writer) fill(template string) string {
	var b strings.Builder
	for i, part := range strings.Split(template, "~") {
		if i%2 == 1 {
			part = w.word(part)
		}
		b.WriteString(part)
	}
	return b.String()
}

func (w *writer) word(name string) string {
	if fact, ok := w.facts[name]; ok {
		return fact
	}
	if slices.Contains(w.words["scoped"], name) {
		if w.scope[name] == "" {
			w.scope[name] = w.pick(name)
		}
		return w.scope[name]
	}
	if w.words[name] != nil {
		return w.fill(w.pick(name))
	}
	if i := strings.IndexAny(name, "/,"); i >= 0 {
		return w.many(name, i)
	}
	lower := strings.ToLower(name[:1]) + name[1:]
	if lower == name {
		panic("backlog: no list " + name) // a template is wrong; a test fills them all
	}
	word := w.word(lower)
	return strings.ToUpper(word[:1]) + word[1:]
}

// many expands a placeholder for several entries; i is the offset of its separator. The
// length is log-normal, at most an eighth of the window.
func (w *writer) many(name string, i int) string {
	list := strings.TrimLeft(name[:i], "#^")
	number := strings.TrimLeft(name[i:], "/,")
	separator := strings.ReplaceAll(strings.TrimSuffix(name[i:], number), "/", "\n")
	median, _ := strconv.Atoi(number)
	size := min(int(float64(median)*math.Exp(0.8*w.r.NormFloat64())), w.window/8*4)
	text := w.line(list)
	for len(text) < size {
		text += separator + w.line(list)
	}
	lines := strings.Split(text, "\n")
	switch name[0] {
	case '#':
		from := 1 + w.r.IntN(40)
		for k := range lines {
			lines[k] = fmt.Sprintf("%5d\t%s", from+k, lines[k])
		}
	case '^':
		slices.Sort(lines)
		lines = slices.Compact(lines)
	}
	return strings.Join(lines, "\n")
}

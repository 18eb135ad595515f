package redact

import (
	_ "embed" // the table
	"regexp"
	"strings"
)

// knowledge is the table of secrets and of values that only look like them. It begins with a description.
//
//go:embed secrets.tsv
var knowledge string

// row is a line of the table.
type row struct{ use, kind, text, form, size string }

// escapesOfTable are line breaks and tabs within cells.
var escapesOfTable = strings.NewReplacer(`\n`, "\n", `\t`, "\t")

var table = parseTable(knowledge)

func parseTable(s string) map[string][]row {
	rows := map[string][]row{}
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		cells := append(strings.Split(line, "\t"), "", "", "", "")
		for i := range cells {
			cells[i] = escapesOfTable.Replace(cells[i])
		}
		rows[cells[0]] = append(rows[cells[0]], row{cells[0], cells[1], cells[2], cells[3], cells[4]})
	}
	return rows
}

// texts returns the texts of a row that are separated by bars.
func (r *row) texts() []string { return strings.Split(r.text, "|") }

// words is a set of words that ignores case.
type words struct {
	all     []string
	has     map[string]bool
	longest int
}

// lists has the lists of the table by their names.
var lists = func() map[string]*words {
	all := map[string]*words{}
	for _, r := range table["list"] {
		w := all[r.kind]
		if w == nil {
			w = &words{has: map[string]bool{}}
			all[r.kind] = w
		}
		for text := range strings.FieldsSeq(r.text) {
			text = strings.ReplaceAll(text, "+", " ")
			w.all = append(w.all, text)
			w.has[strings.ToLower(text)] = true
			w.longest = max(w.longest, len(text))
		}
	}
	return all
}()

// in reports whether s is one of the words of a list of the table.
func in(list, s string) bool { return lists[list].is(s) }

// is reports whether s is one of the words.
func (w *words) is(s string) bool {
	return s != "" && len(s) <= w.longest && w.has[strings.ToLower(s)]
}

// ends reports whether s ends in one of the words.
func (w *words) ends(s string) bool {
	for _, word := range w.all {
		if n := len(s) - len(word); n >= 0 && strings.EqualFold(s[n:], word) {
			return true
		}
	}
	return false
}

// within reports whether s, in lower case, contains one of the words.
func (w *words) within(s string) bool {
	for _, word := range w.all {
		if strings.Contains(s, word) {
			return true
		}
	}
	return false
}

// traps have the regular expressions of the table by their kind.
var traps = func() map[string]*regexp.Regexp {
	all, out := map[string][]string{}, map[string]*regexp.Regexp{}
	for _, r := range table["trap"] {
		all[r.kind] = append(all[r.kind], r.text)
	}
	for kind, of := range all {
		out[kind] = regexp.MustCompile("(?s)^(?:" + strings.Join(of, "|") + ")")
	}
	return out
}()

// isTrap reports whether a value is one of a kind of values that are no secrets.
func isTrap(v, kind string) bool { return traps[kind].MatchString(v[:min(len(v), maxTrap)]) }

// maxTrap bounds the text that the traps read: a value may be as long as the text, and another one begin with each of its
// characters.
const maxTrap = 512

package redact

import "strings"

// tables finds the secrets in the columns of tables whose first line names them: with commas, tabs or bars between.
func tables(t *source, e *edits) {
	s, done := t.s, 0
	for k, w := range t.found() {
		next := cellMarks.end(s[:min(len(s), w.end+maxCell)], w.end)
		if w.start < done || next == len(s) || !indexByte(",;|\t\r\n", s[next]) {
			continue
		}
		begin := max(0, w.start-maxHeader)
		begin += strings.LastIndexByte(s[begin:w.start], '\n') + 1
		size := strings.IndexByte(s[begin:min(len(s), begin+2*maxHeader)], '\n')
		if size < 0 {
			continue
		}
		done = begin + size
		for _, separator := range []byte("|\t;,") {
			if strings.IndexByte(s[begin:done], separator) >= 0 {
				h := tableHeader{s: s, names: cellsOf(s, begin, done, separator), separator: separator}
				done = h.mask(t.words[k:], done, e)
				break
			}
		}
	}
}

const (
	maxHeader = 512
	maxRow    = 4096
)

// tableHeader is a table by its first line.
type tableHeader struct {
	s         string
	names     []cell
	separator byte
}

// cell is the bounds of a cell without blanks and quotes around it.
type cell struct{ start, end int }

// cellsOf returns the cells of the line s[i:end], without the empty ones before the first bar and after the last.
func cellsOf(s string, i, end int, separator byte) (cells []cell) {
	if separator == '|' {
		i, end = border.end(s[:end], i), border.start(s, end, end-i)
	}
	for i <= end {
		stop := i
		if stop < end && s[stop] == '"' && separator != '|' { // a separator may be within
			stop += max(0, strings.IndexByte(s[stop+1:end], '"')+1)
		}
		for stop < end && s[stop] != separator {
			stop++
		}
		c := cell{cellMarks.end(s[:stop], i), stop}
		c.end = cellMarks.start(s, stop, stop-c.start)
		cells, i = append(cells, c), stop+1
	}
	return cells
}

var (
	border    = setOf("| \t\r")
	lineSet   = setOf("\x00-\t\x0b-\xff")
	ruler     = setOf(" |+:=\t\r-")
	cellMarks = setOf(" \r\"'`*")
	nameCell  = setOf("0-9A-Za-z_ ./\x80-\xff-")
)

// mask masks the secrets of the rows below the line that ends at i in the columns of words, and returns the end of the table.
func (h *tableHeader) mask(words []wordAt, i int, e *edits) int {
	s, accounts := h.s, false
	secret := make([]string, len(h.names)) // the names of columns of secrets
	for at, c := range h.names {
		name := s[c.start:c.end]
		switch {
		case name == "", len(name) > maxCell, !nameCell.has(name):
			return i
		case indexByte(",;", h.separator) && c.start > 0 && s[c.start-1] == ' ': // a sentence
			return i
		}
		accounts = accounts || in("column", name) || in("column", lastWord(name))
		for len(words) > 0 && words[0].end < c.end {
			words = words[1:]
		}
		if len(words) == 0 || words[0].end != c.end {
			continue
		}
		if name = strings.ReplaceAll(name, " ", "_"); words[0].word.typed {
			name = "password"
		}
		if words[0].word.language || secretName(name) && !in("about", lastWord(name)) {
			secret[at] = name
		}
	}
	for i++; len(h.names) > 1 && strings.Join(secret, "") != "" && i < len(s); {
		line := lineSet.end(s[:min(len(s), i+maxRow)], i)
		if ruler.end(s[:line], i) < line || line == i {
			row := cellsOf(s, i, line, h.separator)
			if len(row) != len(h.names) {
				break
			}
			for at, name := range secret {
				if v := row[at]; name != "" && isCellSecret(name, s[v.start:v.end], accounts) {
					e.mask(s, v.start, v.end, KindAssignment)
				}
			}
		}
		i = line + 1
	}
	return i
}

// isCellSecret reports whether v is a secret in a column with a name. With accounts beside it, it may be a word or a number.
func isCellSecret(name, v string, accounts bool) bool {
	switch {
	case len(v) < leastPIN, strings.Contains(v, "://"), spared(name, v, true), isProse(v):
		return false
	case !isPassword(name):
		return len(v) >= 12 && digit.any(v) && secretValue(v, true, true)
	case len(v) >= 6 && mixed(v) && !isTrap(v, "technical"):
		return accounts || !strings.Contains(v, " ")
	}
	return accounts && word.has(v) && !in("example", v) && !secretName(v)
}

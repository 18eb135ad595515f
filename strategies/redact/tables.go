package redact

import "strings"

// tables finds the values in columns with the name of a secret in their header: of CSV, of
// tables with bars as in Markdown and the output of databases, and of aligned columns.
func tables(t *source, e *edits) {
	s, done := t.s, 0
	for k, w := range t.words {
		next := columnGap.end(s[:min(len(s), w.end+maxCell)], w.end)
		if w.start < done || next == len(s) || !indexByte(",;|\t\r\n", s[next]) && next-w.end < 2 {
			continue
		}
		begin := max(0, w.start-maxHeader)
		if n := strings.LastIndexByte(s[begin:w.start], '\n'); n >= 0 {
			begin += n + 1
		} else if begin > 0 {
			continue
		}
		size := strings.IndexByte(s[begin:min(len(s), begin+2*maxHeader)], '\n')
		if size < 0 {
			continue
		}
		done = begin + size
		h := tableHeader{separator: separatorOf(s[begin:done])}
		if h.names = cellsOf(s, begin, done, h.separator); !h.valid(s) {
			continue
		}
		for _, w := range t.words[k:] {
			if w.start < done {
				h.mark(s, w)
			}
		}
		if len(h.secret) > 0 {
			done = h.maskRows(s, done+1, e)
		}
	}
}

const (
	maxHeader = 512
	maxRow    = 4096
)

var columnGap = setOf(" \"'`*")

// cell is the bounds of a cell without blanks and quotes around it.
type cell struct{ start, end int }

// tableHeader is the first line of a table.
type tableHeader struct {
	names     []cell
	separator byte // a blank for aligned columns
	secret    []column
	accounts  bool // a column names accounts
}

// column is a column of secrets.
type column struct {
	index int
	name  string
}

// separatorOf returns the separator of the cells of a line.
func separatorOf(line string) byte {
	for _, c := range []byte("|\t;,") {
		if strings.IndexByte(line, c) >= 0 {
			return c
		}
	}
	return ' '
}

// cellsOf returns the cells of the line s[i:end], without the empty ones before the first bar
// and after the last.
func cellsOf(s string, i, end int, separator byte) (cells []cell) {
	if separator == '|' || separator == ' ' {
		i, end = blank.end(s[:end], i), i+len(strings.TrimRight(s[i:end], " \t\r"))
		if separator == '|' && i < end {
			i, end = i+len(s[i:end])-len(strings.TrimPrefix(s[i:end], "|")), i+len(strings.TrimSuffix(s[i:end], "|"))
		}
	}
	for i <= end {
		stop := i
		if stop < end && s[stop] == '"' && separator != '|' { // a separator may be within
			stop += max(0, strings.IndexByte(s[stop+1:end], '"')+1)
		}
		for stop < end && (s[stop] != separator || separator == ' ' && s[stop+1] != ' ') {
			stop++
		}
		c := cell{min(cellMarks.end(s[:stop], i), stop), stop}
		c.end = cellMarks.start(s, stop, stop-c.start)
		cells = append(cells, c)
		if i = stop + 1; separator == ' ' && i < end {
			i = max(i, blank.end(s[:end], i))
		}
	}
	return cells
}

var cellMarks = setOf(" \r\"'`*")

// valid reports whether the cells are names, and more than one.
func (h *tableHeader) valid(s string) bool {
	for _, c := range h.names {
		name := s[c.start:c.end]
		if name == "" || len(name) > maxCell || strings.Count(name, " ") > 2 || !nameCell.has(name) {
			return false
		}
		if indexByte(",;", h.separator) && c.start > 0 && s[c.start-1] == ' ' { // or a sentence
			return false
		}
		h.accounts = h.accounts || in("column", name) || in("column", lastWord(name))
	}
	return len(h.names) > 1
}

var nameCell = setOf("0-9A-Za-z_ ./\x80-\xff-")

// mark adds the column whose name ends with a word.
func (h *tableHeader) mark(s string, w wordAt) {
	for i, c := range h.names {
		if w.start < c.start || w.end != c.end {
			continue
		}
		name := strings.ReplaceAll(s[c.start:c.end], " ", "_")
		if !w.word.language && (!secretName(name) || in("about", lastWord(name))) {
			continue
		}
		if w.word.typed {
			name = "password"
		}
		h.secret = append(h.secret, column{i, name})
	}
}

// maskRows masks the secrets of the rows that begin at i, and returns the end of the table.
func (h *tableHeader) maskRows(s string, i int, e *edits) int {
	for i < len(s) {
		size := strings.IndexByte(s[i:min(len(s), i+maxRow)], '\n')
		if size < 0 {
			size = min(len(s)-i, maxRow)
		}
		line := i + size
		if border.end(s[:line], i) < line || size == 0 {
			row := cellsOf(s, i, line, h.separator)
			if len(row) != len(h.names) {
				return i
			}
			for _, c := range h.secret {
				if v := row[c.index]; isCellSecret(c.name, s[v.start:v.end], h.accounts) {
					e.mask(s, v.start, v.end, KindAssignment)
				}
			}
		}
		i = line + 1
	}
	return i
}

var border = setOf(" |+:=\t\r-")

// isCellSecret reports whether v is a secret in a column with a name. With accounts beside it,
// it may be a word or a number.
func isCellSecret(name, v string, accounts bool) bool {
	switch {
	case len(v) < leastPIN, strings.Contains(v, "://"), spared(name, v, true), isProse(v):
		return false
	case !isPassword(name):
		return len(v) >= 12 && digit.any(v) && secretValue(v, true, true)
	case strings.Contains(v, " "):
		return accounts && mixed(v) && strings.Count(v, " ") < 4
	case len(v) >= 6 && mixed(v) && !technical(v):
		return true
	}
	return accounts && word.has(v) && !in("example", v) && !secretName(v)
}

package redact

import "strings"

// inserts finds the values of columns for secrets in INSERT INTO t (user, password) VALUES ('x', 'y').
func inserts(t *source, e *edits) {
	s, done := t.s, 0
	for _, w := range t.found() {
		next := insertGap.end(s[:min(len(s), w.end+8)], w.end)
		if w.start < done || next == len(s) || s[next] != ',' && s[next] != ')' {
			continue
		}
		size := strings.IndexByte(s[next:min(len(s), next+maxHeader)], ')')
		at := space.end(s, next+size+1)
		if size < 0 || !hasFold(s[at:], "values") {
			continue
		}
		low := max(0, w.start-maxHeader)
		open := low + strings.LastIndexByte(s[low:w.start], '(')
		if open < low || !strings.Contains(strings.ToLower(s[max(0, open-maxName):open]), "insert into") || !secretName(s[wordDot.start(s, w.start, maxName):w.end]) {
			continue
		}
		done = at // with all columns of the statement
		var columns []int
		for i, name := range strings.Split(s[open+1:next+size], ",") {
			if secretName(strings.Trim(name, " \t\r\n\"`[]")) {
				columns = append(columns, i)
			}
		}
		for at = space.end(s, at+len("values")); at < len(s) && s[at] == '('; {
			row, end := tupleOf(s[:min(len(s), at+maxRow)], at)
			for _, column := range columns {
				if column >= len(row) {
					break
				}
				if start, stop, quoted := valueAt(s, row[column]); quoted && stop-start >= leastPIN && !spared("password", s[start:stop], true) {
					e.mask(s, start, stop, KindAssignment)
				}
			}
			if done = end; end == len(s) || s[end] != ',' {
				break
			}
			at = space.end(s, end+1)
		}
	}
}

// tupleOf returns where the elements of the tuple at i begin, and its end.
func tupleOf(s string, i int) (elements []int, end int) {
	elements = append(elements, i+1)
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\'', '"':
			i = max(i, libpqEnd(s, i))
		case ',':
			elements = append(elements, i+1)
		case ')':
			return elements, i + 1
		case '\n':
			return elements, i
		}
	}
	return elements, len(s)
}

var insertGap = setOf(" \"`")

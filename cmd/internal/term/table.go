package term

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

const (
	columnGap = "  "
	// minColumn is the least width that a column is reduced to.
	minColumn = 10
	// readable is the width to which text columns are reduced before optional columns are
	// left out.
	readable = 20
	// leftOut marks the width of a column that is left out.
	leftOut = -1
)

// Column describes a column of a table.
type Column struct {
	Name string
	// Right aligns the column to the right, and keeps it from being truncated.
	Right bool
	// Plain leaves out the separators of thousands: an id is to be copied into another command.
	Plain bool
	// Optional permits to leave the column out of a terminal that is too narrow.
	Optional bool
}

// Text returns a column of text.
func Text(name string) Column { return Column{Name: name} }

// Num returns a column of numbers, aligned to the right.
func Num(name string) Column { return Column{Name: name, Right: true} }

// ID returns a column of ids that are numbers, aligned to the right.
func ID(name string) Column { return Column{Name: name, Right: true, Plain: true} }

// IfRoom returns the column as an optional one.
func (c Column) IfRoom() Column {
	c.Optional = true
	return c
}

// Styled is a cell with a styled value: Styled{"failed", style.Red}.
type Styled struct {
	Value any
	As    func(string) string
}

// Table collects rows and writes them aligned. On a terminal the header is bold, and until
// a row fits, optional columns are left out, the last first, and the widest text columns
// are truncated; elsewhere nothing is cut.
// text/tabwriter is not used because it aligns all columns alike and counts escape
// sequences. A Table is not safe for concurrent use.
type Table struct {
	out     Output
	columns []Column
	rows    [][]cell
}

type cell struct {
	text string
	as   func(string) string
}

// Table returns an empty table.
func (o Output) Table(columns ...Column) *Table {
	return &Table{out: o, columns: columns}
}

// Row adds a row. Integers get thousands separators but in columns of ids, durations are formatted by Duration,
// times in UTC to the second, nil as an empty cell, pointers as their values, and other values by fmt.Sprint.
// Missing cells are empty; cells beyond the columns are dropped.
func (t *Table) Row(cells ...any) {
	row := make([]cell, len(t.columns))
	for i := range min(len(cells), len(row)) {
		v := cells[i]
		if s, ok := v.(Styled); ok {
			row[i].as, v = s.As, s.Value
		}
		if t.columns[i].Plain && v != nil {
			v = fmt.Sprint(v)
		}
		row[i].text = Clean(format(v))
	}
	t.rows = append(t.rows, row)
}

// Write writes the header and all rows.
func (t *Table) Write() error {
	header := make([]cell, len(t.columns))
	for i, c := range t.columns {
		header[i] = cell{text: c.Name, as: t.out.Bold}
	}
	lines := append([][]cell{header}, t.rows...)
	widths := make([]int, len(t.columns))
	for _, line := range lines {
		for i, c := range line {
			widths[i] = max(widths[i], Width(c.text))
		}
	}
	t.fit(widths)
	var b strings.Builder
	for _, line := range lines {
		t.line(&b, line, widths)
	}
	_, err := io.WriteString(t.out.W, b.String())
	return err
}

// line appends one line without trailing spaces.
func (t *Table) line(b *strings.Builder, line []cell, widths []int) {
	blanks := 0
	for i, c := range line {
		if widths[i] == leftOut {
			continue
		}
		text := Truncate(c.text, widths[i])
		pad := widths[i] - Width(text)
		if i > 0 {
			blanks += len(columnGap)
		}
		if t.columns[i].Right {
			blanks, pad = blanks+pad, 0
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", blanks))
			blanks = 0
			if c.as != nil && t.out.Color {
				b.WriteString(c.as(text))
			} else {
				b.WriteString(text)
			}
		}
		blanks += pad
	}
	b.WriteByte('\n')
}

// fit leaves columns out and reduces others until a row fits the width of the output.
func (t *Table) fit(widths []int) {
	if t.out.Width <= 0 {
		return
	}
	// over returns by how much a row is too wide with text columns of at most a width.
	over := func(most int) int {
		sum := -len(columnGap) - t.out.Width
		for i, w := range widths {
			if w != leftOut && !t.columns[i].Right {
				w = min(w, most)
			}
			if w != leftOut {
				sum += w + len(columnGap)
			}
		}
		return sum
	}
	for i, c := range slices.Backward(t.columns) {
		if c.Optional && over(readable) > 0 {
			widths[i] = leftOut
		}
	}
	for range over(math.MaxInt) {
		widest := -1
		for i, w := range widths {
			if !t.columns[i].Right && w > minColumn && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// Pairs writes one "key  value" line per pair with aligned, dim keys. Pairs with an empty
// value are left out.
func (o Output) Pairs(pairs ...[2]any) error {
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(p [2]any) bool { return format(p[1]) == "" })
	keys := make([]string, len(pairs))
	for i, p := range pairs {
		keys[i] = Clean(format(p[0]))
	}
	if len(keys) == 0 {
		return nil
	}
	width := Width(slices.MaxFunc(keys, func(a, b string) int { return Width(a) - Width(b) }))
	for i, p := range pairs {
		value := p[1]
		as := func(s string) string { return s }
		if s, ok := value.(Styled); ok {
			value = s.Value
			if o.Color {
				as = s.As
			}
		}
		pad := strings.Repeat(" ", width-Width(keys[i]))
		if _, err := fmt.Fprintf(o.W, "%s%s%s%s\n", o.Dim(keys[i]), pad, columnGap, as(Clean(format(value)))); err != nil {
			return err
		}
	}
	return nil
}

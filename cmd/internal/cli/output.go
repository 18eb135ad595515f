package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/term"
)

// say writes a line to Out. As pairs and tables do, it keeps the first error for runOnce.
func (e *Env) say(format string, args ...any) {
	_, err := fmt.Fprintf(e.Out.W, format+"\n", args...)
	e.wrote(err)
}

// note writes lines to Err, cleaned: names of others may hold control characters.
func (e *Env) note(format string, args ...any) {
	fmt.Fprintln(e.Err.W, term.CleanLines(fmt.Sprintf(format, args...)))
}

// wrote keeps the first error of a write to Out.
func (e *Env) wrote(err error) {
	if e.unwritten == nil {
		e.unwritten = err
	}
}

// json writes the result of a command for --json.
func (e *Env) json(v any) error { return term.JSON(e.Out.W, v) }

// answer writes the result of a command: v with --json, or a line.
func (e *Env) answer(v any, format string, args ...any) error {
	if e.JSON {
		return e.json(v)
	}
	e.say(format, args...)
	return nil
}

// show writes the result of a command: v with --json, or else text writes it.
func (e *Env) show(v any, text func()) error {
	if e.JSON {
		return e.json(v)
	}
	text()
	return nil
}

// pair is a property of something that is shown: its name and its value, "" or nil for none.
type pair = [2]any

// pairs writes properties that have a value.
func (e *Env) pairs(pairs ...pair) { e.wrote(e.Out.Pairs(pairs...)) }

// column describes a column of a table of rows.
type column[T any] struct {
	field string // of the row with --json
	term.Column
	cell func(T) any // nil for the value of the field
}

type columns[T any] []column[T]

// write writes the rows as a table.
func (cs columns[T]) write(e *Env, rows []T) {
	heads := make([]term.Column, len(cs))
	for i, c := range cs {
		heads[i] = c.Column
		if cell := fieldOf[T](c.field); c.cell == nil {
			cs[i].cell = cell
		}
	}
	t := e.Out.Table(heads...)
	for _, r := range rows {
		cells := make([]any, len(cs))
		for i, c := range cs {
			cells[i] = c.cell(r)
		}
		t.Row(cells...)
	}
	e.wrote(t.Write())
}

// fieldOf returns a function that returns the field of a row that has a name with --json, nil for
// no name. It panics if there is no such field.
func fieldOf[T any](name string) func(T) any {
	if name == "" {
		return nil
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return func(row T) any { return reflect.ValueOf(row).FieldByIndex(f.Index).Interface() }
		}
	}
	panic(fmt.Sprintf("%T has no field %s", *new(T), name))
}

// without leaves out the columns of a field unless they are wanted.
func (cs columns[T]) without(wanted bool, fields ...string) columns[T] {
	return slices.DeleteFunc(cs, func(c column[T]) bool { return !wanted && slices.Contains(fields, c.field) })
}

// list writes the rows of a resource: with --json as a list of that name, or else as a table; none
// is noted in place of an empty one.
func list[T any](e *Env, name string, rows []T, none string, cs columns[T]) error {
	if e.JSON {
		return e.json(map[string]any{name: append([]T{}, rows...)})
	}
	if len(rows) == 0 {
		e.note("%s", none)
		return nil
	}
	cs.write(e, rows)
	return nil
}

// when returns v if it counts, or else the zero value, which a table and a list of pairs leave empty.
func when[T any](counts bool, v T) T {
	if counts {
		return v
	}
	var none T
	return none
}

// plural returns a count with its noun, which gets an s unless the count is 1.
func plural[N ~int | ~int64](n N, noun string) string { return term.Plural(n, noun, noun+"s") }

// timeText returns a time in UTC to the second.
func timeText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

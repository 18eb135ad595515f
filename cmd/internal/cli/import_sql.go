package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// sqlColumns lists the columns that a query may return.
var sqlColumns = []string{"session_id", "role", "content", "id", "created_at", "tool_calls", "tool_call_id", "name", "model", "message"}

var errStopped = errors.New("stopped")

// sqlItems reads messages from the rows of a query. Consecutive rows of one session are
// one item; rows of the same session later on continue it.
func sqlItems(ctx context.Context, dsn, query string, read func(int64)) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		g := &rowGroups{yield: yield, counts: map[string]int{}, broken: map[string]bool{}}
		err := store.ReadSource(ctx, dsn, query, func(columns []store.SourceColumn, values [][]byte) error {
			read(1)
			return g.row(columns, values)
		})
		if err == nil {
			err = g.flush()
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Item{Where: "--from-sql", Err: err, Fatal: true})
		}
	}
}

type rowGroups struct {
	yield  func(Item) bool
	rows   int
	counts map[string]int // messages of each session so far
	cur    Item
	first  int // row
	open   bool
	err    error // of the first invalid row of the current session
	broken map[string]bool
}

func (g *rowGroups) row(columns []store.SourceColumn, values [][]byte) error {
	if g.rows == 0 {
		if err := checkColumns(columns); err != nil {
			return err
		}
	}
	g.rows++
	row := sqlRow{}
	for i, c := range columns {
		row[c.Name] = value{values[i], c.JSON}
	}
	id := row["session_id"].text()
	if g.open && id != g.cur.ID {
		if err := g.flush(); err != nil {
			return err
		}
	}
	if !g.open {
		g.cur, g.first, g.open, g.err = Item{Session: chat.Session{ID: id}, Offset: g.counts[id]}, g.rows, true, nil
	}
	g.counts[id]++
	if g.err == nil {
		g.err = g.add(id, row)
	}
	return nil
}

// add appends a row to the current session.
func (g *rowGroups) add(id string, row sqlRow) error {
	if id == "" {
		return fmt.Errorf("row %d: session_id is empty", g.rows)
	}
	m, repairs, err := row.message()
	if err != nil {
		return fmt.Errorf("row %d: %w", g.rows, err)
	}
	if g.cur.Model == "" {
		g.cur.Model = row["model"].text()
	}
	g.cur.Messages = append(g.cur.Messages, m)
	g.cur.Repairs += repairs
	return nil
}

// flush yields the current session.
func (g *rowGroups) flush() error {
	if !g.open {
		return nil
	}
	g.open = false
	item := g.cur
	item.Where = fmt.Sprintf("rows %d to %d", g.first, g.first+g.counts[item.ID]-item.Offset-1)
	switch item.Err = g.err; {
	case g.broken[item.ID]:
		item.Err = errEarlierPart
	case g.err != nil:
		g.broken[item.ID] = true
	}
	if item.Err != nil {
		item.Messages = nil
	}
	if !g.yield(item) {
		return errStopped
	}
	return nil
}

func checkColumns(columns []store.SourceColumn) error {
	var faults []error
	have := map[string]bool{}
	for _, c := range columns {
		have[c.Name] = true
		if !slices.Contains(sqlColumns, c.Name) {
			faults = append(faults, wrong("--query: unknown column %s, want %s", c.Name, strings.Join(sqlColumns, ", ")))
		}
	}
	needed := []string{"session_id", "role", "content"}
	if have["message"] {
		needed = needed[:1]
	}
	for _, name := range needed {
		if !have[name] {
			faults = append(faults, wrong("--query: no column %s: name it with AS %s", name, name))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &exitError{exitUsage, errors.Join(faults...)}
}

type value struct {
	raw    []byte // nil: NULL
	isJSON bool
}

func (v value) text() string {
	if v.isJSON {
		var s string
		if json.Unmarshal(v.raw, &s) == nil {
			return s
		}
	}
	return string(v.raw)
}

// json returns the value as JSON; a value of a type other than JSON becomes a string.
func (v value) json() json.RawMessage {
	if v.raw == nil {
		return json.RawMessage("null")
	}
	if v.isJSON {
		return slices.Clone(v.raw)
	}
	quoted, _ := json.Marshal(string(v.raw)) // strings have a JSON form
	return quoted
}

type sqlRow map[string]value

// message decodes the JSON form of a message, so that the rules for files apply.
func (row sqlRow) message() (m chat.Message, repairs int, err error) {
	fields := map[string]json.RawMessage{}
	if whole, ok := row["message"]; ok {
		clean, n := chat.SanitizeJSON(whole.raw)
		repairs += n
		if err := json.Unmarshal(clean, &fields); err != nil || fields == nil {
			return m, 0, errors.New("message: want a JSON object")
		}
	}
	for name, v := range row {
		switch {
		case name == "content" && v.raw == nil && row["message"].raw == nil:
			fields[name] = json.RawMessage("null")
		case name == "session_id", name == "model", name == "message", v.raw == nil:
		case name == "tool_calls" && !v.isJSON:
			if len(v.raw) == 0 {
				continue
			}
			if !json.Valid(v.raw) {
				return m, 0, errors.New("tool_calls: want a JSON array")
			}
			fields[name] = slices.Clone(v.raw)
		default:
			fields[name] = v.json()
		}
	}
	var b []byte
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			b = append(b, ',')
		}
		quoted, _ := json.Marshal(name) // strings have a JSON form
		b = append(append(append(b, quoted...), ':'), fields[name]...)
	}
	clean, n := chat.SanitizeJSON(append(b, '}'))
	return m, repairs + n, m.UnmarshalJSON(clean)
}

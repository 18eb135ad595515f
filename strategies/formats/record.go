package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// Row is a record of an application's table: a JSON value, and the role where the table has a column
// for it.
type Row struct {
	Value json.RawMessage
	Role  string
}

// Decoded is a message, and the rows that it was made of, by index.
type Decoded struct {
	chat.Message
	Rows []int
}

// RowError is the error of a row that cannot be read.
type RowError struct {
	Row int
	Err error
}

func (e *RowError) Error() string { return fmt.Sprintf("row %d: %v", e.Row, e.Err) }

// Unwrap returns the reason.
func (e *RowError) Unwrap() error { return e.Err }

// RecordFormats returns the formats of Records.
func RecordFormats() []string {
	return []string{"chat", "langchain", "laravel", "mastra", "responses", "vercel"}
}

// Record returns the messages of one row: see Records.
func Record(format string, value json.RawMessage, role string) ([]chat.Message, error) {
	all, err := Records(format, []Row{{value, role}})
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	var out []chat.Message
	for _, m := range all {
		out = append(out, m.Message)
	}
	return out, nil
}

// Records returns the messages of rows that follow each other in a session, in one of RecordFormats. A row
// can be several messages (the turn of an agent) or none (an empty one), and several rows one message (the
// calls of one answer, as the Agents SDK stores them). role is that of a value which has none, such as the
// parts alone. Values are valid JSON (see chat.SanitizeJSON). Messages are valid (see
// chat.Message.Validate), and have the ids that the records have. The error is a *RowError, and never
// quotes content.
func Records(format string, rows []Row) ([]Decoded, error) {
	read, ok := map[string]func([]Row) ([]Decoded, error){
		"chat": chatRows, "responses": responsesRows, "langchain": langChain.rows, "vercel": vercel.rows, "mastra": mastra.rows, "laravel": laravel.rows,
	}[format]
	if !ok {
		return nil, &RowError{Err: fmt.Errorf("format %q: want one of %s", format, strings.Join(RecordFormats(), ", "))}
	}
	out, err := read(rows)
	if err != nil {
		return nil, err
	}
	ms := make([]chat.Message, len(out))
	for i := range out {
		ms[i] = out[i].Message
	}
	assignIDs(ms)
	chat.Adopt(ms)
	for i := range out {
		if err := ms[i].Validate(); err != nil {
			return nil, &RowError{out[i].Rows[0], err}
		}
		out[i].Message = ms[i]
	}
	return out, nil
}

// object returns the row as an object. A list or a text is at the key bare of it, and an object
// without a role at wrap.
func (r Row) object(bare, wrap string) (object, error) {
	var o object
	switch rawjson.Kind(r.Value) {
	case '"', '[':
		if bare == "" {
			return nil, fmt.Errorf("want an object, got %s", rawjson.KindName(r.Value))
		}
		o = object{bare: r.Value}
	default:
		var err error
		if o, err = rawjson.ParseObject(r.Value); err != nil {
			return nil, err
		}
		if wrap != "" && o["role"] == nil {
			o = object{wrap: r.Value}
		}
	}
	if o["role"] == nil && o["type"] == nil && r.Role != "" {
		o["role"] = rawjson.Quote(r.Role)
	}
	return o, nil
}

func chatRows(rows []Row) (out []Decoded, err error) {
	for i, r := range rows {
		o, err := r.object("content", "")
		if err != nil {
			return nil, &RowError{i, err}
		}
		var m chat.Message
		if err := m.UnmarshalJSON(o.JSON()); err != nil {
			return nil, &RowError{i, err}
		}
		out = append(out, Decoded{m, []int{i}})
	}
	return out, nil
}

func responsesRows(rows []Row) (out []Decoded, err error) {
	d := &items{}
	for i, r := range rows {
		o, err := r.object("content", "")
		if err == nil {
			d.row = i
			_, err = d.add(o, o.JSON())
		}
		if err != nil {
			return nil, &RowError{i, err}
		}
	}
	for _, g := range d.groups {
		out = append(out, Decoded{g.Message, g.rows})
		for i, m := range g.results {
			out = append(out, Decoded{m, []int{g.resultRows[i]}})
		}
	}
	return out, nil
}

func (t *table) rows(rows []Row) (out []Decoded, err error) {
	d := t.reader()
	for i, r := range rows {
		o, err := r.object(t.bare, t.wrap)
		if err == nil {
			d.report.Values = i
			err = d.record(&fields{object: o})
		}
		if err != nil {
			return nil, &RowError{i, err}
		}
	}
	for _, e := range d.entries {
		for _, m := range e.messages {
			out = append(out, Decoded{m, slices.Clone(e.records)})
		}
	}
	return out, nil
}

package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// tableReader is the decoder of a table.
type tableReader struct {
	*table
	session chat.Session
	entries []tableEntry
	byID    map[string]int // entries by the ids of their records
	report  ReadReport
}

// tableEntry is a record, or several that are one message.
type tableEntry struct {
	id, parent, join string
	linked           bool // it names the record before it, possibly none
	other            string
	messages         []chat.Message
	line             int
	records          []int // numbers of the records, from 0
}

func (t *table) reader() *tableReader { return &tableReader{table: t, byID: map[string]int{}} }

func (d *tableReader) add(value []byte, line int) (*Session, error) {
	if rawjson.Kind(value) == '[' {
		return d.document(value, "", &fields{}, line)
	}
	o, err := rawjson.ParseObject(value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRecord, err)
	}
	f := &fields{object: o}
	for path := range strings.FieldsSeq(d.list) {
		if raw := f.value(path, true); raw != nil {
			return d.document(raw, path, f, line)
		}
	}
	d.report.line = line
	return nil, d.record(f)
}

func (d *tableReader) end() []Session {
	s := d.result("")
	return gathered(s.Session, s.Report)
}

// document reads a document with that list of records.
func (d *tableReader) document(list json.RawMessage, name string, f *fields, line int) (*Session, error) {
	in := d.reader()
	in.report.line = line
	in.describe(&d.doc, f)
	if system := f.take(d.doc.system); !blank(system) {
		one := &fields{object: object{"content": system}}
		m, err := in.messages(&kind{role: "=system", from: []source{{at: "content"}}}, one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.doc.system, err)
		}
		in.session.Messages = m
	}
	leaf := f.text(d.leaf)
	f.ignore(d.doc.ignore)
	f.rest("", in.drop)
	each := func(o object, _ json.RawMessage) error { return in.record(&fields{object: o}) }
	var err error
	if records, isMap := rawjson.ParseObject(list); isMap == nil {
		for _, key := range slices.Sorted(maps.Keys(records)) {
			if err = objects(rawjson.List([]json.RawMessage{records[key]}), name, each); err != nil {
				break
			}
		}
	} else {
		err = objects(list, name, each)
	}
	if err != nil {
		return nil, err
	}
	s := in.result(leaf)
	if len(s.Messages) == 0 {
		return nil, fmt.Errorf("no message in %d records", s.Report.Values)
	}
	return &s, nil
}

// describe takes the fields of a session.
func (d *tableReader) describe(k *kind, f *fields) {
	if id := f.text(k.session); id != "" && d.session.ID == "" {
		d.session.ID = id
	}
	if model := f.text(k.model); model != "" {
		d.session.Model = model
	}
	if title := f.text(k.title); title != "" {
		setExtra(&d.session.Extra, "title", rawjson.Quote(title))
	}
}

// drop counts a field or part that is left out.
func (d *tableReader) drop(name string) {
	d.report.begins(count(&d.report.Dropped, name, 1), d.report.line)
}

// record reads a record.
func (d *tableReader) record(f *fields) error {
	i := slices.IndexFunc(d.kinds, func(k kind) bool { return k.when == "" || f.holds(k.when) })
	if i < 0 {
		return unknown(f)
	}
	k := &d.kinds[i]
	e := tableEntry{line: d.report.line, records: []int{d.report.Values}}
	if k.other != "" {
		e.other = f.text(k.other)
	}
	_, e.linked = f.object[k.parent]
	e.id, e.parent, e.join = f.text(k.id), f.text(k.parent), f.text(k.join)
	if k.other == "" {
		var err error
		if e.messages, err = d.messages(k, f); err != nil {
			return err
		}
		for j := range e.messages {
			if e.messages[j].ID = e.id; j > 0 && e.id != "" {
				e.messages[j].ID = fmt.Sprintf("%s#%d", e.id, j+1)
			}
			if err := e.messages[j].Validate(); err != nil && !withoutID(err, &e.messages[j]) {
				return err
			}
		}
		if len(e.messages) == 0 {
			e.other = "empty"
		}
		f.ignore(k.ignore)
		f.rest("", d.drop)
	}
	d.describe(k, f)
	d.report.Values++
	d.entry(e, k.replaces)
	return nil
}

// withoutID reports whether a message is invalid only as it has no id of a call yet (see assignIDs).
func withoutID(err error, m *chat.Message) bool {
	return m.Role.Known() && !errors.Is(err, chat.ErrForeign) &&
		(m.Role == chat.RoleTool && m.ToolCallID == "" || slices.ContainsFunc(m.ToolCalls, func(c chat.ToolCall) bool { return c.ID == "" && c.Name != "" }))
}

// entry adds a record.
func (d *tableReader) entry(e tableEntry, replaces bool) {
	at, known := d.byID[e.id]
	switch last := len(d.entries) - 1; {
	case e.id != "" && known && replaces:
		e.records = append(d.entries[at].records, e.records...)
		d.entries[at].messages, d.entries[at].records = e.messages, e.records
		d.report.other("duplicate")
		return
	case e.join != "" && last >= 0 && d.entries[last].join == e.join:
		d.entries[last].append(e)
		d.byID[e.id] = last
		d.report.other("joined")
		return
	}
	if e.id != "" {
		d.byID[e.id] = len(d.entries)
	}
	d.entries = append(d.entries, e)
}

// append adds the parts and calls of another record to the message of the model.
func (e *tableEntry) append(o tableEntry) {
	for i := range o.messages {
		m := &o.messages[i]
		if i > 0 || len(e.messages) == 0 || m.Role != chat.RoleAssistant {
			e.messages = append(e.messages, *m)
			continue
		}
		to := &e.messages[0]
		to.Content = joined(to.Content, m.Content)
		to.ToolCalls = append(to.ToolCalls, m.ToolCalls...)
		if to.Reasoning == "" {
			to.Reasoning, to.ReasoningKey = m.Reasoning, m.ReasoningKey
		}
	}
	e.records = append(e.records, o.records...)
}

// joined returns two contents as one.
func joined(a, b chat.Content) chat.Content {
	switch parts := append(asParts(a), asParts(b)...); {
	case len(parts) == 0:
		return chat.Content{Null: true}
	case len(parts) == 1 && isPlain(parts[0]):
		return chat.TextContent(parts[0].Text)
	default:
		return chat.Content{Parts: parts}
	}
}

// unknown returns the error of a record of no kind.
func unknown(f *fields) error {
	for _, key := range []string{"type", "role", "kind"} {
		if rawjson.Kind(f.object[key]) == '"' {
			return fmt.Errorf("%w (%s %.40q)", errNoRecord, key, f.String(key))
		}
	}
	return errNoRecord
}

// result returns the session of the records that lead to leaf, or to the last one.
func (d *tableReader) result(leaf string) Session {
	on := d.branch(leaf)
	out := Session{Session: d.session, Report: d.report}
	place := func(i int) {
		e := &d.entries[i]
		if e.other != "" {
			out.Report.others(e.other, 1, e.line)
			return
		}
		out.Report.Messages++
		out.Messages = append(out.Messages, e.messages...)
	}
	for i, e := range d.entries {
		switch {
		case on == nil:
			place(i)
		case !slices.Contains(on, i):
			out.Report.others("abandoned", len(e.records), e.line)
		}
	}
	for _, i := range slices.Backward(on) {
		place(i)
	}
	assignIDs(out.Messages)
	chat.Adopt(out.Messages)
	return out
}

// branch returns the indexes of the records that lead to a leaf, from there on. It returns nil, for
// all records, where they are no tree.
func (d *tableReader) branch(leaf string) (on []int) {
	at := len(d.entries) - 1
	if i, ok := d.byID[leaf]; ok {
		at = i
	} else if leaf != "" {
		return nil
	}
	seen := map[int]bool{}
	for at >= 0 && d.entries[at].linked && !seen[at] {
		seen[at] = true
		on = append(on, at)
		parent := d.entries[at].parent
		if parent == "" {
			return on
		}
		next, ok := d.byID[parent]
		if !ok {
			return nil
		}
		at = next
	}
	return nil
}

// messages returns the messages of a record.
func (d *tableReader) messages(k *kind, f *fields) ([]chat.Message, error) {
	name := f.text(k.role)
	role, known := d.roles[name]
	if role == "" {
		role = chat.Role(name)
	}
	if !known && (len(d.roles) > 0 && !strings.HasPrefix(k.role, "=") || !role.Known()) {
		return nil, fmt.Errorf("role: want %s, got %.40q", d.roleNames(), name)
	}
	at := f.time(k.at)
	u := turn{tableReader: d, role: role, result: chat.Message{Role: chat.RoleTool, ToolCallID: f.text(k.call)}}
	if k.failed != "" && f.holds(k.failed) {
		setFlag(&u.result, "is_error")
	}
	u.name = f.text(k.name)
	for _, s := range k.from {
		if err := u.source(s, f.take(s.at)); err != nil {
			return nil, err
		}
	}
	out := u.messages()
	for i := range out {
		out[i].CreatedAt = at
		if i == 0 && f.holds(k.summary) {
			setFlag(&out[i], "is_compact_summary")
		}
		if i == 0 && f.holds(k.meta) {
			setFlag(&out[i], "is_meta")
		}
	}
	return out, nil
}

func (t *table) roleNames() string {
	if len(t.roles) == 0 {
		return "system, developer, user, assistant or tool"
	}
	return strings.Join(slices.Sorted(maps.Keys(t.roles)), ", ")
}

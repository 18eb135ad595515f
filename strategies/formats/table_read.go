package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	said    int            // index of the last entry that is not a result, or joins others; -1 for none
	open    int            // calls of the last answer without a result
	prompts []int          // indexes of the entries that the user can take back, those since a summary
	report  ReadReport
}

// tableEntry is a record, or several that are one message.
type tableEntry struct {
	id, parent, join string
	linked, leads    bool // linked: it names the record before it, possibly none
	other            string
	messages         []chat.Message
	line             int
	records          []int // numbers of the records, from 0
}

func (t *table) decoder() decoder { return t.reader() }

func (t *table) reader() *tableReader {
	return &tableReader{table: t, byID: map[string]int{}, said: -1}
}

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
	if records, isMap := rawjson.InnerObject(list); isMap == nil {
		list = rawjson.List(inOrder(records, leaf))
	}
	if err := objects(list, name, each); err != nil {
		return nil, err
	}
	if d.leaf != "" && len(in.entries) > 0 && in.branch(leaf) == nil {
		return nil, fmt.Errorf("%s: want the id of a record, from which parents lead to the first one", d.leaf)
	}
	s := in.result(leaf)
	if len(s.Messages) == 0 && !d.many { // of many documents, some can be empty
		return nil, fmt.Errorf("no message in %d records", s.Report.Values)
	}
	return &s, nil
}

// inOrder returns the records of a tree that is an object: those that lead to a leaf, and the others.
func inOrder(records object, leaf string) (all []json.RawMessage) {
	for raw := records.Take(leaf); raw != nil; {
		all = append(all, raw)
		o, _ := rawjson.InnerObject(raw) // nil for another value
		raw = records.Take(o.String("parent"))
	}
	slices.Reverse(all)
	for _, key := range slices.Sorted(maps.Keys(records)) {
		all = append(all, records[key])
	}
	return all
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
	e := tableEntry{line: d.report.line, records: []int{d.report.Values}, leads: k.leads, linked: k.parent != "" && f.one(k.parent+"?")}
	for path := range strings.FieldsSeq(k.other) {
		if name := f.text(path); name != "" {
			e.other = strings.TrimPrefix(e.other+":"+name, ":")
		}
	}
	e.id, e.parent, e.join = f.peek(k.id), f.peek(k.parent), f.peek(k.join)
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
	}
	d.describe(k, f)
	if k.other == "" {
		f.ignore(k.id + " " + k.parent + " " + k.join + " " + k.ignore)
		f.rest("", d.drop)
	}
	d.takeBack(k, f)
	d.report.Values++
	d.entry(e, k.replaces)
	return nil
}

// takeBack removes the entries that a record takes back.
func (d *tableReader) takeBack(k *kind, f *fields) {
	at := len(d.entries)
	if i, ok := d.byID[f.text(k.rewind)]; ok && k.rewind != "" {
		at = i
	}
	if n, _ := strconv.Atoi(f.text(k.undo)); n > 0 && n <= len(d.prompts) {
		at = d.prompts[len(d.prompts)-n]
	}
	for i, e := range d.entries[at:] {
		if d.byID[e.id] == at+i {
			delete(d.byID, e.id)
		}
		d.report.leave(e)
	}
	d.entries = d.entries[:at]
	d.said = min(d.said, at-1)
	left, _ := slices.BinarySearch(d.prompts, at)
	d.prompts = d.prompts[:left]
}

// withoutID reports whether a message is invalid only as it has no id of a call yet (see assignIDs).
func withoutID(err error, m *chat.Message) bool {
	return m.Role.Known() && !errors.Is(err, chat.ErrForeign) &&
		(m.Role == chat.RoleTool && m.ToolCallID == "" || slices.ContainsFunc(m.ToolCalls, func(c chat.ToolCall) bool { return c.ID == "" && c.Name != "" }))
}

// entry adds a record.
func (d *tableReader) entry(e tableEntry, replaces bool) {
	var last *tableEntry
	if d.said >= 0 {
		last = &d.entries[d.said]
	}
	at, known := d.byID[e.id]
	switch {
	case e.id != "" && known && replaces:
		was := &d.entries[at]
		was.messages, was.other, was.records = e.messages, e.other, append(was.records, e.records...)
		d.report.other("duplicate")
		return
	case d.joins(last, e) && last.merge(e):
		d.open += len(e.messages[0].ToolCalls)
		if e.id != "" {
			d.byID[e.id] = d.said
		}
		d.report.other("joined")
		return
	case last != nil && last.leads && len(e.messages) > 0 && e.messages[0].Role == chat.RoleAssistant:
		was := *last
		*last = tableEntry{id: e.id, parent: was.parent, linked: was.linked, join: e.join, leads: e.leads, line: was.line}
		last.messages, last.records = was.messages, was.records
		last.merge(e)
		last.messages[0].ID, last.messages[0].CreatedAt = e.messages[0].ID, e.messages[0].CreatedAt
		d.open = len(e.messages[0].ToolCalls)
		if e.id != "" {
			d.byID[e.id] = d.said
		}
		d.report.other("joined")
		return
	}
	if e.id != "" {
		d.byID[e.id] = len(d.entries)
	}
	if len(e.messages) > 0 && e.messages[0].Role != chat.RoleTool || e.join != "" {
		d.said = len(d.entries)
	}
	if m := e.prompt(); m != nil && flagged(m, "is_compact_summary") {
		d.prompts = nil
	} else if m != nil {
		d.prompts = append(d.prompts, len(d.entries))
	}
	d.entries = append(d.entries, e)
	for i := range e.messages {
		if e.messages[i].Role == chat.RoleTool {
			d.open--
		} else {
			d.open = len(e.messages[i].ToolCalls)
		}
	}
}

// prompt returns the message of the user that a record is, nil for none.
func (e *tableEntry) prompt() *chat.Message {
	if len(e.messages) == 0 || e.messages[0].Role != chat.RoleUser || flagged(&e.messages[0], "is_meta") {
		return nil
	}
	return &e.messages[0]
}

// joins reports whether a record belongs to the message of the last one. A result does not while a call
// waits for one.
func (d *tableReader) joins(last *tableEntry, e tableEntry) bool {
	if e.join == "" || last == nil || last.join != e.join || e.linked && d.byID[e.parent] != d.said || len(e.messages) == 0 {
		return false
	}
	return e.messages[0].Role != chat.RoleTool || d.open <= 0
}

// merge adds the parts and calls of another record, of the same role, and reports whether there are any.
func (e *tableEntry) merge(o tableEntry) bool {
	if len(e.messages) == 0 || len(o.messages) == 0 || e.messages[0].Role != o.messages[0].Role {
		return false
	}
	to, m := &e.messages[0], o.messages[0]
	to.Content = joined(to.Content, m.Content)
	to.ToolCalls = append(to.ToolCalls, m.ToolCalls...)
	if m.Reasoning != "" {
		to.Reasoning, to.ReasoningKey = strings.TrimPrefix(to.Reasoning+"\n\n"+m.Reasoning, "\n\n"), m.ReasoningKey
	}
	e.messages = append(e.messages, o.messages[1:]...)
	e.records = append(e.records, o.records...)
	return true
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
	if on == nil {
		for i := range d.entries {
			on = append(on, i)
		}
	}
	taken := make([]bool, len(d.entries))
	for _, i := range on {
		taken[i] = true
	}
	for i, e := range d.entries {
		if !taken[i] {
			out.Report.leave(e)
		}
	}
	for _, i := range on {
		e := &d.entries[i]
		if e.other != "" {
			out.Report.others(e.other, 1, e.line)
			continue
		}
		out.Report.Messages++
		out.Messages = append(out.Messages, e.messages...)
	}
	assignIDs(out.Messages)
	chat.Adopt(out.Messages)
	return out
}

// leave counts a record that is not on the session's branch.
func (r *ReadReport) leave(e tableEntry) {
	r.others(cmp.Or(e.other, "abandoned"), 1, e.line)
}

// branch returns the indexes of the records that lead to a leaf, or to the last one. It returns nil, for all
// records, where they are no tree.
func (d *tableReader) branch(leaf string) (on []int) {
	at, ok := d.byID[leaf]
	if !ok && d.leaf != "" {
		return nil
	} else if !ok {
		at = len(d.entries) - 1
	}
	seen := map[int]bool{}
	for at >= 0 && (d.entries[at].linked || d.leaf != "") && !seen[at] {
		seen[at] = true
		on = append(on, at)
		parent := d.entries[at].parent
		if parent == "" {
			slices.Reverse(on)
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
		if err := u.source(s, f); err != nil {
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

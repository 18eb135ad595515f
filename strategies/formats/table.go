package formats

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// table describes a format that is only read: where its records are, and which of their keys hold what.
// What no key of it names is counted in the report (see ReadReport.Dropped).
//
// A path is a list of keys, joined by dots; "0" and "-1" are the first and the last element of a list.
// A path^prefix is the rest of a text with that prefix. Of several paths, separated by spaces, the first
// is taken that is not empty. A condition is a path that has a value, path? for one that is there, be it
// null, path=text|text, path#[ for a kind of JSON (see facts), or one of these behind a ! that does not
// hold; of several, all hold.
type table struct {
	// list is the path of a document's records: a list, or an object of them. A value without it is
	// a record.
	list string
	// doc has the paths of a document that describe the session.
	doc   kind
	kinds []kind
	parts []rule
	roles map[string]chat.Role
	// many reports that a list at the top is one of documents, and leaf is the path of the id of the
	// last record on a document's branch.
	many bool
	leaf string
	// unwrap has the keys that stand for the whole of a result that is an object, with no more than
	// those of beside.
	unwrap, beside string
	// notes has the names of records that are known to be no part of the conversation (see IsMeta).
	notes string
	// bare is the key of a record's content where only that is stored (see Record), and wrap that of
	// an object without a role.
	bare, wrap string
}

// kind is a kind of record. One with the paths other is no message, and is counted by the texts there;
// =text is a text itself. A field that is empty is none.
type kind struct {
	when                  string // a condition
	other                 string
	role                  string
	id, parent, at, name  string
	session, model, title string
	call, failed          string // of a result: the id of its call; the condition of an error
	summary, meta         string // conditions
	system                string // a system prompt in a document
	join                  string // records after each other that have the same are one message
	leads                 bool   // it belongs to the next record of the model
	replaces              bool   // it takes the place of the record with the same id
	rewind                string // the id of a record that is taken back, with those after it
	undo                  string // how many of the last prompts are taken back, with what follows them
	from                  []source
	ignore                string // paths without meaning for the conversation
}

// source is a place in a record that holds a text, a part or a list of these; = is the record itself.
type source struct {
	at    string
	text  form   // of a text; isResult takes any value
	parts []rule // nil for those of the table
}

// form is what a part of a message is.
type form int

// A part that is nothing has no meaning for the conversation; one that is a list holds parts at text.
const (
	isText form = iota
	isNothing
	isReasoning
	isRedacted
	isCall
	isResult
	isMedia
	isList
	isGroup // it has several sources
	isStep  // as isGroup, and the next answer of the model begins
)

// rule describes a kind of part.
type rule struct {
	when                 string // a condition
	is                   form
	text, signature      string // of a text or reasoning
	id, name, args       string // of a call or a result
	output, done, failed string // of a result, also of a call with its result; done and failed are conditions
	url, data, mime      string // of media
	file                 string
	from                 []source // of a group or step
	ignore               string
}

// fields are the keys of a record. Objects in it are parsed once.
type fields struct {
	object
	in  map[string]*fields // objects that paths led into, in place of those in object
	raw json.RawMessage    // the object, until a key of it is taken
}

// inner returns the object at a key, nil if there is none.
func (f *fields) inner(key string) *fields {
	if in := f.in[key]; in != nil {
		return in
	}
	o, err := rawjson.InnerObject(f.object[key])
	if err != nil {
		return nil
	}
	if f.in == nil {
		f.in = map[string]*fields{}
	}
	f.in[key] = &fields{object: o, raw: f.object[key]}
	delete(f.object, key)
	return f.in[key]
}

// whole returns the object that the fields are of, without the keys that were taken.
func (f *fields) whole() json.RawMessage {
	if f.raw != nil {
		return f.raw
	}
	rest := maps.Clone(f.object)
	for key, in := range f.in {
		rest[key] = in.whole()
	}
	return rawjson.Build().Rest(rest).JSON()
}

// value returns the value of one path, nil for null and for none, and removes it if take.
func (f *fields) value(path string, take bool) json.RawMessage {
	path, prefix, _ := strings.Cut(path, "^")
	raw := f.at(path, take)
	switch {
	case rawjson.Kind(raw) == 'n':
		return nil
	case prefix == "":
		return raw
	}
	text, ok := strings.CutPrefix(rawjson.Text(raw), prefix)
	if rawjson.Kind(raw) != '"' || !ok {
		return nil
	}
	return rawjson.Quote(text)
}

func (f *fields) at(path string, take bool) (raw json.RawMessage) {
	key, rest, nested := strings.Cut(path, ".")
	if take {
		defer func() {
			if raw != nil {
				f.raw = nil
			}
		}()
	}
	if !nested {
		if in := f.in[key]; in != nil {
			raw = in.whole()
		} else {
			raw = f.object[key]
		}
		if take {
			delete(f.in, key)
			delete(f.object, key)
		}
		return raw
	}
	if in := f.inner(key); in != nil {
		return in.at(rest, take)
	}
	all, _ := rawjson.InnerArray(f.object[key])
	index, rest, nested := strings.Cut(rest, ".")
	i := slices.Index([]string{"0", "-1"}, index)
	if i < 0 || len(all) == 0 {
		return nil
	}
	if take {
		delete(f.object, key)
	}
	if raw = all[i*(len(all)-1)]; nested {
		o, _ := rawjson.InnerObject(raw) // nil for another value
		return (&fields{object: o}).at(rest, false)
	}
	return raw
}

// find returns the first value of some paths that is not empty, else the first, and its path.
func (f *fields) find(paths string) (found json.RawMessage, at string) {
	for path := range strings.FieldsSeq(paths) {
		if text, constant := strings.CutPrefix(path, "="); constant {
			return rawjson.Quote(text), ""
		}
		raw := f.value(path, false)
		if !blank(raw) {
			return raw, path
		}
		if raw != nil && found == nil {
			found, at = raw, path
		}
	}
	return found, at
}

// take removes and returns what find returns.
func (f *fields) take(paths string) json.RawMessage {
	raw, at := f.find(paths)
	if at != "" {
		f.value(at, true)
	}
	return raw
}

// first removes and returns the first value of some paths, be it empty.
func (f *fields) first(paths string) json.RawMessage {
	for path := range strings.FieldsSeq(paths) {
		if raw := f.value(path, true); raw != nil {
			return raw
		}
	}
	return nil
}

// text removes the first text or number of some paths.
func (f *fields) text(paths string) string { return textOf(f.take(paths)) }

// peek returns the first text or number of some paths.
func (f *fields) peek(paths string) string {
	raw, _ := f.find(paths)
	return textOf(raw)
}

// textOf returns a text or a number, "" for another value.
func textOf(raw json.RawMessage) string {
	switch rawjson.Kind(raw) {
	case '"':
		return rawjson.Text(raw)
	case '0':
		return string(raw)
	}
	return ""
}

// time removes the first time of some paths.
func (f *fields) time(paths string) time.Time {
	for path := range strings.FieldsSeq(paths) {
		if at, ok := chat.ParseTime(f.value(path, false)); ok {
			f.value(path, true)
			return at
		}
	}
	return time.Time{}
}

// holds reports whether all of the conditions hold; none never do.
func (f *fields) holds(conditions string) bool {
	for condition := range strings.FieldsSeq(conditions) {
		condition, not := strings.CutPrefix(condition, "!")
		if f.one(condition) == not {
			return false
		}
	}
	return conditions != ""
}

func (f *fields) one(condition string) bool {
	if path, want, ok := strings.Cut(condition, "="); ok {
		raw := f.value(path, false)
		is := string(raw)
		if rawjson.Kind(raw) == '"' {
			is = rawjson.Text(raw)
		}
		return raw != nil && slices.Contains(strings.Split(want, "|"), is)
	}
	if path, ok := strings.CutSuffix(condition, "?"); ok {
		return f.at(path, false) != nil
	}
	path, want, ok := strings.Cut(condition, "#")
	raw := f.value(path, false)
	if kind := rawjson.Kind(raw); ok {
		return string(kind) == strings.ReplaceAll(want, "s", `"`)
	}
	return raw != nil
}

// rest calls yield with the paths of the keys that are left and not empty.
func (f *fields) rest(at string, yield func(path string)) {
	for key, raw := range f.object {
		if !blank(raw) {
			yield(at + key)
		}
	}
	for key, in := range f.in {
		in.rest(at+key+".", yield)
	}
}

// ignore removes paths.
func (f *fields) ignore(paths string) {
	for path := range strings.FieldsSeq(paths) {
		f.value(path, true)
	}
}

package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Object is a JSON object. Readers take the fields that they use; the rest stays.
type Object map[string]json.RawMessage

// ParseObject decodes an object.
func ParseObject(raw []byte) (Object, error) {
	if Kind(raw) == '{' && !json.Valid(raw) {
		return nil, errInvalid
	}
	return InnerObject(raw)
}

// ParseArray decodes an array.
func ParseArray(raw []byte) ([]json.RawMessage, error) {
	if Kind(raw) == '[' && !json.Valid(raw) {
		return nil, errInvalid
	}
	return InnerArray(raw)
}

var errInvalid = errors.New("no valid JSON")

// InnerObject decodes an object that is valid JSON, as a value of another object is.
func InnerObject(raw []byte) (Object, error) {
	if Kind(raw) != '{' {
		return nil, fmt.Errorf("want an object, got %s", KindName(raw))
	}
	o := Object{}
	var key json.RawMessage
	for value := range values(raw) {
		if key == nil {
			key = value
			continue
		}
		o[Text(key)], key = bytes.Clone(value), nil
	}
	return o, nil
}

// InnerArray decodes an array that is valid JSON.
func InnerArray(raw []byte) ([]json.RawMessage, error) {
	if Kind(raw) != '[' {
		return nil, fmt.Errorf("want an array, got %s", KindName(raw))
	}
	all := []json.RawMessage{}
	for value := range values(raw) {
		all = append(all, bytes.Clone(value))
	}
	return all, nil
}

// Take removes key and returns its value, or nil if it is null or absent.
func (o Object) Take(key string) json.RawMessage {
	raw := o[key]
	delete(o, key)
	if Kind(raw) == 'n' {
		return nil
	}
	return raw
}

// TakeString removes key if it is a string or null, and returns the string.
func (o Object) TakeString(key string) string {
	switch Kind(o[key]) {
	case '"', 'n':
		if raw := o.Take(key); raw != nil {
			return Text(raw)
		}
	}
	return ""
}

// TakeTrue removes key if it is a boolean, and reports whether it was true.
func (o Object) TakeTrue(key string) bool {
	switch Kind(o[key]) {
	case 't', 'f':
		return Kind(o.Take(key)) == 't'
	}
	return false
}

// String returns the string at key, or "" if there is none.
func (o Object) String(key string) string {
	if Kind(o[key]) != '"' {
		return ""
	}
	return Text(o[key])
}

// Object returns a copy of the object at key, or nil if there is none.
func (o Object) Object(key string) Object {
	in, err := ParseObject(o[key])
	if err != nil {
		return nil
	}
	return in
}

// JSON returns the object on one line with its keys in order, or nil if it is empty.
func (o Object) JSON() json.RawMessage {
	if len(o) == 0 {
		return nil
	}
	return Build().Rest(o).JSON()
}

// Members yields the keys of a valid JSON object and the bounds of their values, in order and
// including duplicates. It yields nothing for another value.
func Members(object []byte) iter.Seq2[string, [2]int] {
	return func(yield func(string, [2]int) bool) {
		d := json.NewDecoder(bytes.NewReader(object))
		if t, _ := d.Token(); t != json.Delim('{') {
			return
		}
		for d.More() {
			key, _ := d.Token()
			name, ok := key.(string)
			var value json.RawMessage
			if !ok || d.Decode(&value) != nil {
				return
			}
			end := int(d.InputOffset())
			if !yield(name, [2]int{end - len(value), end}) {
				return
			}
		}
	}
}

// Without returns a copy of the object that lacks keys, or nil if it is empty then.
func (o Object) Without(keys ...string) Object {
	out := maps.Clone(o)
	for _, key := range keys {
		delete(out, key)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Set sets keys and values in turn. A value is a string, or JSON; nil sets nothing.
func (o Object) Set(pairs ...any) {
	for pair := range slices.Chunk(pairs, 2) {
		if value := rawOf(pair[1]); value != nil { //nolint:gosec // pairs are complete
			o[pair[0].(string)] = value
		}
	}
}

// Builder writes an object on one line, key by key.
type Builder struct{ b []byte }

// Build begins an object with keys and values in turn. A value is a string, or JSON; nil is
// left out.
func Build(pairs ...any) *Builder {
	b := &Builder{}
	for pair := range slices.Chunk(pairs, 2) {
		b.Add(pair[0].(string), rawOf(pair[1])) //nolint:gosec // pairs are complete
	}
	return b
}

// Add adds a key unless its value is nil.
func (b *Builder) Add(key string, value json.RawMessage) {
	if value == nil {
		return
	}
	sep := byte(',')
	if len(b.b) == 0 {
		sep = '{'
	}
	b.b = append(append(append(append(b.b, sep), Quote(key)...), ':'), OneLine(value)...)
}

// Rest adds the keys of o, in order; nil values are null.
func (b *Builder) Rest(o Object) *Builder {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		b.Add(key, OrNull(o[key]))
	}
	return b
}

// JSON returns the object.
func (b *Builder) JSON() json.RawMessage {
	if len(b.b) == 0 {
		return json.RawMessage("{}")
	}
	return append(b.b, '}')
}

// rawOf returns a string as JSON, and JSON as it is.
func rawOf(v any) json.RawMessage {
	if s, ok := v.(string); ok {
		return Quote(s)
	}
	return v.(json.RawMessage)
}

// OrNull returns raw, or null for an empty value.
func OrNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// OneLine returns raw without line breaks: in JSON they are white space.
func OneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return raw
	}
	return b.Bytes()
}

// List returns an array on one line.
func List(values []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, OneLine(v)...)
	}
	return append(out, ']')
}

package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// object is a JSON object whose keys are taken one by one. What nobody took is
// what the reader has no use for.
type object map[string]json.RawMessage

func parseObject(raw []byte) (object, error) {
	if kind(raw) != '{' {
		return nil, fmt.Errorf("want an object, got %s", kindName(raw))
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, errors.New("no valid JSON")
	}
	return o, nil
}

// take removes key and returns its value, nil where it is null or absent.
func (o object) take(key string) json.RawMessage {
	raw := o[key]
	delete(o, key)
	if kind(raw) == 'n' {
		return nil
	}
	return raw
}

// takeString removes key if it is a string or null; "" stands for one that is no
// string.
func (o object) takeString(key string) string {
	switch kind(o[key]) {
	case '"':
		return text(o.take(key))
	case 'n':
		delete(o, key)
	}
	return ""
}

// takeTrue removes key if it is a boolean, and reports whether it was true.
func (o object) takeTrue(key string) bool {
	switch kind(o[key]) {
	case 't', 'f':
		return kind(o.take(key)) == 't'
	}
	return false
}

// takeTime removes key if it is a time as logs write it.
func (o object) takeTime(key string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, o.string(key))
	if err != nil || t.IsZero() {
		return time.Time{}
	}
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	delete(o, key)
	return t
}

// string returns the string at key, "" where there is none.
func (o object) string(key string) string {
	if kind(o[key]) != '"' {
		return ""
	}
	return text(o[key])
}

// object returns a copy of the object at key, nil where there is none.
func (o object) object(key string) object {
	in, err := parseObject(o[key])
	if err != nil {
		return nil
	}
	return in
}

// raw writes o with its keys in order; nil where it is empty.
func (o object) raw() json.RawMessage {
	if len(o) == 0 {
		return nil
	}
	var b builder
	b.rest(o)
	return b.done()
}

// array returns the elements of an array.
func array(raw json.RawMessage) ([]json.RawMessage, error) {
	if kind(raw) != '[' {
		return nil, fmt.Errorf("want an array, got %s", kindName(raw))
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, errors.New("no valid JSON")
	}
	return all, nil
}

// text decodes a JSON string that is known to be valid.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // valid: it was cut out by a decoder
	return s
}

// kind is the first byte of a JSON value that is no white space: it tells the
// type. A number is '0', nothing 0.
func kind(raw []byte) byte {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	switch {
	case len(raw) == 0:
		return 0
	case strings.IndexByte(`{["tfn`, raw[0]) >= 0:
		return raw[0]
	}
	return '0'
}

func kindName(raw []byte) string {
	switch kind(raw) {
	case 0:
		return "nothing"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// blank reports whether a raw value says nothing.
func blank(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", `""`, "[]", "{}":
		return true
	}
	return false
}

// builder writes an object key by key.
type builder struct{ b []byte }

func (b *builder) raw(key string, value []byte) {
	if value == nil {
		return
	}
	if len(b.b) == 0 {
		b.b = append(b.b, '{')
	} else {
		b.b = append(b.b, ',')
	}
	b.b = append(append(append(b.b, quote(key)...), ':'), oneLine(value)...)
}

func (b *builder) str(key, value string) { b.raw(key, quote(value)) }

// strIf writes a string that is not empty.
func (b *builder) strIf(key, value string) {
	if value != "" {
		b.str(key, value)
	}
}

func (b *builder) time(key string, t time.Time) {
	if !t.IsZero() {
		b.str(key, t.UTC().Format(time.RFC3339Nano))
	}
}

// rest writes the keys of o, in order.
func (b *builder) rest(o map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		b.raw(key, orNull(o[key]))
	}
}

func (b *builder) done() json.RawMessage {
	if len(b.b) == 0 {
		return json.RawMessage("{}")
	}
	return append(b.b, '}')
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// oneLine returns raw without line breaks: in JSON they are white space.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return raw
	}
	return b.Bytes()
}

// quote writes s as a JSON string, as package chat does.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a JSON form
	return bytes.TrimSpace(b.Bytes())
}

func list(values []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, oneLine(v)...)
	}
	return append(out, ']')
}

// without returns a copy of o that lacks keys, nil where nothing is left.
func without(o map[string]json.RawMessage, keys ...string) map[string]json.RawMessage {
	out := maps.Clone(o)
	for _, key := range keys {
		delete(out, key)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// setExtra sets a key of a message's Extra, unless raw is nil.
func setExtra(m *chat.Message, key string, raw json.RawMessage) {
	if raw == nil {
		return
	}
	if m.Extra == nil {
		m.Extra = map[string]json.RawMessage{}
	}
	m.Extra[key] = raw
}

// flagged reports whether a key of Extra is true.
func flagged(m *chat.Message, key string) bool { return string(m.Extra[key]) == "true" }

var isTrue = json.RawMessage("true")

package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// object is a JSON object whose keys are taken one by one. What is left is
// what the reader has no use for.
type object map[string]json.RawMessage

func parseObject(raw []byte) (object, error) {
	if rawjson.Kind(raw) != '{' {
		return nil, fmt.Errorf("want an object, got %s", rawjson.KindName(raw))
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, errors.New("no valid JSON")
	}
	return o, nil
}

// take removes key and returns its value, nil where it is null or absent.
func (o object) take(key string) json.RawMessage { return rawjson.Take(o, key) }

// takeString removes key if it is a string or null; "" stands for one that is no
// string.
func (o object) takeString(key string) string {
	switch rawjson.Kind(o[key]) {
	case '"':
		return rawjson.Text(o.take(key))
	case 'n':
		delete(o, key)
	}
	return ""
}

// takeTrue removes key if it is a boolean, and reports whether it was true.
func (o object) takeTrue(key string) bool {
	switch rawjson.Kind(o[key]) {
	case 't', 'f':
		return rawjson.Kind(o.take(key)) == 't'
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
	if rawjson.Kind(o[key]) != '"' {
		return ""
	}
	return rawjson.Text(o[key])
}

// object returns a copy of the object at key, nil where there is none.
func (o object) object(key string) object {
	in, err := parseObject(o[key])
	if err != nil {
		return nil
	}
	return in
}

// own returns a copy of the object at key, an empty one where there is none.
func (o object) own(key string) object {
	if in := o.object(key); in != nil {
		return in
	}
	return object{}
}

// raw writes o with its keys in order; nil where it is empty.
func (o object) raw() json.RawMessage {
	if len(o) == 0 {
		return nil
	}
	return build().rest(o).done()
}

// array returns the elements of an array.
func array(raw json.RawMessage) ([]json.RawMessage, error) {
	if rawjson.Kind(raw) != '[' {
		return nil, fmt.Errorf("want an array, got %s", rawjson.KindName(raw))
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, errors.New("no valid JSON")
	}
	return all, nil
}

// objects calls f with each object of an array. An error begins with the name of the
// array, where it has one, and the index.
func objects(raw json.RawMessage, name string, f func(o object, raw json.RawMessage) error) error {
	all, err := array(raw)
	if err != nil && name != "" {
		err = fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return err
	}
	for i, raw := range all {
		o, err := parseObject(raw)
		if err == nil {
			err = f(o, raw)
		}
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
	}
	return nil
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

// build begins an object with keys and values in turn. A value is a string, or JSON,
// of which nil is left out.
func build(pairs ...any) *builder {
	b := &builder{}
	for pair := range slices.Chunk(pairs, 2) {
		key, value := pair[0].(string), pair[1] //nolint:gosec // pairs are complete
		if s, ok := value.(string); ok {
			b.raw(key, rawjson.Quote(s))
			continue
		}
		b.raw(key, value.(json.RawMessage))
	}
	return b
}

func (b *builder) raw(key string, value json.RawMessage) {
	if value == nil {
		return
	}
	if len(b.b) == 0 {
		b.b = append(b.b, '{')
	} else {
		b.b = append(b.b, ',')
	}
	b.b = append(append(append(b.b, rawjson.Quote(key)...), ':'), oneLine(value)...)
}

// rest writes the keys of o, in order.
func (b *builder) rest(o map[string]json.RawMessage) *builder {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		b.raw(key, orNull(o[key]))
	}
	return b
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

// quoteIf writes a string that is not empty; nil stands for one that is.
func quoteIf(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return rawjson.Quote(s)
}

// timestamp writes a time as logs do, nil for none.
func timestamp(t time.Time) json.RawMessage {
	if t.IsZero() {
		return nil
	}
	return rawjson.Quote(t.UTC().Format(time.RFC3339Nano))
}

func boolean(v bool) json.RawMessage { return strconv.AppendBool(nil, v) }

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

// setExtra sets a key of the Extra of a message or session, unless raw is nil.
func setExtra(extra *map[string]json.RawMessage, key string, raw json.RawMessage) {
	if raw == nil {
		return
	}
	if *extra == nil {
		*extra = map[string]json.RawMessage{}
	}
	(*extra)[key] = raw
}

// flagged reports whether a key of Extra is true.
func flagged(m *chat.Message, key string) bool { return string(m.Extra[key]) == "true" }

var isTrue = json.RawMessage("true")

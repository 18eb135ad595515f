package builtin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// pyObject is a JSON object in the order of its text, as a Python dict is.
type pyObject []pyPair

type pyPair struct {
	key   string
	value any
}

func (o pyObject) get(key string) any {
	for _, p := range o {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

func (o pyObject) text(key string) string {
	s, _ := o.get(key).(string)
	return s
}

// readPy reads JSON into pyObject, []any, string, json.Number, bool and nil.
func readPy(raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return readPyValue(d)
}

func readPyValue(d *json.Decoder) any {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, readPyValue(d))
		}
		_, _ = d.Token()
		return list
	case json.Delim('{'):
		object := pyObject{}
		for d.More() {
			key, _ := d.Token()
			object = append(object, pyPair{key.(string), readPyValue(d)})
		}
		_, _ = d.Token()
		return object
	}
	return token
}

// pyJSON is v as Python's json.dumps writes it, nothing escaped that need not be.
func pyJSON(v any, sorted bool) string {
	var b strings.Builder
	writePy(&b, v, sorted)
	return b.String()
}

func writePy(b *strings.Builder, v any, sorted bool) {
	switch v := v.(type) {
	case string:
		writePyString(b, v)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writePy(b, e, sorted)
		}
		b.WriteByte(']')
	case pyObject:
		if sorted {
			v = slices.Clone(v)
			slices.SortFunc(v, func(a, b pyPair) int { return cmp.Compare(a.key, b.key) })
		}
		b.WriteByte('{')
		for i, p := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writePyString(b, p.key)
			b.WriteString(": ")
			writePy(b, p.value, sorted)
		}
		b.WriteByte('}')
	default: // numbers, booleans and null are the same in both
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		b.Write(raw)
	}
}

func writePyString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch i := strings.IndexRune("\"\\\n\r\t\b\f", r); {
		case i >= 0:
			b.WriteByte('\\')
			b.WriteByte(`"\nrtbf`[i])
		case r < 0x20:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

// pyText is v as Python's str prints what is no string, list or dict.
func pyText(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	}
	return fmt.Sprint(v)
}

package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// The reference shows the arguments of a call as Python writes them.

// pythonDict is an object in the order of its keys.
type pythonDict struct {
	keys   []string
	values map[string]any
}

// timbalInput returns what the reference makes of arguments: what is no object is an
// empty one.
func timbalInput(raw string) any {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	v, err := pythonValue(d)
	if dict, ok := v.(*pythonDict); ok && err == nil && !d.More() {
		return dict
	}
	return &pythonDict{}
}

// timbalArguments returns the arguments as the reference's summarizer reads them.
func timbalArguments(raw string) string { return pythonDumps(timbalInput(raw)) }

func pythonValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		dict := &pythonDict{values: map[string]any{}}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string)
			v, err := pythonValue(d)
			if err != nil {
				return nil, err
			}
			if _, twice := dict.values[name]; !twice {
				dict.keys = append(dict.keys, name)
			}
			dict.values[name] = v
		}
		_, err := d.Token()
		return dict, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := pythonValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return token, nil
}

func pythonDumps(v any) string {
	return pythonWrite(v, pythonJSONString, "null", "true", "false")
}

// pythonRepr returns the str of a value.
func pythonRepr(v any) string {
	return pythonWrite(v, pythonString, "None", "True", "False")
}

func pythonWrite(v any, str func(string) string, null, yes, no string) string {
	switch v := v.(type) {
	case *pythonDict:
		parts := make([]string, len(v.keys))
		for i, key := range v.keys {
			parts[i] = str(key) + ": " + pythonWrite(v.values[key], str, null, yes, no)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = pythonWrite(v[i], str, null, yes, no)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return str(v)
	case json.Number:
		return pythonNumber(v)
	case bool:
		if v {
			return yes
		}
		return no
	}
	return null
}

func pythonNumber(n json.Number) string {
	if !strings.ContainsAny(n.String(), ".eE") {
		if n == "-0" {
			return "0"
		}
		return n.String()
	}
	f, _ := n.Float64()
	s := strconv.FormatFloat(f, 'e', -1, 64)
	_, e, _ := strings.Cut(s, "e")
	if exp, _ := strconv.Atoi(e); exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// pythonJSONString returns a string in JSON that holds nothing but ASCII.
func pythonJSONString(s string) string {
	var raw bytes.Buffer
	e := json.NewEncoder(&raw)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	var b strings.Builder
	for _, r := range strings.TrimSuffix(raw.String(), "\n") {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		}
	}
	return b.String()
}

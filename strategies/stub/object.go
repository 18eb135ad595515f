package stub

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// object is a JSON object: its fields in order, names that repeat included.
type object []field

// field is a name and its value as JSON.
type field struct{ key, value string }

// fields reads arguments; what is no JSON object has none.
func fields(arguments string) object {
	if !json.Valid([]byte(arguments)) {
		return nil
	}
	i := blank(arguments, 0)
	if arguments[i] != '{' {
		return nil
	}
	var out object
	for i = blank(arguments, i+1); arguments[i] != '}'; {
		end := stringEnd(arguments, i)
		key := rawjson.Text([]byte(arguments[i:end]))
		i = blank(arguments, blank(arguments, end)+1) // over the colon
		end = valueEnd(arguments, i)
		out = append(out, field{key, arguments[i:end]})
		if i = blank(arguments, end); arguments[i] == ',' {
			i = blank(arguments, i+1)
		}
	}
	return out
}

// elements returns the values of a JSON array; what is none has none.
func elements(array string) []string {
	if array == "" || array[0] != '[' {
		return nil
	}
	var out []string
	for i := blank(array, 1); array[i] != ']'; {
		end := valueEnd(array, i)
		out = append(out, array[i:end])
		if i = blank(array, end); array[i] == ',' {
			i = blank(array, i+1)
		}
	}
	return out
}

// raw returns the value of a field as JSON, the last one of that name, or "".
func (o object) raw(key string) string {
	for _, f := range slices.Backward(o) {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// text returns a field that is a string, or "".
func (o object) text(key string) string {
	if raw := o.raw(key); raw != "" && raw[0] == '"' {
		return rawjson.Text([]byte(raw))
	}
	return ""
}

// show returns a field as one reads it, or missing.
func (o object) show(key, missing string) string { return show(o.raw(key), missing) }

// distinct returns the first n fields, each name at its first place and with its last
// value.
func (o object) distinct(n int) []field {
	var out []field
	for _, f := range o {
		if len(out) == n {
			break
		}
		known := false
		for _, e := range out {
			known = known || e.key == f.key
		}
		if !known {
			out = append(out, field{f.key, o.raw(f.key)})
		}
	}
	return out
}

// show returns a value as one reads it: the text of a string, everything else as JSON
// with a space behind each comma and colon. Null and nothing are missing.
func show(raw, missing string) string {
	switch {
	case raw == "" || raw == "null":
		return missing
	case raw[0] == '"':
		return rawjson.Text([]byte(raw))
	case raw[0] != '{' && raw[0] != '[':
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); {
		switch c := raw[i]; c {
		case '"':
			end := stringEnd(raw, i)
			b.WriteString(string(rawjson.Quote(rawjson.Text([]byte(raw[i:end])))))
			i = end
			continue
		case ' ', '\t', '\r', '\n':
		case ',', ':':
			b.WriteByte(c)
			b.WriteByte(' ')
		default:
			b.WriteByte(c)
		}
		i++
	}
	return b.String()
}

// blank returns the index of what follows the white space at i.
func blank(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// stringEnd returns the index behind the string that starts at i of valid JSON.
func stringEnd(s string, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns the index behind the value that starts at i of valid JSON.
func valueEnd(s string, i int) int {
	for depth := 0; ; {
		switch s[i] {
		case '"':
			i = stringEnd(s, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			i++ // only within an object or array
			continue
		default: // a number or a word
			for i < len(s) && strings.IndexByte(",:]} \t\r\n", s[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

package stub

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// object holds the fields of a JSON object in order, including duplicates.
type object []field

// field is a name and its value as JSON.
type field struct{ key, value string }

// fields parses arguments; it returns nil if they are not a JSON object.
func fields(arguments string) object {
	if !json.Valid([]byte(arguments)) {
		return nil
	}
	i := skipSpace(arguments, 0)
	if arguments[i] != '{' {
		return nil
	}
	var out object
	for i = skipSpace(arguments, i+1); arguments[i] != '}'; {
		end := stringEnd(arguments, i)
		key := rawjson.Text([]byte(arguments[i:end]))
		i = skipSpace(arguments, skipSpace(arguments, end)+1) // after the colon
		end = valueEnd(arguments, i)
		out = append(out, field{key, arguments[i:end]})
		if i = skipSpace(arguments, end); arguments[i] == ',' {
			i = skipSpace(arguments, i+1)
		}
	}
	return out
}

// elements returns the values of a JSON array, or nil for any other value.
func elements(array string) []string {
	if array == "" || array[0] != '[' {
		return nil
	}
	var out []string
	for i := skipSpace(array, 1); array[i] != ']'; {
		end := valueEnd(array, i)
		out = append(out, array[i:end])
		if i = skipSpace(array, end); array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
	return out
}

// raw returns the JSON of a field, the last one of that name, or "".
func (o object) raw(key string) string {
	for _, f := range slices.Backward(o) {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// text returns the value of a string field, or "".
func (o object) text(key string) string {
	if raw := o.raw(key); raw != "" && raw[0] == '"' {
		return rawjson.Text([]byte(raw))
	}
	return ""
}

// show returns a field as text, or missing.
func (o object) show(key, missing string) string { return show(o.raw(key), missing) }

// distinct returns the first n fields with different names. A duplicate keeps its first
// position and its last value.
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

// show returns a value as text: a string without quotes, other values as JSON with a space
// after each comma and colon, and missing for null and for no value.
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

// skipSpace returns the index after the white space at i.
func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// stringEnd returns the index after the string that starts at i of valid JSON.
func stringEnd(s string, i int) int {
	for i++; s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns the index after the value that starts at i of valid JSON.
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
			i++ // occurs only within an object or array
			continue
		default: // a number, true, false or null
			for i < len(s) && strings.IndexByte(",:]} \t\r\n", s[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

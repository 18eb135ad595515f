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
	raw := []byte(arguments)
	if !json.Valid(raw) {
		return nil
	}
	var out object
	for key, at := range rawjson.Members(raw) {
		out = append(out, field{key, arguments[at[0]:at[1]]})
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
		if !slices.ContainsFunc(out, func(e field) bool { return e.key == f.key }) {
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

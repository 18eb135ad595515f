// Package rawjson reads fields of JSON values whose other parts are kept as they are, and
// writes JSON without the escapes that encoding/json adds for HTML.
package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Kind returns a byte for the type of a JSON value: '{', '[', '"', 't', 'f' or 'n', its
// first one, '0' for a number, and 0 for an empty value.
func Kind(raw []byte) byte {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	switch {
	case len(raw) == 0:
		return 0
	case strings.IndexByte(`{["tfn`, raw[0]) >= 0:
		return raw[0]
	}
	return '0'
}

// KindName returns the name of a JSON value's type, for errors.
func KindName(raw []byte) string {
	switch Kind(raw) {
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

// Text decodes a JSON string that is known to be valid.
func Text(raw json.RawMessage) string {
	if s, ok := unquote(raw); ok {
		return s
	}
	var s string
	_ = json.Unmarshal(raw, &s) // valid: it was cut out by a decoder
	return s
}

// Quote returns a value as JSON on one line, with only the escapes that JSON requires.
// It returns nothing for a value that has no JSON form; strings and valid JSON have one.
func Quote(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // an error leaves the buffer empty
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

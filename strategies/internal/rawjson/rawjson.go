// Package rawjson looks into JSON values without decoding them.
package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Kind returns the first byte of a JSON value that is no white space, which tells the
// type: '{', '[', '"', 't', 'f' or 'n'. A number is '0', nothing 0.
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

// KindName names the type of a JSON value, for errors.
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
	var s string
	_ = json.Unmarshal(raw, &s) // valid: it was cut out by a decoder
	return s
}

// Take removes key from o and returns its value, nil where it is null or absent.
func Take(o map[string]json.RawMessage, key string) json.RawMessage {
	raw := o[key]
	delete(o, key)
	if Kind(raw) == 'n' {
		return nil
	}
	return raw
}

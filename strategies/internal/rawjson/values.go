package rawjson

import (
	"bytes"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// values yields the elements of a valid array, or the keys and values of a valid object in turn. They
// share memory with it.
func values(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := bytes.IndexAny(raw, "{[") + 1; ; {
			for strings.IndexByte(" \t\r\n,:", raw[i]) >= 0 {
				i++
			}
			if raw[i] == '}' || raw[i] == ']' {
				return
			}
			end := valueEnd(raw, i)
			if !yield(raw[i:end]) {
				return
			}
			i = end
		}
	}
}

// valueEnd returns the end of the value at i of a valid object or array.
func valueEnd(raw []byte, i int) int {
	depth := 0
	for {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
			continue // within an object or an array
		default:
			for strings.IndexByte(" \t\r\n,]}", raw[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

// stringEnd returns the end of the string at i.
func stringEnd(raw []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(raw[i:], '"')
		escapes := i
		for raw[escapes-1] == '\\' {
			escapes--
		}
		if (i-escapes)%2 == 0 {
			return i + 1
		}
	}
}

// escaped maps the characters after a backslash to those that they stand for.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unquote decodes a valid string. It leaves rare ones to the decoder: those with characters outside of the
// basic plane as escapes, or with invalid UTF-8.
func unquote(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' || !utf8.Valid(raw) {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	at := bytes.IndexByte(raw, '\\')
	if at < 0 {
		return string(raw), true
	}
	var b strings.Builder
	b.Grow(len(raw))
	for ; at >= 0; at = bytes.IndexByte(raw, '\\') {
		b.Write(raw[:at])
		if raw[at+1] != 'u' {
			b.WriteByte(escaped[raw[at+1]])
			raw = raw[at+2:]
			continue
		}
		r, err := strconv.ParseUint(string(raw[at+2:at+6]), 16, 16)
		if err != nil || utf16.IsSurrogate(rune(r)) {
			return "", false
		}
		b.WriteRune(rune(r))
		raw = raw[at+6:]
	}
	b.Write(raw)
	return b.String(), true
}

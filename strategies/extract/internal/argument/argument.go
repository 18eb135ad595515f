// Package argument reads the arguments of tool calls, and results that are JSON, as a flat list of values with their keys,
// and writes short ones for a summary: "date 2026-03-04, seats 2". It knows nothing of the tools that take them. Its
// functions are pure and safe for concurrent use. Those of a list share memory with it, except what Short returns.
package argument

import (
	"encoding/json"
	"io"
	"strings"
	"unicode"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
)

// Field is one value: the nearest key, and the number of the object that contains it. Objects are numbered from 1 in the
// order in which they begin; Object is 0 outside of any.
type Field struct {
	Key, Value string
	Object     int
	// Row is the number of the object around it that is an element of a list, or the outermost,
	// Path the keys from there to the object, and List the key of the list.
	Row        int
	Path, List string
}

// MaxKey is the number of characters of a key that is told; those of a path are twice as many bytes at most.
const MaxKey = 40

// MaxJSON is the number of bytes of a result up to which it is read as JSON.
const MaxJSON = 64 << 10

// maxDepth is the nesting of arguments up to which they are read as JSON.
const maxDepth = 100

// Parse returns the values of arguments in order, and false if they are not one value of JSON. Values that are no text are
// as JSON has them, a key that is too long or of several lines is empty.
func Parse(arguments string) ([]Field, bool) {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	var found []Field
	objects := 0
	var read func(in Field, listed bool, depth int) bool
	read = func(in Field, listed bool, depth int) bool {
		token, err := d.Token()
		if err != nil || depth > maxDepth {
			return false
		}
		value := "null"
		switch v := token.(type) {
		case json.Delim:
			if v == '{' {
				objects++
				if in.Object = objects; !prose.IsPrintable(in.Key) || len(in.Path)+len(in.Key) > 2*MaxKey {
					in.Key = ""
				}
				if listed {
					in.Row, in.Path, in.List = objects, "", in.Key
				} else {
					in.Path = strings.TrimSpace(in.Path + " " + in.Key)
				}
			}
			for d.More() {
				if v == '{' {
					name, err := d.Token()
					if err != nil {
						return false
					}
					in.Key = name.(string)
				}
				if !read(in, v == '[', depth+1) {
					return false
				}
			}
			_, err := d.Token()
			return err == nil
		case string:
			value = v
		case json.Number:
			value = v.String()
		case bool:
			value = map[bool]string{true: "true", false: "false"}[v]
		}
		in.Value = value
		found = append(found, in)
		return true
	}
	if !read(Field{}, true, 1) {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false
	}
	return found, true
}

// Lookup returns the value of the first key that is among arguments, in any case, "" for none.
func Lookup(fs []Field, keys ...string) string {
	for _, key := range keys {
		for _, f := range fs {
			if strings.EqualFold(f.Key, key) {
				return f.Value
			}
		}
	}
	return ""
}

// Text returns arguments as text, with each key and each value on its own line.
func Text(fs []Field) string {
	var b strings.Builder
	for _, f := range fs {
		b.WriteString(f.Key + ":\n")
		b.WriteString(f.Value)
		b.WriteByte('\n')
	}
	return b.String()
}

// IsID reports whether a value is the id or the code of something.
func (f Field) IsID() bool {
	return strings.HasSuffix(strings.ToLower(f.Key), "id") || isCode(f.Value) && strings.ContainsFunc(f.Value, unicode.IsLetter)
}

// Is reports whether two values are the same: numbers and truth values, only if their keys are.
func (f Field) Is(other Field) bool {
	return f.Value == other.Value && (f.Key == other.Key || len(f.Value) > len("False") && strings.ContainsFunc(f.Value, unicode.IsLetter))
}

// Equals reports whether two values are the same under the same keys.
func (f Field) Equals(other Field) bool {
	return f.Value == other.Value && f.Key == other.Key && f.Path == other.Path
}

// Became reports whether a result has another value of the same form than was asked for.
func (f Field) Became(result Field) bool {
	return f.Key == result.Key && f.Path == result.Path && f.Value != result.Value && Form(f.Value) == Form(result.Value)
}

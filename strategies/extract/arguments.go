package extract

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// argument is one value of a call's arguments: the nearest key, and the number of the
// object that contains it. Objects are numbered in the order in which they begin.
type argument struct {
	key, value string
	object     int
	// row is the number of the object around it that is an element of a list, or the outermost,
	// path the keys from there to the object, and list the key of the list.
	row        int
	path, list string
}

// maxDepth is the nesting of arguments up to which they are read as JSON.
const maxDepth = 100

// parseArguments returns the values of arguments in order, and false if they are not JSON.
func parseArguments(arguments string) ([]argument, bool) {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	var found []argument
	objects := 0
	var read func(in argument, listed bool, depth int) bool
	read = func(in argument, listed bool, depth int) bool {
		token, err := d.Token()
		if err != nil || depth > maxDepth {
			return false
		}
		value := "null"
		switch v := token.(type) {
		case json.Delim:
			if v == '{' {
				objects++
				if in.object = objects; !prose.IsPrintable(in.key) || len(in.path)+len(in.key) > 2*maxKey {
					in.key = ""
				}
				if listed {
					in.row, in.path, in.list = objects, "", in.key
				} else {
					in.path = strings.TrimSpace(in.path + " " + in.key)
				}
			}
			for d.More() {
				if v == '{' {
					name, err := d.Token()
					if err != nil {
						return false
					}
					in.key = name.(string)
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
		in.value = value
		found = append(found, in)
		return true
	}
	if !read(argument{}, true, 1) {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false
	}
	return found, true
}

// fieldOf returns the value of the first key that is among arguments, in any case, "" for none.
func fieldOf(fs []argument, keys ...string) string {
	for _, key := range keys {
		for _, f := range fs {
			if strings.EqualFold(f.key, key) {
				return f.value
			}
		}
	}
	return ""
}

// argumentText returns arguments as text, with each key and each value on its own line.
func argumentText(fs []argument) string {
	var b strings.Builder
	for _, f := range fs {
		b.WriteString(f.key + ":\n")
		b.WriteString(f.value)
		b.WriteByte('\n')
	}
	return b.String()
}

// firstValue returns the first argument that is one short line, "" for none.
func firstValue(fs []argument) string {
	for _, f := range fs {
		if v := strings.TrimSpace(f.value); v != "" && !text.Longer(v, maxDescription) && prose.IsPrintable(v) {
			return strings.Clone(f.key + " " + v)
		}
	}
	return ""
}

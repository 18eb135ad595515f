package retention

import (
	"encoding/json"
	"fmt"
	"strings"
)

// constants are those of JSON as Python prints them.
var constants = map[any]string{true: "True", false: "False", nil: "None"}

// unescape returns the keys and values of the JSON arguments of a call in their order, one per
// line, without escapes; a colon follows each key. Constants are written as
// Python does. Invalid JSON is returned unchanged.
func unescape(arguments string) string {
	if !json.Valid([]byte(arguments)) {
		return arguments
	}
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	var lines []string
	var objects []bool // whether the open values are objects, from the outermost one
	for key := false; ; {
		t, err := d.Token()
		if err != nil { // the end
			return strings.Join(lines, "\n")
		}
		switch delim, isDelim := t.(json.Delim); {
		case isDelim && (delim == '{' || delim == '['):
			objects = append(objects, delim == '{')
		case isDelim:
			objects = objects[:len(objects)-1]
		case key:
			lines = append(lines, fmt.Sprint(t, ":"))
			key = false
			continue
		default:
			if s, ok := constants[t]; ok {
				t = s
			}
			lines = append(lines, fmt.Sprint(t))
		}
		key = len(objects) > 0 && objects[len(objects)-1]
	}
}

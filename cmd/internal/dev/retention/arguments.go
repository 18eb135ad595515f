package retention

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// maxDepth limits the nesting of arguments; deeper ones are treated as plain text.
const maxDepth = 900

// unescape returns the keys and values of the JSON arguments of a call in their order,
// one per line, without escapes; a colon follows each key. Other values than strings are
// written as Python prints them (None, True, 1.0). Of a repeated key, the last value
// takes the place of the first. Invalid JSON is returned unchanged.
func unescape(arguments string) string {
	if arguments == "" || !json.Valid([]byte(arguments)) {
		return arguments
	}
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	lines, ok := readLines(d, 0)
	if !ok {
		return arguments
	}
	return strings.Join(lines, "\n")
}

// readLines returns the lines of the next value of valid JSON, false if it is too deep.
func readLines(d *json.Decoder, depth int) ([]string, bool) {
	t, err := d.Token()
	if err != nil || depth > maxDepth {
		return nil, false
	}
	switch t := t.(type) {
	case json.Delim:
		var parts [][]string
		at := map[string]int{}
		for d.More() {
			var part []string
			i := len(parts)
			if t == '{' {
				token, _ := d.Token()
				key, _ := token.(string)
				part = []string{key + ":"}
				if first, repeated := at[key]; repeated {
					i = first
				}
				at[key] = i
			}
			lines, ok := readLines(d, depth+1)
			if !ok {
				return nil, false
			}
			if i == len(parts) {
				parts = append(parts, nil)
			}
			parts[i] = append(part, lines...)
		}
		_, err = d.Token()
		return slices.Concat(parts...), err == nil
	case json.Number:
		return []string{pythonNumber(t.String())}, true
	case bool:
		if t {
			return []string{"True"}, true
		}
		return []string{"False"}, true
	case nil:
		return []string{"None"}, true
	}
	text, ok := t.(string)
	return []string{text}, ok
}

// pythonNumber returns a JSON number as Python prints it.
func pythonNumber(s string) string {
	if !strings.ContainsAny(s, ".eE") {
		if s == "-0" {
			return "0"
		}
		return s
	}
	f, _ := strconv.ParseFloat(s, 64) // what is out of range is infinite
	scientific := strconv.FormatFloat(f, 'e', -1, 64)
	_, power, finite := strings.Cut(scientific, "e")
	if !finite {
		return strings.TrimPrefix(strings.ToLower(scientific), "+")
	}
	if n, _ := strconv.Atoi(power); n < -4 || n >= 16 {
		return scientific
	}
	out := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(out, ".") {
		out += ".0"
	}
	return out
}

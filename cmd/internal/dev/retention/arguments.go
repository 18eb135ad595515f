package retention

import (
	"encoding/json"
	"strconv"
	"strings"
)

// maxDepth is how deep arguments may nest; deeper ones are read as plain text.
const maxDepth = 900

// unescape returns the arguments of a call with nothing escaped: the keys, each with a
// colon behind it, and the values, one a line in their order. Values that are no
// texts are written as Python writes them (None, True, 1.0). What is no JSON is
// returned as it is.
func unescape(arguments string) string {
	if arguments == "" || !json.Valid([]byte(arguments)) {
		return arguments
	}
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	v, ok := readValue(d, 0)
	if !ok {
		return arguments
	}
	lines := v.lines(nil)
	return strings.Join(lines, "\n")
}

// value is a JSON value whose keys are in order.
type value struct {
	text string // a scalar, as it is written
	keys []string
	kids []value
	leaf bool
}

func (v *value) lines(dst []string) []string {
	if v.leaf {
		return append(dst, v.text)
	}
	for i := range v.kids {
		if v.keys != nil {
			dst = append(dst, v.keys[i]+":")
		}
		dst = v.kids[i].lines(dst)
	}
	return dst
}

// readValue reads one value of JSON that is valid; ok is false where it is too deep.
func readValue(d *json.Decoder, depth int) (v value, ok bool) {
	t, err := d.Token()
	if err != nil || depth > maxDepth {
		return v, false
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return readObject(d, depth)
		}
		for d.More() {
			kid, ok := readValue(d, depth+1)
			if !ok {
				return v, false
			}
			v.kids = append(v.kids, kid)
		}
		_, err = d.Token()
		return v, err == nil
	case string:
		v.text = t
	case json.Number:
		v.text = pythonNumber(t.String())
	case bool:
		v.text = "False"
		if t {
			v.text = "True"
		}
	case nil:
		v.text = "None"
	}
	v.leaf = true
	return v, true
}

// readObject reads the members; of a key that is there twice, the last value has
// the place of the first.
func readObject(d *json.Decoder, depth int) (v value, ok bool) {
	v.keys = []string{}
	at := map[string]int{}
	for d.More() {
		t, err := d.Token()
		key, isText := t.(string)
		if err != nil || !isText {
			return v, false
		}
		kid, ok := readValue(d, depth+1)
		if !ok {
			return v, false
		}
		if i, twice := at[key]; twice {
			v.kids[i] = kid
			continue
		}
		at[key] = len(v.keys)
		v.keys, v.kids = append(v.keys, key), append(v.kids, kid)
	}
	_, err := d.Token()
	return v, err == nil
}

// pythonNumber returns a number of JSON as Python prints it.
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

package extract

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// argument is a value of a call's arguments: the key nearest to it, and which of the
// objects in the arguments it stands in.
type argument struct {
	key, value string
	object     int
}

// parseArguments reads the values of arguments in their order. It reports false where they are
// no JSON.
func parseArguments(arguments string) ([]argument, bool) {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	r := fieldReader{d: d}
	if err := r.value("", 0); err != nil {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false
	}
	return r.found, true
}

// fieldReader collects fields. Objects are numbered by when they begin.
type fieldReader struct {
	d       *json.Decoder
	found   []argument
	objects int
	depth   int
}

// maxDepth of arguments that are read as JSON.
const maxDepth = 100

var errTooDeep = errors.New("arguments are nested too deep")

func (r *fieldReader) value(key string, object int) error {
	if r.depth++; r.depth > maxDepth {
		return errTooDeep
	}
	defer func() { r.depth-- }()
	token, err := r.d.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			r.objects++
			return r.object(r.objects)
		}
		for r.d.More() {
			if err := r.value(key, object); err != nil {
				return err
			}
		}
		_, err = r.d.Token()
		return err
	case string:
		r.found = append(r.found, argument{key, v, object})
	case json.Number:
		r.found = append(r.found, argument{key, v.String(), object})
	case bool:
		r.found = append(r.found, argument{key, map[bool]string{true: "true", false: "false"}[v], object})
	case nil:
		r.found = append(r.found, argument{key, "null", object})
	}
	return nil
}

func (r *fieldReader) object(number int) error {
	for r.d.More() {
		key, err := r.d.Token()
		if err != nil {
			return err
		}
		if err := r.value(key.(string), number); err != nil {
			return err
		}
	}
	_, err := r.d.Token()
	return err
}

// argumentText returns the text of arguments: each key and each value on a line of its own.
func argumentText(fs []argument) string {
	var b strings.Builder
	for _, f := range fs {
		b.WriteString(f.key)
		b.WriteString(":\n")
		b.WriteString(f.value)
		b.WriteByte('\n')
	}
	return b.String()
}

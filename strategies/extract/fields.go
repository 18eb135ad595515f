package extract

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/extract/internal/prose"
)

// field is a value of the arguments or of the result of a call.
type field struct {
	key, value string
	// row is the number of the element of the outermost list that it is in, from 1, and 0 outside of one.
	row int
	// object is the number of the object that it is in.
	object int
	// of is the key of the object, or of the list that it is in.
	of string
	// asked is the value of the argument with the same key, where the result has another one.
	asked string
	// named counts the later messages that name the value.
	named int
}

// clone returns a copy that shares no memory with the text that it was read from.
func (f *field) clone() *field {
	return &field{key: strings.Clone(f.key), value: strings.Clone(f.value), row: f.row, object: f.object, of: strings.Clone(f.of)}
}

// equals reports whether two fields have the same key and value.
func (f *field) equals(other *field) bool { return f.key == other.key && f.value == other.value }

const (
	maxJSON  = 64 << 10 // bytes of a result that is read as JSON
	maxDepth = 50
	maxValue = 120 // bytes of a value that a line shows
	maxKey   = 40
	// maxWholeKey is the size of a key that is not shortened.
	maxWholeKey = 12
)

// parseFields returns the values of a JSON object or list in order, and false for any other text.
func parseFields(s string) (fs []field, ok bool) {
	s = strings.TrimSpace(s)
	if s == "" || s[0] != '{' && s[0] != '[' {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	rows, listed, objects := 0, 0, 0
	var read func(in field, depth int) bool
	read = func(in field, depth int) bool {
		token, err := d.Token()
		if err != nil || depth > maxDepth {
			return false
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' {
				objects++
				in.object, in.of = objects, in.key
			}
			for d.More() {
				inner := in
				if v == '{' {
					name, err := d.Token()
					if err != nil {
						return false
					}
					if inner.key, _ = name.(string); len(inner.key) > maxKey || !prose.IsPrintable(inner.key) {
						inner.key = ""
					}
				} else if listed == 0 || listed == depth && in.row == 0 {
					listed = depth
					rows++
					inner.row = rows
				}
				if !read(inner, depth+1) {
					return false
				}
			}
			_, err := d.Token()
			return err == nil
		case string:
			in.value = v
		case json.Number:
			in.value = v.String()
		case bool:
			in.value = map[bool]string{true: "true", false: "false"}[v]
		default:
			in.value = ""
		}
		fs = append(fs, in)
		return true
	}
	if !read(field{}, 0) {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false
	}
	return fs, true
}

// fieldText returns fields as text, each key and value on its own line.
func fieldText(fs []field) string {
	var b strings.Builder
	for i := range fs {
		b.WriteString(fs[i].key + ": " + fs[i].value + "\n")
	}
	return b.String()
}

// formatFields writes short values for a line, with the keys of those that are not understood without: of a long key
// the last word if no other key has it.
func formatFields(fs []*field) string {
	count := map[string]int{}
	for _, f := range fs {
		for w := range strings.FieldsSeq(keyWords(f.key)) {
			count[w]++
		}
	}
	var b strings.Builder
	for i, f := range fs {
		if i > 0 && f.object != fs[i-1].object {
			b.WriteString("; ")
			if f.of != "" && f.of != fs[i-1].of && !slices.ContainsFunc(fs[i:], func(o *field) bool { return o.object == f.object && o.value == f.of }) {
				b.WriteString(keyWords(f.of) + ": ")
			}
		} else if i > 0 {
			b.WriteString(", ")
		}
		if !f.speaks() {
			key := keyWords(f.key)
			if last := key[strings.LastIndexByte(key, ' ')+1:]; count[last] == 1 && len(last) > 2 && len(f.key) > maxWholeKey {
				key = last
			}
			b.WriteString(strings.TrimLeft(key+" ", " "))
		}
		b.WriteString(prose.OneLine(f.value))
		if f.asked != "" {
			b.WriteString(" (asked " + prose.OneLine(f.asked) + ")")
		}
	}
	return b.String()
}

// speaks reports whether a value is understood without its key: words, or the key itself.
func (f *field) speaks() bool {
	letters, blanks := 0, 0
	for _, r := range f.value {
		if unicode.IsLetter(r) {
			letters++
		}
		if r == ' ' {
			blanks++
		}
	}
	if f.key != "" && strings.Contains(strings.ToLower(f.value), strings.ToLower(f.key)) {
		return true
	}
	if letters < 4 || 2*letters <= utf8.RuneCountInString(f.value) || isTruth(f.value) {
		return false
	}
	first, _ := utf8.DecodeRuneInString(f.value)
	return blanks > 0 || !unicode.IsLower(first) && !strings.ContainsAny(f.value, "_0123456789")
}

// keyWords returns a key as words in lower case.
func keyWords(key string) string {
	var b strings.Builder
	for i, r := range key {
		if unicode.IsUpper(r) && i > 0 && b.Len() > 0 && unicode.IsLower(rune(key[i-1])) {
			b.WriteByte(' ')
		}
		if r == '_' || r == '-' || r == '.' {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// isShort reports whether a value fits in a line and says something.
func (f *field) isShort() bool {
	return f.value != "" && len(f.value) <= maxValue && !strings.Contains(f.value, "\n") && prose.IsPrintable(f.value)
}

// lookup returns the value of the first key that fields have, in any case, "" for none.
func lookup(fs []field, keys ...string) string {
	for _, key := range keys {
		for i := range fs {
			if strings.EqualFold(fs[i].key, key) {
				return fs[i].value
			}
		}
	}
	return ""
}

package builtin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// The references are Python programs, and some of their results depend on how Python writes
// values.

// pyObject is a JSON object in the order of its text, as a Python dict is.
type pyObject []pyPair

type pyPair struct {
	key   string
	value any
}

func (o pyObject) get(key string) any {
	for _, p := range o {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

func (o pyObject) text(key string) string {
	s, _ := o.get(key).(string)
	return s
}

// readPy reads JSON into pyObject, []any, string, json.Number, bool and nil.
func readPy(raw string) (any, error) {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	v, err := readPyValue(d)
	if err == nil && d.More() {
		err = fmt.Errorf("more than one value in %q", raw)
	}
	return v, err
}

func readPyValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := readPyValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		object := pyObject{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readPyValue(d)
			if err != nil {
				return nil, err
			}
			if i := slices.IndexFunc(object, func(p pyPair) bool { return p.key == key }); i >= 0 {
				object[i].value = v
			} else {
				object = append(object, pyPair{key.(string), v})
			}
		}
		_, err := d.Token()
		return object, err
	}
	return token, nil
}

// pyForm is one of the forms in which Python writes values.
type pyForm struct {
	quote         func(string) string
	null, yes, no string
	sorted        bool
}

var (
	pyRepr   = pyForm{quote: pyQuote, null: "None", yes: "True", no: "False"}                    // str
	pyASCII  = pyForm{quote: pyASCIIString, null: "null", yes: "true", no: "false"}              // json.dumps
	pyJSON   = pyForm{quote: pyJSONString, null: "null", yes: "true", no: "false"}               // json.dumps, ensure_ascii=False
	pySorted = pyForm{quote: pyJSONString, null: "null", yes: "true", no: "false", sorted: true} // the same, sort_keys=True
)

func (f pyForm) write(v any) string {
	switch v := v.(type) {
	case nil:
		return f.null
	case bool:
		if v {
			return f.yes
		}
		return f.no
	case string:
		return f.quote(v)
	case json.Number:
		return pyNumber(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = f.write(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case pyObject:
		if f.sorted {
			v = slices.Clone(v)
			slices.SortFunc(v, func(a, b pyPair) int { return cmp.Compare(a.key, b.key) })
		}
		parts := make([]string, len(v))
		for i, p := range v {
			parts[i] = f.quote(p.key) + ": " + f.write(p.value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	panic(fmt.Sprintf("a value of type %T", v))
}

func pyNumber(n json.Number) string {
	if !strings.ContainsAny(n.String(), ".eE") {
		if n == "-0" {
			return "0"
		}
		return n.String()
	}
	f, _ := n.Float64()
	s := strconv.FormatFloat(f, 'e', -1, 64)
	_, e, _ := strings.Cut(s, "e")
	if exp, _ := strconv.Atoi(e); exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// pyJSONString returns a string in JSON in which nothing is escaped that need not be.
func pyJSONString(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(b.String(), "\n"))
}

// pyASCIIString returns a string in JSON that has only ASCII characters.
func pyASCIIString(s string) string {
	var b strings.Builder
	for _, r := range pyJSONString(s) {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		}
	}
	return b.String()
}

// pyQuote returns a string as Python prints it within a list.
func pyQuote(s string) string {
	quote := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote, r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n' || r == '\r' || r == '\t':
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// pyRough returns Hermes' estimate: the length of each message as Python prints it, by four.
func pyRough(messages []chat.Message) chat.Tokens {
	chars := 0
	for _, m := range messages {
		object := pyObject{{"role", string(m.Role)}, {"content", m.Content.Text}}
		if m.Content.Null {
			object[1].value = nil
		}
		var calls []any
		for _, c := range m.ToolCalls {
			function := pyObject{{"name", c.Name}, {"arguments", c.Arguments}}
			calls = append(calls, pyObject{{"id", c.ID}, {"type", "function"}, {"function", function}})
		}
		if calls != nil {
			object = append(object, pyPair{"tool_calls", calls})
		}
		if m.Role == chat.RoleTool {
			object = append(object, pyPair{"tool_call_id", m.ToolCallID})
		}
		chars += utf8.RuneCountInString(pyRepr.write(object))
	}
	return chat.Tokens((chars + 3) / 4)
}

// timbalInput returns the arguments of a call as Timbal reads them: an empty object for
// anything but an object.
func timbalInput(raw string) pyObject {
	v, err := readPy(raw)
	if object, ok := v.(pyObject); ok && err == nil {
		return object
	}
	return pyObject{}
}

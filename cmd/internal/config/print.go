package config

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Entry is one line of `config print`.
type Entry struct {
	Key string `json:"key"`
	// Value is the value as text, with passwords masked.
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Entries lists every setting with its value and origin.
func (c Config) Entries() []Entry {
	fs := fields(&c)
	out := make([]Entry, len(fs))
	for i, f := range fs {
		out[i] = Entry{Key: f.key, Value: text(f.value), Origin: c.Origin(f.key).String()}
	}
	return out
}

// Print writes Entries as a table.
func (c Config) Print(o term.Output) error {
	t := o.Table(term.Text("KEY"), term.Text("ORIGIN"), term.Text("VALUE")) // a value may be long
	for _, e := range c.Entries() {
		if e.Origin == string(FromDefault) {
			t.Row(e.Key, term.Styled{Value: e.Origin, As: o.Dim}, e.Value)
			continue
		}
		t.Row(e.Key, e.Origin, e.Value)
	}
	return t.Write()
}

// text returns a value on one line.
func text(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return policy.Text(x)
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		b, err := json.Marshal(v.Interface())
		if err != nil {
			return err.Error()
		}
		if string(b) == "null" {
			return ""
		}
		return string(b)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	default:
		return fmt.Sprint(v.Interface())
	}
}

//go:embed example.yaml
var example string

// Example returns a commented configuration file, which sets every key to its default.
func Example() string { return example }

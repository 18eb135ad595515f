package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Entry is one setting as `config print` shows it.
type Entry struct {
	Key string `json:"key"`
	// Value is the value as text, passwords masked.
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
	style := o.Style()
	for _, e := range c.Entries() {
		if e.Origin == string(FromDefault) {
			t.Row(e.Key, term.Styled{Value: e.Origin, As: style.Dim}, e.Value)
			continue
		}
		t.Row(e.Key, e.Origin, e.Value)
	}
	return t.Write()
}

// text is a value on one line.
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

// Example is a configuration file that holds every key with its default and a
// comment. Loading it changes nothing.
func Example() string {
	c := Default()
	docs := docs()
	var b strings.Builder
	b.WriteString("# Configuration of compactor: every key, with its default.\n" +
		"# A value is overridden by the environment (COMPACTOR_<SECTION>_<KEY>) and by flags.\n" +
		"# `compactor config print` shows what is in force and where it comes from.\n")
	var open []string
	for _, f := range fields(&c) {
		path := strings.Split(f.key, ".")
		sections, name := path[:len(path)-1], path[len(path)-1]
		if len(sections) < 2 && !slices.Equal(sections, open) || len(sections) == 0 {
			b.WriteByte('\n')
		}
		for i, s := range sections {
			if i >= len(open) || !slices.Equal(open[:i+1], sections[:i+1]) {
				fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), s)
			}
		}
		open = sections
		indent := strings.Repeat("  ", len(sections))
		comment := docs[f.key]
		if names := EnvNames(f.key); len(names) > 1 {
			comment += "\nEnvironment: " + strings.Join(names, ", then ") + "."
		}
		for line := range strings.SplitSeq(comment, "\n") {
			fmt.Fprintf(&b, "%s# %s\n", indent, line)
		}
		fmt.Fprintf(&b, "%s%s:%s\n", indent, name, yamlValue(f.value, indent))
	}
	return b.String()
}

// yamlValue is a value behind its key: on the same line, or as a block below it.
func yamlValue(v reflect.Value, indent string) string {
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		return " " + policy.Text(d)
	}
	if v.Kind() == reflect.Map && v.Len() == 0 {
		return " {}"
	}
	if v.Kind() == reflect.Slice && v.Len() == 0 {
		return " []"
	}
	out, err := yaml.Marshal(v.Interface())
	if err != nil {
		return " # " + err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Map {
		return " " + lines[0]
	}
	return "\n" + indent + "  " + strings.Join(lines, "\n"+indent+"  ")
}

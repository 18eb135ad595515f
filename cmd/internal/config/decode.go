package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
)

// SettingError is one error in the configuration.
type SettingError struct {
	// Origin is the source of the value; the zero value if it has none.
	Origin Origin
	// Key is the setting, "" if the error concerns a source as a whole.
	Key string
	// Problem describes the error and the allowed values.
	Problem string
}

// Error returns "compactor.yaml:7: worker.concurrency: 0: want 1 to 10000".
func (f *SettingError) Error() string {
	s := f.Problem
	if f.Key != "" {
		s = f.Key + ": " + s
	}
	if f.Origin.Source != "" && f.Origin.Source != FromDefault {
		s = f.Origin.String() + ": " + s
	}
	return s
}

type faults []error

func (fs *faults) addf(o Origin, key, problem string, args ...any) {
	*fs = append(*fs, &SettingError{Origin: o, Key: key, Problem: fmt.Sprintf(problem, args...)})
}

func (fs faults) err() error { return errors.Join(fs...) }

// field is one setting of a Config: its key and its addressable value.
type field struct {
	key   string
	value reflect.Value
}

// fields lists the settings in order. Fields of a struct type are sections.
func fields(c *Config) []field {
	return walk("", reflect.ValueOf(c).Elem(), nil)
}

func walk(prefix string, v reflect.Value, out []field) []field {
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		key := join(prefix, name)
		if v.Field(i).Kind() == reflect.Struct {
			out = walk(key, v.Field(i), out)
			continue
		}
		out = append(out, field{key, v.Field(i)})
	}
	return out
}

func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// Keys lists every setting, as "section.key".
func Keys() []string {
	c := Default()
	fs := fields(&c)
	keys := make([]string, len(fs))
	for i, f := range fs {
		keys[i] = f.key
	}
	return keys
}

// decoder sets fields from YAML nodes and records their origins and all errors.
type decoder struct {
	// origin is the current source, without a line.
	origin  Origin
	origins map[string]Origin
	faults  faults
	// byKey holds every setting.
	byKey map[string]reflect.Value
}

func (d *decoder) at(n *yaml.Node) Origin {
	o := d.origin
	if o.Source == FromFile {
		o.Line = n.Line
	}
	return o
}

// section reads a mapping whose keys are sections and settings below prefix.
func (d *decoder) section(prefix string, n *yaml.Node) {
	n = resolve(n)
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.faults.addf(d.at(n), prefix, "%s: want a section of keys", show(n))
		return
	}
	d.pairs(prefix, n, func(key string, k, v *yaml.Node) {
		target, ok := d.byKey[key]
		switch {
		case !ok && d.isSection(key):
			d.section(key, v)
		case !ok:
			d.unknown(prefix, key, k)
		case isNull(resolve(v)): // an empty value ("url:") keeps the default
		default:
			d.set(key, k, v, target)
		}
	})
}

// set decodes v into target, records k as the origin of the key, and reports success.
func (d *decoder) set(key string, k, v *yaml.Node, target reflect.Value) bool {
	d.origins[key] = d.at(k)
	if err := d.value(key, v, target); err != nil {
		d.faults.addf(d.at(v), key, "%s: %v", shown(v, target), err)
		return false
	}
	return true
}

// pairs calls f for every key of a mapping. Repeated keys and merge keys are errors.
func (d *decoder) pairs(prefix string, n *yaml.Node, f func(key string, k, v *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := join(prefix, k.Value)
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
			d.faults.addf(d.at(k), prefix, "want plain keys, without merge keys")
			continue
		}
		if line, ok := seen[key]; ok {
			d.faults.addf(d.at(k), key, "given twice, first in line %d", line)
			continue
		}
		seen[key] = k.Line
		f(key, k, v)
	}
}

func (d *decoder) isSection(key string) bool {
	for k := range d.byKey {
		if strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

// unknown reports an unknown key, with the most similar known one.
func (d *decoder) unknown(prefix, key string, n *yaml.Node) {
	var siblings []string
	misplaced := "" // a key of the same name in another section
	for _, k := range slices.Sorted(maps.Keys(d.byKey)) {
		below, ok := k, true
		if prefix != "" {
			below, ok = strings.CutPrefix(k, prefix+".")
		}
		if ok {
			name, _, _ := strings.Cut(below, ".")
			siblings = append(siblings, join(prefix, name))
		}
		if _, name, below := strings.Cut(k, "."); below && name == n.Value {
			misplaced = cmp.Or(misplaced, k)
		}
	}
	hint := didYouMean(cmp.Or(policy.Nearest(key, siblings), misplaced))
	d.faults.addf(d.at(n), key, "unknown key%s", cmp.Or(hint, " (`compactor config example` lists them)"))
}

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return ", did you mean " + name + "?"
}

// value decodes a node into target. The error describes the expected value.
func (d *decoder) value(key string, n *yaml.Node, target reflect.Value) error {
	n = resolve(n)
	switch target.Interface().(type) {
	case time.Duration:
		v, err := policy.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			return errors.New("want a duration such as 500ms, 30s or 10m")
		}
		target.SetInt(int64(v))
		return nil
	case policy.Bytes:
		v, err := policy.ParseBytes(n.Value)
		target.SetInt(int64(v))
		return err
	case map[string]chat.Tokens:
		return d.mapping(key, n, target, chat.Tokens(0), "a map from model to tokens, such as {gpt-4: 8192}")
	case map[string]policy.Schedule:
		return d.mapping(key, n, target, policy.DefaultSchedule(), "a map from name to schedule, such as {nightly: {cron: 0 3 * * *}}")
	case map[string]Database:
		return d.mapping(key, n, target, Database{}, "a map from name to database, such as {east: {url: postgres://…}}")
	case policy.When:
		text, err := condition(n, 0)
		target.SetString(text)
		return err
	case policy.Match:
		return d.mapping(key, n, target, "", "a map of texts, such as {agent: planner}")
	case map[string]any:
		return decode(n, target, "a map of parameters", yaml.MappingNode)
	}
	switch target.Kind() {
	case reflect.Slice:
		return d.list(key, n, target)
	case reflect.Struct:
		return d.object(key, n, target)
	case reflect.String:
		return decode(n, target, "text (put it in quotes)", yaml.ScalarNode, "!!str")
	case reflect.Bool:
		return decode(n, target, "true or false", yaml.ScalarNode, "!!bool")
	case reflect.Float64:
		return decode(n, target, "a number such as 0.75", yaml.ScalarNode, "!!float", "!!int")
	default:
		want := "a whole number"
		if share, of := strings.CutSuffix(key, "_tokens"); of && (strings.HasSuffix(share, "start") || strings.HasSuffix(share, "target")) {
			want += " of tokens; " + share + " is a share of the window, such as 0.2"
		}
		return decode(n, target, want, yaml.ScalarNode, "!!int")
	}
}

// decode decodes a node of the given kind, and of one of the tags if any, into target.
func decode(n *yaml.Node, target reflect.Value, want string, kind yaml.Kind, tags ...string) error {
	if n.Kind != kind || len(tags) > 0 && !slices.Contains(tags, n.Tag) || n.Decode(target.Addr().Interface()) != nil {
		return errors.New("want " + want)
	}
	return nil
}

// mapping decodes a map, each value over the one that it has by default. The key of a value is
// schedules.nightly if that has keys itself, and otherwise windows[gpt-4].
func (d *decoder) mapping(key string, n *yaml.Node, target reflect.Value, over any, want string) error {
	if n.Kind != yaml.MappingNode {
		return errors.New("want " + want)
	}
	prefix, nested := key, reflect.TypeOf(over).Kind() == reflect.Struct
	if !nested {
		prefix = ""
	}
	out := reflect.MakeMap(target.Type())
	values := reflect.MakeSlice(reflect.SliceOf(target.Type().Elem()), 0, len(n.Content)/2)
	d.pairs(prefix, n, func(name string, k, v *yaml.Node) {
		if !nested {
			name = key + "[" + name + "]"
		}
		values = reflect.Append(values, reflect.ValueOf(over))
		if value := values.Index(values.Len() - 1); d.set(name, k, v, value) {
			out.SetMapIndex(reflect.ValueOf(k.Value), value)
		}
	})
	target.Set(out)
	return nil
}

// condition returns the text of a condition, which may be nested in all, any and not.
func condition(n *yaml.Node, depth int) (string, error) {
	n = resolve(n)
	want := errors.New("want a condition such as \"used > 0.75\", or {all: […]}, {any: […]} or {not: …} of conditions")
	switch {
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!bool"):
		return n.Value, nil
	case n.Kind != yaml.MappingNode || len(n.Content) != 2 || depth > 10:
		return "", want
	}
	key, value := n.Content[0].Value, resolve(n.Content[1])
	operator := map[string]string{"all": " && ", "any": " || "}[key]
	if key == "not" {
		text, err := condition(value, depth+1)
		return "not (" + text + ")", err
	}
	if operator == "" || value.Kind != yaml.SequenceNode || len(value.Content) == 0 {
		return "", want
	}
	var parts []string
	for _, item := range value.Content {
		text, err := condition(item, depth+1)
		if err != nil {
			return "", err
		}
		parts = append(parts, "("+text+")")
	}
	return strings.Join(parts, operator), nil
}

// list decodes a list of strings, or of maps with the keys of a struct.
func (d *decoder) list(key string, n *yaml.Node, target reflect.Value) error {
	if n.Kind != yaml.SequenceNode {
		want := "texts, such as [a, b]"
		if t := target.Type().Elem(); t.Kind() == reflect.Struct {
			want = form(t)
		}
		return errors.New("want a list of " + want)
	}
	out := reflect.MakeSlice(target.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.set(key+"["+strconv.Itoa(i)+"]", item, item, out.Index(i))
	}
	target.Set(out)
	return nil
}

// object decodes a map with the keys of a struct.
func (d *decoder) object(key string, n *yaml.Node, target reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return errors.New("want " + form(target.Type()))
	}
	names := tags(target.Type())
	d.pairs(key, n, func(name string, k, v *yaml.Node) {
		if f := slices.Index(names, k.Value); f < 0 {
			hint := cmp.Or(didYouMean(policy.Nearest(k.Value, names)), ": want "+strings.Join(names, ", "))
			d.faults.addf(d.at(k), name, "unknown key%s", hint)
		} else if !isNull(resolve(v)) {
			d.set(name, k, v, target.Field(f))
		}
	})
	return nil
}

func form(t reflect.Type) string { return "{" + strings.Join(tags(t), ": …, ") + ": …}" }

// tags returns the YAML keys of a struct's fields.
func tags(t reflect.Type) []string {
	out := make([]string, t.NumField())
	for i := range out {
		out[i], _, _ = strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
	}
	return out
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// shown formats a node for an error, without its value if it is a secret.
func shown(n *yaml.Node, target reflect.Value) string {
	if _, secret := reflect.TypeAssert[Secret](target); secret {
		return "the value"
	}
	return show(resolve(n))
}

func show(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		const most = 60
		s := n.Value
		if r := []rune(s); len(r) > most {
			s = string(r[:most]) + "…"
		}
		if n.Tag == "!!str" {
			return strconv.Quote(s)
		}
		return s
	default:
		return "nothing"
	}
}

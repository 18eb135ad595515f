package config

import (
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
)

// Fault is one thing that is wrong with the configuration.
type SettingError struct {
	// Origin is where it comes from; the zero value where it comes from nowhere.
	Origin Origin
	// Key is the setting, "" where the fault is about a source as a whole.
	Key string
	// Problem says what is wrong and what is allowed.
	Problem string
}

// Error is "compactor.yaml:7: worker.concurrency: 0: want 1 to 10000".
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

// decoder sets fields from YAML nodes and notes origins and faults.
type decoder struct {
	// origin is the source; its line is the node's.
	origin  Origin
	origins map[string]Origin
	faults  faults
	// byKey holds every setting.
	byKey map[string]reflect.Value
	// deprecated maps former keys to those of byKey; notices tell where one is used.
	deprecated map[string]string
	notices    []string
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
		key = d.current(d.at(k), key)
		if target, ok := d.byKey[key]; ok {
			if isNull(resolve(v)) {
				return // "url:" with nothing behind it leaves the default
			}
			if o, given := d.origins[key]; given { // by its former key
				d.faults.addf(d.at(k), key, "given twice, first in line %d", o.Line)
				return
			}
			d.origins[key] = d.at(k)
			if err := d.value(key, v, target); err != nil {
				d.faults.addf(d.at(v), key, "%s: %v", d.shown(v, target), err)
			}
			return
		}
		if d.isSection(key) {
			d.section(key, v)
			return
		}
		d.unknown(prefix, key, k)
	})
}

// pairs calls f for every key of a mapping; repeated keys and merge keys are faults.
func (d *decoder) pairs(prefix string, n *yaml.Node, f func(key string, k, v *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := join(prefix, k.Value)
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
			d.faults.addf(d.at(k), prefix, "keys are plain words, without merging")
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
	for k := range d.deprecated {
		if strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

// unknown reports a key that is none, with the one that was probably meant.
func (d *decoder) unknown(prefix, key string, n *yaml.Node) {
	keys := slices.Sorted(maps.Keys(d.byKey))
	var siblings []string
	for _, k := range keys {
		if s, rest, ok := cutKey(k, prefix); ok {
			siblings = append(siblings, s)
			if rest != "" && rest == n.Value && prefix == "" {
				siblings = append([]string{k}, siblings...)
			}
		}
	}
	hint := nearest(key, siblings)
	for _, k := range keys { // the right name in the wrong place
		if _, rest, _ := cutKey(k, ""); hint == "" && rest == n.Value {
			hint = k
		}
	}
	if hint != "" {
		hint = ", did you mean " + hint + "?"
	}
	d.faults.addf(d.at(n), key, "unknown key%s", hint)
}

// cutKey gives the part of key one level below prefix, as a whole key, and what
// is below that.
func cutKey(key, prefix string) (child, rest string, ok bool) {
	start := 0
	if prefix != "" {
		if len(key) <= len(prefix) || key[:len(prefix)] != prefix || key[len(prefix)] != '.' {
			return "", "", false
		}
		start = len(prefix) + 1
	}
	for i := start; i < len(key); i++ {
		if key[i] == '.' {
			return key[:i], key[i+1:], true
		}
	}
	return key, "", true
}

// value sets target from a node. The error says what is wanted instead.
func (d *decoder) value(key string, n *yaml.Node, target reflect.Value) error {
	n = resolve(n)
	switch target.Interface().(type) {
	case time.Duration:
		if n.Kind == yaml.ScalarNode && n.Value == "0" {
			target.SetInt(0)
			return nil
		}
		v, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			return errors.New("want a duration such as 500ms, 30s or 10m")
		}
		target.SetInt(int64(v))
		return nil
	case map[string]chat.Tokens:
		return d.windows(key, n, target)
	case map[string]any:
		if n.Kind != yaml.MappingNode || n.Decode(target.Addr().Interface()) != nil {
			return errors.New("want a map of parameters")
		}
		return nil
	case []string:
		return d.texts(key, n, target)
	}
	scalar := n.Kind == yaml.ScalarNode
	switch target.Kind() {
	case reflect.Slice:
		return d.structs(key, n, target)
	case reflect.Struct:
		return d.object(key, n, target)
	case reflect.String:
		if !scalar || n.Tag != "!!str" {
			return errors.New("want text (put it in quotes)")
		}
		target.SetString(n.Value)
	case reflect.Bool:
		if !scalar || n.Tag != "!!bool" {
			return errors.New("want true or false")
		}
		return n.Decode(target.Addr().Interface())
	case reflect.Float64:
		if !scalar || n.Tag != "!!float" && n.Tag != "!!int" || n.Decode(target.Addr().Interface()) != nil {
			return errors.New("want a number such as 0.75")
		}
	default: // the integers
		if !scalar || n.Tag != "!!int" || n.Decode(target.Addr().Interface()) != nil {
			return errors.New("want a whole number")
		}
	}
	return nil
}

func (d *decoder) windows(key string, n *yaml.Node, target reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return errors.New("want a map from model to tokens, such as {gpt-4: 8192}")
	}
	out := map[string]chat.Tokens{}
	d.pairs("", n, func(model string, k, v *yaml.Node) {
		sub := key + "[" + model + "]"
		d.origins[sub] = d.at(k)
		var t chat.Tokens
		if err := d.value(sub, v, reflect.ValueOf(&t).Elem()); err != nil {
			d.faults.addf(d.at(v), sub, "%s: %v", show(resolve(v)), err)
			return
		}
		out[model] = t
	})
	target.Set(reflect.ValueOf(out))
	return nil
}

func (d *decoder) texts(key string, n *yaml.Node, target reflect.Value) error {
	if n.Kind != yaml.SequenceNode {
		return errors.New("want a list of texts, such as [a, b]")
	}
	var out []string
	for i, item := range n.Content {
		sub := key + "[" + strconv.Itoa(i) + "]"
		d.origins[sub] = d.at(item)
		var text string
		if err := d.value(sub, item, reflect.ValueOf(&text).Elem()); err != nil {
			d.faults.addf(d.at(item), sub, "%s: %v", show(resolve(item)), err)
		}
		out = append(out, text)
	}
	target.Set(reflect.ValueOf(out))
	return nil
}

// structs reads a list of maps, each with the keys of a struct.
func (d *decoder) structs(key string, n *yaml.Node, target reflect.Value) error {
	if n.Kind != yaml.SequenceNode {
		return errors.New("want a list of " + form(target.Type().Elem()))
	}
	out := reflect.MakeSlice(target.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		sub := key + "[" + strconv.Itoa(i) + "]"
		d.origins[sub] = d.at(item)
		item = resolve(item)
		if err := d.object(sub, item, out.Index(i)); err != nil {
			d.faults.addf(d.at(item), sub, "%s: %v", show(item), err)
		}
	}
	target.Set(out)
	return nil
}

// object reads a map with the keys of a struct.
func (d *decoder) object(key string, n *yaml.Node, target reflect.Value) error {
	if n.Kind != yaml.MappingNode {
		return errors.New("want " + form(target.Type()))
	}
	names := tags(target.Type())
	d.pairs(key, n, func(name string, k, v *yaml.Node) {
		d.origins[name] = d.at(k)
		f := slices.Index(names, k.Value)
		if f < 0 {
			hint := ": want " + strings.Join(names, ", ")
			if s := nearest(k.Value, names); s != "" {
				hint = ", did you mean " + s + "?"
			}
			d.faults.addf(d.at(k), name, "unknown key%s", hint)
			return
		}
		if v = resolve(v); isNull(v) {
			return
		}
		field := target.Field(f)
		if err := d.value(name, v, field); err != nil {
			d.faults.addf(d.at(v), name, "%s: %v", d.shown(v, field), err)
		}
	})
	return nil
}

func form(t reflect.Type) string { return "{" + strings.Join(tags(t), ": …, ") + ": …}" }

// tags returns the keys of a struct, one for each field.
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

// shown returns a node as it may appear in an error: never a secret.
func (d *decoder) shown(n *yaml.Node, target reflect.Value) string {
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

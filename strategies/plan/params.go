package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Params holds the parameters of a strategy as decoded from JSON or YAML.
type Params = map[string]any

// MinInt is the Min of an Int without a lower bound.
const MinInt = math.MinInt64

// Param describes one parameter of a strategy, for help texts.
type Param struct {
	Name, Type, Doc string
	// Default is the default as written in a configuration; empty if Required.
	Default  string
	Required bool
	// Range describes the allowed values beyond the type; it may be empty.
	Range string
}

// ParamError is the error of one invalid parameter.
type ParamError struct {
	Strategy, Param string
	// Given is the value, empty if there was none.
	Given string
	// Allowed describes the valid values.
	Allowed string
}

// Error implements error.
func (e *ParamError) Error() string {
	if e.Given == "" {
		return fmt.Sprintf("%s: %s: missing, want %s", e.Strategy, e.Param, e.Allowed)
	}
	return fmt.Sprintf("%s: %s: got %s, want %s", e.Strategy, e.Param, e.Given, e.Allowed)
}

// Args decodes the parameters of one strategy. A constructor reads each of its parameters
// exactly once, in the order of the help text. Errors are collected, so that one error
// lists all of them, and so are given parameters that the constructor does not read.
type Args struct {
	strategy string
	params   Params
	registry *Registry
	// help means that parameters are only being described; none are given.
	help      bool
	described []Param
	faults    []error
	// policy supplies values of parameters that are not given; it may be nil.
	policy *policy.Values
	// summarizer records that Summarizer was called.
	summarizer bool
}

// Int describes an integer parameter.
type Int struct {
	Name, Doc string
	Required  bool
	Default   int64
	Min       int64
	Max       int64 // 0: no maximum
}

// Int returns an integer parameter. It accepts floating-point numbers without a fraction,
// since JSON does not distinguish them.
func (a *Args) Int(p Int) int64 {
	limits := ""
	switch {
	case p.Max != 0:
		limits = fmt.Sprintf("%d to %d", p.Min, p.Max)
	case p.Min != MinInt:
		limits = fmt.Sprintf("at least %d", p.Min)
	}
	v, ok := a.Value(Param{
		Name: p.Name, Type: "integer", Doc: p.Doc, Required: p.Required,
		Default: strconv.FormatInt(p.Default, 10), Range: limits,
	})
	if !ok {
		return p.Default
	}
	n, ok := asInt(v)
	if !ok || n < p.Min || p.Max != 0 && n > p.Max {
		a.Fault(p.Name, v, "%s", strings.TrimSpace("an integer "+limits))
		return p.Default
	}
	return n
}

// Float describes a number parameter. Min and Max are inclusive.
type Float struct {
	Name, Doc string
	Required  bool
	Default   float64
	Min, Max  float64
}

// Float returns a number parameter.
func (a *Args) Float(p Float) float64 {
	limits := fmt.Sprintf("%g to %g", p.Min, p.Max)
	v, ok := a.Value(Param{
		Name: p.Name, Type: "number", Doc: p.Doc, Required: p.Required,
		Default: strconv.FormatFloat(p.Default, 'g', -1, 64), Range: limits,
	})
	if !ok {
		return p.Default
	}
	var f float64
	switch v := v.(type) {
	case float64:
		f = v
	case json.Number:
		var err error
		if f, err = v.Float64(); err != nil {
			f = math.NaN()
		}
	default:
		n, isInt := asInt(v)
		if f = float64(n); !isInt {
			f = math.NaN()
		}
	}
	if !(f >= p.Min && f <= p.Max) {
		a.Fault(p.Name, v, "a number %s", limits)
		return p.Default
	}
	return f
}

// Bool returns a boolean parameter.
func (a *Args) Bool(name string, def bool, doc string) bool {
	v, ok := a.Value(Param{Name: name, Type: "boolean", Doc: doc, Default: strconv.FormatBool(def)})
	if !ok {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		a.Fault(name, v, "true or false")
		return def
	}
	return b
}

// Text returns a string parameter.
func (a *Args) Text(name, def, doc string) string {
	v, ok := a.Value(Param{Name: name, Type: "string", Doc: doc, Default: strconv.Quote(def)})
	if !ok {
		return def
	}
	s, ok := v.(string)
	if !ok {
		a.Fault(name, v, "a string")
		return def
	}
	return s
}

// Choice returns a string parameter that must be one of allowed.
func (a *Args) Choice(name, def, doc string, allowed ...string) string {
	one := "one of " + strings.Join(allowed, ", ")
	v, ok := a.Value(Param{Name: name, Type: "string", Doc: doc, Default: def, Range: one})
	if !ok {
		return def
	}
	s, isString := v.(string)
	if !isString || !slices.Contains(allowed, s) {
		a.Fault(name, v, "%s", one)
		return def
	}
	return s
}

// Strings returns a parameter that is a list of non-empty strings. It accepts a single
// string as a list of one.
func (a *Args) Strings(name string, def []string, doc string) []string {
	const want = "a list of strings that are not empty"
	v, ok := a.Value(Param{Name: name, Type: "list of strings", Doc: doc, Default: quoted(def)})
	if !ok {
		return def
	}
	var list []any
	switch v := v.(type) {
	case string:
		list = []any{v}
	case []string:
		for _, s := range v {
			list = append(list, s)
		}
	case []any:
		list = v
	default:
		a.Fault(name, v, "%s", want)
		return def
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, ok := e.(string)
		if !ok || s == "" {
			a.Fault(name, e, "%s", want)
			return def
		}
		out = append(out, s)
	}
	return out
}

// Objects calls each for every object of a required parameter that is a list of objects, in
// order. Errors name the index of the object.
func (a *Args) Objects(name, doc string, each func(*Args)) {
	const want = "a list of objects"
	v, ok := a.Value(Param{Name: name, Type: "list of objects", Doc: doc, Required: true})
	if !ok {
		return
	}
	var list []any
	switch v := v.(type) {
	case []any:
		list = v
	case []Params:
		for _, p := range v {
			list = append(list, p)
		}
	default:
		a.Fault(name, v, "%s", want)
		return
	}
	for i, e := range list {
		p, ok := e.(Params)
		if !ok {
			a.Fault(name, e, "%s", want)
			return
		}
		one := &Args{strategy: fmt.Sprintf("%s: %s[%d]", a.strategy, name, i), params: p, registry: a.registry}
		each(one)
		if err := one.err(); err != nil {
			a.faults = append(a.faults, err)
		}
	}
}

// Strategies returns a parameter that is a list of strategies, each an object {"strategy":
// name, "params": {…}}, created by the same registry.
func (a *Args) Strategies(name, doc string) []Strategy {
	const want = `a list of {"strategy": name, "params": {…}}`
	v, ok := a.Value(Param{Name: name, Type: "list of strategies", Doc: doc, Default: "[]"})
	if !ok {
		return nil
	}
	var specs []Params
	switch list := v.(type) {
	case []Params:
		specs = list
	case []any:
		for _, e := range list {
			spec, ok := e.(Params)
			if !ok {
				a.Fault(name, e, "%s", want)
				return nil
			}
			specs = append(specs, spec)
		}
	default:
		a.Fault(name, v, "%s", want)
		return nil
	}
	out := make([]Strategy, 0, len(specs))
	for i, spec := range specs {
		s, err := a.registry.fromSpec(spec)
		if err != nil {
			a.faults = append(a.faults, fmt.Errorf("%s: %s[%d]: %w", a.strategy, name, i, err))
			continue
		}
		out = append(out, s)
	}
	return out
}

// Summarizer returns the registry's summarizer. It records an error if there is none.
func (a *Args) Summarizer() Summarizer {
	a.summarizer = true
	if a.registry.Summarizer == nil && !a.help {
		a.faults = append(a.faults, fmt.Errorf("%s: %w", a.strategy, ErrNoSummarizer))
	}
	return a.registry.Summarizer
}

// Policy returns the values of the policy that supplies parameters, if there is one. A
// constructor sets parameters that follow from them with Fill before it reads them.
func (a *Args) Policy() (policy.Values, bool) {
	if a.policy == nil {
		return policy.Values{}, false
	}
	return *a.policy, true
}

// Fill sets a parameter that is not given.
func (a *Args) Fill(param string, value any) {
	if !a.Given(param) {
		a.params[param] = value
	}
}

// Given reports whether any of the parameters is given.
func (a *Args) Given(params ...string) bool {
	return slices.ContainsFunc(params, func(p string) bool { _, ok := a.params[p]; return ok })
}

// Fault records an invalid parameter. It is for constraints between parameters, which the
// other methods cannot check. Only the first error of a parameter is recorded.
func (a *Args) Fault(param string, given any, format string, args ...any) {
	if a.help {
		return
	}
	for _, err := range a.faults {
		if p := (*ParamError)(nil); errors.As(err, &p) && p.Strategy == a.strategy && p.Param == param {
			return
		}
	}
	a.faults = append(a.faults, &ParamError{a.strategy, param, show(given), fmt.Sprintf(format, args...)})
}

// Missing records a missing parameter; want describes the expected value.
func (a *Args) Missing(param, want string) {
	a.faults = append(a.faults, &ParamError{a.strategy, param, "", want})
}

// Faulty reports whether an error was recorded.
func (a *Args) Faulty() bool { return len(a.faults) > 0 }

// Value returns the raw value of a parameter and describes it for the help text. It is for
// types without a method of their own.
func (a *Args) Value(p Param) (any, bool) {
	if p.Required {
		p.Default = ""
	}
	a.described = append(a.described, p)
	v, ok := a.params[p.Name]
	if !ok && p.Required && !a.help {
		a.faults = append(a.faults, &ParamError{a.strategy, p.Name, "", strings.TrimSpace(p.Type + " " + p.Range)})
	}
	return v, ok
}

// err returns all recorded errors, with one for each given parameter that was not read.
func (a *Args) err() error {
	names := make([]string, len(a.described))
	for i, p := range a.described {
		names[i] = p.Name
	}
	var unknown []string
	for name := range a.params {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		allowed := "no parameters"
		if len(names) > 0 {
			allowed = "only " + strings.Join(names, ", ")
		}
		a.faults = append(a.faults, &ParamError{a.strategy, name, "an unknown parameter", allowed})
	}
	return errors.Join(a.faults...)
}

// show formats a value for an error, shortened to 60 bytes.
func show(v any) string {
	s := fmt.Sprint(v)
	switch v.(type) {
	case string:
		s = strconv.Quote(s)
	case nil:
		s = "null"
	}
	if head := text.Head(s, 60); head != s {
		s = head + "…"
	}
	return s
}

// quoted formats a list of strings as JSON.
func quoted(list []string) string {
	b, err := json.Marshal(slices.Concat([]string{}, list))
	if err != nil {
		return "[]"
	}
	return string(b)
}

func asInt(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case uint64:
		return int64(v), v <= math.MaxInt64
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<63
	case json.Number:
		n, err := v.Int64()
		return n, err == nil
	}
	return 0, false
}

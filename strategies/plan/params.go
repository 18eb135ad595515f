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

// Param describes one parameter of a strategy, as `compactor strategies` prints it.
type Param struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Doc  string `json:"doc"`
	// Default is the default as written in a configuration; empty if Required.
	Default  string `json:"default,omitempty"`
	Required bool   `json:"required"`
	// Range describes the allowed values beyond the type; it may be empty.
	Range string `json:"range,omitempty"`
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
	param := Param{
		Name: p.Name, Type: "integer", Doc: p.Doc, Required: p.Required,
		Default: strconv.FormatInt(p.Default, 10), Range: limits,
	}
	return value(a, param, p.Default, strings.TrimSpace("an integer "+limits), func(v any) (int64, bool) {
		n, ok := asInt(v)
		return n, ok && n >= p.Min && (p.Max == 0 || n <= p.Max)
	})
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
	param := Param{
		Name: p.Name, Type: "number", Doc: p.Doc, Required: p.Required,
		Default: strconv.FormatFloat(p.Default, 'g', -1, 64), Range: limits,
	}
	return value(a, param, p.Default, "a number "+limits, func(v any) (float64, bool) {
		f, ok := asFloat(v)
		return f, ok && f >= p.Min && f <= p.Max
	})
}

// Bool returns a boolean parameter.
func (a *Args) Bool(name string, def bool, doc string) bool {
	p := Param{Name: name, Type: "boolean", Doc: doc, Default: strconv.FormatBool(def)}
	return value(a, p, def, "true or false", as[bool])
}

// Text returns a string parameter.
func (a *Args) Text(name, def, doc string) string {
	p := Param{Name: name, Type: "string", Doc: doc, Default: strconv.Quote(def)}
	return value(a, p, def, "a string", as[string])
}

// Choice returns a string parameter that must be one of allowed.
func (a *Args) Choice(name, def, doc string, allowed ...string) string {
	one := "one of " + strings.Join(allowed, ", ")
	p := Param{Name: name, Type: "string", Doc: doc, Default: def, Range: one}
	return value(a, p, def, one, func(v any) (string, bool) {
		s, ok := v.(string)
		return s, ok && slices.Contains(allowed, s)
	})
}

// Strings returns a parameter that is a list of non-empty strings. It accepts a single
// string as a list of one.
func (a *Args) Strings(name string, def []string, doc string) []string {
	p := Param{Name: name, Type: "list of strings", Doc: doc, Default: quoted(def)}
	return value(a, p, def, "a list of strings that are not empty", func(v any) ([]string, bool) {
		if s, ok := v.(string); ok {
			v = []string{s}
		}
		list, ok := asList[string](v)
		return list, ok && !slices.Contains(list, "")
	})
}

// Objects calls each for every object of a required parameter that is a list of objects, in
// order. Errors name the index of the object.
func (a *Args) Objects(name, doc string, each func(*Args)) {
	p := Param{Name: name, Type: "list of objects", Doc: doc, Required: true}
	for i, object := range value(a, p, nil, "a list of objects", asList[Params]) {
		one := &Args{strategy: fmt.Sprintf("%s: %s[%d]", a.strategy, name, i), params: object, registry: a.registry}
		each(one)
		if err := one.err(); err != nil {
			a.faults = append(a.faults, err)
		}
	}
}

// Strategies returns a parameter that is a list of strategies, each an object {"strategy":
// name, "params": {…}}, created by the same registry.
func (a *Args) Strategies(name, doc string) []Strategy {
	p := Param{Name: name, Type: "list of strategies", Doc: doc, Default: "[]"}
	var out []Strategy
	for i, spec := range value(a, p, nil, `a list of {"strategy": name, "params": {…}}`, asList[Params]) {
		s, err := a.registry.fromSpec(spec)
		if err != nil {
			a.faults = append(a.faults, fmt.Errorf("%s: %s[%d]: %w", a.strategy, name, i, err))
			continue
		}
		out = append(out, s)
	}
	return out
}

// value returns the converted value of a parameter, or def if it is missing or invalid. want
// describes the valid values.
func value[T any](a *Args, p Param, def T, want string, convert func(v any) (T, bool)) T {
	v, ok := a.Value(p)
	if !ok {
		return def
	}
	out, ok := convert(v)
	if !ok {
		a.Fault(p.Name, v, "%s", want)
		return def
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

// Extractor returns the registry's summarizer, made to write without a model, or nil if it
// is none that can.
func (a *Args) Extractor() Summarizer {
	if e, ok := a.registry.Summarizer.(Extractive); ok {
		return e.Extractive()
	}
	return nil
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
	case []any, []string:
		if b, err := json.Marshal(v); err == nil {
			s = string(b)
		}
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

func as[T any](v any) (T, bool) {
	out, ok := v.(T)
	return out, ok
}

// asList returns a list of Ts, which decoders return as a list of any.
func asList[T any](v any) ([]T, bool) {
	list, ok := v.([]any)
	if !ok {
		return as[[]T](v)
	}
	out := make([]T, len(list))
	for i, e := range list {
		if out[i], ok = e.(T); !ok {
			return nil, false
		}
	}
	return out, true
}

func asFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	n, ok := asInt(v)
	return float64(n), ok
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

package plan

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/policy"
)

// ErrUnknownStrategy is returned for a name that is not registered.
var ErrUnknownStrategy = errors.New("unknown strategy")

// Constructor creates a strategy. It must read every parameter from args on every call,
// since help texts are collected from the same calls, and have no side effects. Its own
// error is for faults that are not about parameters.
type Constructor func(args *Args) (Strategy, error)

// Info describes a registered strategy.
type Info struct {
	Name   string  `json:"name"`
	Doc    string  `json:"doc"`
	Params []Param `json:"params"`
	// Summarizer reports whether the strategy requires a summarizer.
	Summarizer bool `json:"summarizer"`
}

// Registry creates strategies by name. Register must not be called concurrently with other
// methods; all other methods are safe for concurrent use.
type Registry struct {
	// Summarizer is passed to strategies that need one; without it they cannot be created.
	Summarizer Summarizer

	known map[string]registered
}

type registered struct {
	doc  string
	make Constructor
}

// Register adds a strategy under a new name in snake_case. doc is one line.
func (r *Registry) Register(name, doc string, constructor Constructor) error {
	if !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(name) {
		return fmt.Errorf("register strategy %q: want a name in snake_case", name)
	}
	if constructor == nil {
		return fmt.Errorf("register strategy %q: want a constructor", name)
	}
	if _, taken := r.known[name]; taken {
		return fmt.Errorf("register strategy %q: the name is taken", name)
	}
	if r.known == nil {
		r.known = map[string]registered{}
	}
	r.known[name] = registered{doc, constructor}
	return nil
}

// With returns a registry of the same strategies with another summarizer.
func (r *Registry) With(s Summarizer) *Registry {
	return &Registry{Summarizer: s, known: r.known}
}

// Summarizes reports whether the named strategy requests summaries.
func (r *Registry) Summarizes(name string) bool {
	return r.describe(name, nil, nil).summarizer
}

// describe calls a constructor for the parameters that it reads; its strategy and its error do
// not count.
func (r *Registry) describe(name string, params Params, v *policy.Values) *Args {
	args := &Args{strategy: name, params: params, registry: r, help: true, policy: v}
	if known, ok := r.known[name]; ok {
		_, _ = known.make(args)
	}
	return args
}

// Fill implements policy.FillFunc for the registered strategies. It returns the parameters
// of other names unchanged.
func (r *Registry) Fill(name string, params Params, v policy.Values) Params {
	filled := Params{}
	maps.Copy(filled, params)
	return r.describe(name, filled, &v).params
}

// New creates a strategy. The error joins a *ParamError for every invalid parameter, or
// wraps ErrUnknownStrategy.
func (r *Registry) New(name string, params Params) (Strategy, error) {
	known, ok := r.known[name]
	if !ok {
		hint := "want one of " + strings.Join(r.Names(), ", ")
		if near := policy.Nearest(name, r.Names()); near != "" {
			hint = "did you mean " + near + "?"
		}
		return nil, fmt.Errorf("%w %q, %s", ErrUnknownStrategy, name, hint)
	}
	args := &Args{strategy: name, params: params, registry: r}
	s, err := known.make(args)
	if faults := args.err(); faults != nil {
		return nil, faults
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// Names returns the registered names, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.known)) }

// Describe returns the registered strategies, sorted by name.
func (r *Registry) Describe() []Info {
	out := make([]Info, 0, len(r.known))
	for _, name := range r.Names() {
		args := r.describe(name, nil, nil)
		out = append(out, Info{Name: name, Doc: r.known[name].doc, Params: args.described, Summarizer: args.summarizer})
	}
	return out
}

// fromSpec creates the strategy of an object {"strategy": name, "params": {…}}.
func (r *Registry) fromSpec(spec Params) (Strategy, error) {
	for key := range spec {
		if key != "strategy" && key != "params" {
			return nil, fmt.Errorf("unknown key %q, want strategy and params", key)
		}
	}
	name, ok := spec["strategy"].(string)
	if !ok {
		return nil, fmt.Errorf("strategy: got %s, want one of %s", show(spec["strategy"]), strings.Join(r.Names(), ", "))
	}
	params, ok := spec["params"].(Params)
	if !ok && spec["params"] != nil {
		return nil, fmt.Errorf("params of %s: got %s, want an object", name, show(spec["params"]))
	}
	return r.New(name, params)
}

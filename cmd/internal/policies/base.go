package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Names that a policy file may extend beside those of policies.
const (
	BaseConfiguration = "configuration" // the policy of the configuration
	BaseNone          = "none"          // the default settings
)

// maxBases bounds how many policies extend each other in a row.
const maxBases = 8

// base is the policy that another one extends: its name and its settings.
type base struct {
	name, hash string
	spec       json.RawMessage
}

// newBase returns the base with the settings of a spec; the hash is that of the settings, however
// the database writes them.
func newBase(name string, spec json.RawMessage) (base, error) {
	p, err := policy.ReadSpec(spec)
	if err != nil {
		return base{}, err
	}
	return specBase(name, p)
}

// Source is the content of a policy file, its path for errors, and the error of reading it.
type Source struct {
	Path string
	Raw  []byte
	Err  error
}

// File is a policy file with its base.
type File struct {
	config.PolicyFile
	base base
}

// reading is a file on its way: raw, and then read.
type reading struct {
	Source
	File
	begun, done bool
	err         error
}

// Read reads and checks policy files, which extend policies that are in force and each other.
// The error lists all that is wrong with them. The registry has a summarizer.
func Read(ctx context.Context, st *store.Store, cfg config.Config, registry *plan.Registry, sources ...Source) ([]File, error) {
	b := bases{ctx: ctx, st: st, cfg: cfg, registry: registry, files: map[string]*reading{}}
	var all []*reading
	var faults []error
	for _, source := range sources {
		if source.Err != nil {
			faults = append(faults, source.Err)
			continue
		}
		f := &reading{Source: source}
		// Its name, for the others; its errors are found when it is read.
		named, _ := config.ReadPolicy(f.Path, f.Raw, nil) //nolint:errcheck // see above
		if first, twice := b.files[named.Name]; twice {
			faults = append(faults, fmt.Errorf("%s: name: %s is that of %s, too", f.Path, named.Name, first.Path))
		} else {
			b.files[named.Name] = f
		}
		all = append(all, f)
	}
	var files []File
	for _, f := range all {
		b.read(f)
		if faults = append(faults, f.err); f.err == nil {
			files = append(files, f.File)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return files, nil
}

// Fault is something that is wrong with policy files: of a setting, or with an empty Key of a file.
type Fault struct{ Key, Text string }

// Faults returns what the error of Read lists.
func Faults(err error) (out []Fault) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // one that wraps errors is not joined
		for _, e := range joined.Unwrap() {
			out = append(out, Faults(e)...)
		}
		return out
	}
	if s, ok := errors.AsType[*config.SettingError](err); ok {
		return []Fault{{s.Key, s.Error()}}
	}
	return []Fault{{"", err.Error()}}
}

// bases finds the bases of policies, among files that are applied together and the policies in force.
type bases struct {
	ctx      context.Context //nolint:containedctx // of one command
	st       *store.Store
	cfg      config.Config
	registry *plan.Registry
	files    map[string]*reading // by name
}

// read reads a file, and first those that it extends.
func (b *bases) read(f *reading) {
	if f.done {
		return
	}
	f.begun = true
	f.PolicyFile, f.err = config.ReadPolicyOver(f.Path, f.Raw, b.registry, func(p config.PolicyFile) (policy.Policy, error) {
		var err error
		if f.base, err = b.of(p.Name, p.Extends); err != nil {
			return policy.Policy{}, err
		}
		return policy.ReadSpec(f.base.spec)
	})
	f.begun, f.done = false, true
}

// of returns the base of the policy of a name. Unless the file names one, that is the policy default,
// and for that one the policy of the configuration.
func (b *bases) of(name, extends string) (base, error) {
	switch {
	case extends == "" && name == policy.DefaultName:
		extends = BaseConfiguration
	case extends == "":
		extends = policy.DefaultName
	}
	switch f := b.files[extends]; {
	case extends == BaseNone:
		return specBase(BaseNone, policy.Default())
	case extends == BaseConfiguration:
		return specBase(BaseConfiguration, b.cfg.Policy)
	case extends == name || f != nil && f.begun:
		return base{}, fmt.Errorf("%q: want another policy: %s would extend itself", extends, name)
	case f != nil:
		b.read(f)
		if f.err != nil {
			return base{}, fmt.Errorf("%q: %s has faults", extends, f.Path)
		}
		return specBase(extends, f.Policy)
	}
	v, err := b.stored(extends)
	if err != nil {
		return base{}, err
	}
	// Those in force extend others in turn.
	chain := []string{name, extends}
	for next := v.Extends; next != ""; {
		if slices.Contains(chain, next) || len(chain) > maxBases {
			return base{}, fmt.Errorf("%q: want a policy that does not extend %s in turn, at most %d in a row: %s",
				extends, name, maxBases, strings.Join(append(chain, next), " → "))
		}
		chain = append(chain, next)
		w, err := b.st.Policy(b.ctx, next, 0)
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return base{}, err
		}
		next = w.Extends
	}
	return newBase(extends, v.Spec)
}

// stored returns the policy of a name that is in force.
func (b *bases) stored(name string) (store.PolicyVersion, error) {
	v, err := Ref{Name: name}.Load(b.ctx, b.st)
	switch {
	case errors.Is(err, store.ErrNotFound) && name == policy.DefaultName: // no scheduler has saved its configuration yet
		v = store.PolicyVersion{Name: name}
		v.Spec, err = policy.Spec(b.cfg.Policy)
	case errors.Is(err, store.ErrNotFound):
		known := []string{policy.DefaultName, BaseConfiguration, BaseNone}
		if all, err := b.st.Policies(b.ctx, ""); err == nil {
			for _, v := range all {
				known = append(known, v.Name)
			}
		}
		slices.Sort(known)
		err = fmt.Errorf("%q: no policy of that name is in force or among the files, want one of %s", term.Clean(name),
			strings.Join(slices.Compact(known), ", "))
		return v, err
	}
	return v, err
}

func specBase(name string, p policy.Policy) (base, error) {
	spec, err := policy.Spec(p)
	return base{name, policy.SpecHash(spec), spec}, err
}

// Inherited reports whether a version has a setting from the policy that it extends.
func Inherited(v store.PolicyVersion, key string) bool {
	return v.Extends != "" && !slices.ContainsFunc(v.Given, func(given string) bool { return given == key || strings.HasPrefix(key, given+".") })
}

// Follows reports whether the policy that a version extends is still in force, and whether it has the
// settings that it had then.
func Follows(ctx context.Context, st *store.Store, cfg config.Config, v store.PolicyVersion) (inForce, same bool) {
	b := bases{ctx: ctx, st: st, cfg: cfg}
	now, err := b.of(v.Name, v.Extends)
	return err == nil, err == nil && now.hash == v.BaseHash
}

// losses are settings that people miss when they are gone.
var losses = []string{
	"retention.archive_after", "retention.purge_after", "pin_tools", "pin_paths", "preserve_system",
	"summary.instruction", "summary.focus", "summary.max_cost", "summary.on_failure", "guards.max_per_hour", "guards.max_per_day", "guards.min_interval",
}

// lost returns those of changes that take away a setting, or set it back to its default, which people miss.
func lost(changes []policy.Change) (out []policy.Change) {
	spec, _ := policy.Spec(policy.Default()) //nolint:errcheck // it is a constant
	defaults, _ := policy.Diff(nil, spec)    //nolint:errcheck // see above
	for _, c := range changes {
		if !slices.Contains(losses, c.Key) || isUnset(c.From) {
			continue
		}
		if isUnset(c.To) || slices.ContainsFunc(defaults, func(d policy.Change) bool { return d.Key == c.Key && d.To == c.To }) {
			out = append(out, c)
		}
	}
	return out
}

// isUnset reports whether the JSON of a setting says that there is none.
func isUnset(raw string) bool {
	return slices.Contains([]string{"", `""`, "0", "[]", "{}", "null", `"0s"`, "false"}, raw)
}

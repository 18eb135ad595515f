package cli

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

// What a policy file may extend beside policies by their names.
const (
	baseConfiguration = "configuration" // the policy of the configuration
	baseNone          = "none"          // the default settings
)

// maxBases bounds how many policies extend each other in a row.
const maxBases = 8

// policyBase is the policy that another one extends: its name and its settings.
type policyBase struct {
	name, hash string
	spec       json.RawMessage
}

// newBase returns the base with the settings of a spec; the hash is that of the settings, however
// the database writes them.
func newBase(name string, spec json.RawMessage) (policyBase, error) {
	p, err := policy.ReadSpec(spec)
	if err != nil {
		return policyBase{}, err
	}
	return specBase(name, p)
}

// policyFile is a file on its way: raw, and then read.
type policyFile struct {
	path    string
	raw     []byte
	reading bool
	done    bool
	out     config.PolicyFile
	base    policyBase
	err     error
}

// bases finds the bases of policies, among files that are applied together and the policies in force.
type bases struct {
	ctx      context.Context //nolint:containedctx // of one command
	st       *store.Store
	cfg      config.Config
	registry *plan.Registry
	files    map[string]*policyFile // by name
}

// read reads a file, and first those that it extends.
func (b *bases) read(f *policyFile) {
	if f.done {
		return
	}
	f.reading = true
	f.out, f.err = config.ReadPolicyOver(f.path, f.raw, b.registry, func(p config.PolicyFile) (policy.Policy, error) {
		var err error
		if f.base, err = b.of(p.Name, p.Extends); err != nil {
			return policy.Policy{}, err
		}
		return policy.ReadSpec(f.base.spec)
	})
	f.reading, f.done = false, true
}

// of returns the base of the policy of a name. Unless the file names one, that is the policy default,
// and for that one the policy of the configuration.
func (b *bases) of(name, extends string) (policyBase, error) {
	switch {
	case extends == "" && name == policy.DefaultName:
		extends = baseConfiguration
	case extends == "":
		extends = policy.DefaultName
	}
	switch f := b.files[extends]; {
	case extends == baseNone:
		return specBase(baseNone, policy.Default())
	case extends == baseConfiguration:
		return specBase(baseConfiguration, b.cfg.Policy)
	case extends == name || f != nil && f.reading:
		return policyBase{}, fmt.Errorf("%q: want another policy: %s would extend itself", extends, name)
	case f != nil:
		b.read(f)
		if f.err != nil {
			return policyBase{}, fmt.Errorf("%q: %s has faults", extends, f.path)
		}
		return specBase(extends, f.out.Policy)
	}
	v, err := b.stored(extends)
	if err != nil {
		return policyBase{}, err
	}
	// Those in force extend others in turn.
	chain := []string{name, extends}
	for next := v.Extends; next != ""; {
		if slices.Contains(chain, next) || len(chain) > maxBases {
			return policyBase{}, fmt.Errorf("%q: want a policy that does not extend %s in turn, at most %d in a row: %s",
				extends, name, maxBases, strings.Join(append(chain, next), " → "))
		}
		chain = append(chain, next)
		w, err := b.st.Policy(b.ctx, next, 0)
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return policyBase{}, err
		}
		next = w.Extends
	}
	return newBase(extends, v.Spec)
}

// stored returns the policy of a name that is in force.
func (b *bases) stored(name string) (store.PolicyVersion, error) {
	v, err := policyRef{Name: name}.load(b.ctx, b.st)
	switch {
	case errors.Is(err, store.ErrNotFound) && name == policy.DefaultName: // no scheduler has saved its configuration yet
		v = store.PolicyVersion{Name: name}
		v.Spec, err = policy.Spec(b.cfg.Policy)
	case errors.Is(err, store.ErrNotFound):
		known := []string{policy.DefaultName, baseConfiguration, baseNone}
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

func specBase(name string, p policy.Policy) (policyBase, error) {
	spec, err := policy.Spec(p)
	return policyBase{name, policy.SpecHash(spec), spec}, err
}

// inherited returns of settings those that a version has not given by itself.
func inherited(v store.PolicyVersion, key string) bool {
	return v.Extends != "" && !slices.ContainsFunc(v.Given, func(given string) bool { return given == key || strings.HasPrefix(key, given+".") })
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

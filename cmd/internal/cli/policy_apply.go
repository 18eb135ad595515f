package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

type policyApplyCmd struct {
	Files []string `arg:"" name:"file" help:"Policy files; - is standard input."`
	confirmFlags
}

func (c *policyApplyCmd) Run(ctx context.Context, e *Env, cfg config.Config) error {
	st, err := e.Open(ctx)
	if err != nil {
		return err
	}
	files, err := e.policyFiles(ctx, st, cfg, c.Files)
	if err != nil {
		return err
	}
	var steps []policyStep
	for _, f := range files {
		from, err := inForce(ctx, st, f.Name)
		if err != nil {
			return err
		}
		to, err := newVersion(f)
		if err != nil {
			return err
		}
		if from != nil {
			same, err := policy.Diff(from.Spec, to.Spec)
			if err != nil {
				return err
			}
			if len(same) == 0 && policy.Match(from.Match).String() == f.Match.String() && from.Extends == to.Extends && slices.Equal(from.Given, to.Given) {
				if !e.JSON {
					e.say("%s is in force already", title(*from))
				}
				continue
			}
		}
		s, err := newPolicyStep(cfg, f.Name, from, to)
		if err != nil {
			return err
		}
		s.base = f.base.spec
		steps = append(steps, s)
	}
	if len(steps) == 0 && !e.JSON {
		return nil
	}
	for _, s := range steps {
		if err := e.warnOfMatch(ctx, st, s.to.Match); err != nil {
			return err
		}
	}
	return c.run(ctx, e, st, steps)
}

// mostLabels bounds the keys of labels that are looked at.
const mostLabels = 1000

// warnOfMatch says which keys of a match no session has, which may be meant for later.
func (e *Env) warnOfMatch(ctx context.Context, st *store.Store, match policy.Match) error {
	for _, key := range slices.Sorted(maps.Keys(match)) {
		switch key {
		case "tenant":
			known, some, err := st.Operator.HasTenant(ctx, match[key], 8)
			if err != nil {
				return err
			}
			if !known {
				e.note("warning: match: tenant %s has no sessions (%s)", term.Clean(match[key]), someNames("tenants", some))
			}
		case "model":
			if err := e.warnOfModel(ctx, st, match[key]); err != nil {
				return err
			}
		default:
			labels, err := st.Operator.Labels(ctx, mostLabels)
			if err != nil {
				return err
			}
			if !slices.Contains(labels, key) {
				e.note("warning: match: no session has the label %s (%s)", term.Clean(key),
					someNames("labels", labels[:min(8, len(labels))]))
			}
		}
	}
	return nil
}

// warnOfModel says that no session has a model whose name begins so.
func (e *Env) warnOfModel(ctx context.Context, st *store.Store, prefix string) error {
	known, err := st.Operator.HasModel(ctx, prefix)
	if err == nil && !known {
		e.note("warning: no session has a model whose name begins with %s", term.Clean(prefix))
	}
	return err
}

// readPolicy is a policy file with its base.
type readPolicy struct {
	config.PolicyFile
	base policyBase
}

// policyFiles reads and checks policy files, which extend policies that are in force and each other.
// The error lists all that is wrong with them.
func (e *Env) policyFiles(ctx context.Context, st *store.Store, cfg config.Config, paths []string) ([]readPolicy, error) {
	b := bases{ctx: ctx, st: st, cfg: cfg, registry: summarizing(e.Registry), files: map[string]*policyFile{}}
	var all []*policyFile
	var faults []error
	for _, path := range paths {
		raw, err := e.readFile(path)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		f := &policyFile{path: path, raw: raw}
		// Its name, for the others; its errors are found when it is read.
		named, _ := config.ReadPolicy(path, raw, nil) //nolint:errcheck // see above
		if first, twice := b.files[named.Name]; twice {
			faults = append(faults, fmt.Errorf("%s: name: %s is that of %s, too", path, named.Name, first.path))
		} else {
			b.files[named.Name] = f
		}
		all = append(all, f)
	}
	var files []readPolicy
	for _, f := range all {
		b.read(f)
		if faults = append(faults, f.err); f.err == nil {
			files = append(files, readPolicy{f.out, f.base})
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return files, nil
}

// readFile reads a file, or standard input for "-".
func (e *Env) readFile(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(e.Stdin)
	}
	return os.ReadFile(path)
}

// newVersion returns the policy of a file as a version without a number.
func newVersion(f readPolicy) (*store.PolicyVersion, error) {
	spec, err := policy.Spec(f.Policy)
	if err != nil {
		return nil, err
	}
	return &store.PolicyVersion{
		Name: f.Name, Spec: spec, Hash: policy.SpecHash(spec), Match: f.Match, Note: f.Note,
		Extends: f.base.name, BaseHash: f.base.hash, Given: f.Given,
	}, nil
}

// inForce returns the version of a policy that is in force, nil for none.
func inForce(ctx context.Context, st *store.Store, name string) (*store.PolicyVersion, error) {
	v, err := st.Policy(ctx, name, 0)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // none is in force
	}
	return &v, err
}

type policyRollbackCmd struct {
	Name string `arg:"" help:"The policy."`
	To   int    `placeholder:"VERSION" help:"The version; default: the one that was in force before."`
	confirmFlags
}

func (c *policyRollbackCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	from, err := inForce(ctx, st, c.Name)
	if err != nil {
		return err
	}
	version := c.To
	if version == 0 {
		if version, err = versionBefore(ctx, st, c.Name, from); err != nil {
			return err
		}
	}
	to, err := st.Policy(ctx, c.Name, version)
	if err != nil {
		return err
	}
	if to.InForce {
		e.note("%s is in force already", title(to))
		return nil
	}
	s, err := newPolicyStep(cfg, c.Name, from, &to)
	if err != nil {
		return err
	}
	return c.run(ctx, e, st, []policyStep{s})
}

// versionBefore returns the version that was in force before that of now, if any.
func versionBefore(ctx context.Context, st *store.Store, name string, now *store.PolicyVersion) (int, error) {
	switches, err := st.Operator.PolicySwitches(ctx, name)
	if err != nil {
		return 0, err
	}
	for _, s := range switches {
		if s.Version > 0 && (now == nil || s.Version != now.Version) {
			return s.Version, nil
		}
	}
	return 0, fmt.Errorf("policy %s has no version that was in force before: %w", term.Clean(name), store.ErrNotFound)
}

type policyDisableCmd struct {
	Name string `arg:"" help:"The policy."`
	confirmFlags
}

func (c *policyDisableCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	from, err := st.Policy(ctx, c.Name, 0)
	if err != nil {
		return err
	}
	s, err := newPolicyStep(cfg, c.Name, &from, nil)
	if err != nil {
		return err
	}
	return c.run(ctx, e, st, []policyStep{s})
}

type policyAssignCmd struct {
	Session string `arg:"" help:"The session."`
	Policy  string `arg:"" optional:"" help:"The policy; without it the session gets the one that it matches."`
}

func (c *policyAssignCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	k := key(cfg, c.Session)
	if err := st.SetPolicy(ctx, k, c.Policy); err != nil {
		return err
	}
	row, err := st.Session(ctx, k)
	if err != nil {
		return err
	}
	return e.answer(map[string]any{"session": c.Session, "policy": row.Policy}, "session %s has the policy %s",
		term.Clean(c.Session), row.Policy)
}

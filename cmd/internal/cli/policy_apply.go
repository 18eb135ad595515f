package cli

import (
	"context"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
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
	steps, same, err := policies.Applying(ctx, st, cfg, files)
	if err != nil {
		return err
	}
	for _, v := range same {
		if !e.JSON {
			e.say("%s is in force already", policies.Title(v))
		}
	}
	if len(steps) == 0 && !e.JSON {
		return nil
	}
	for _, s := range steps {
		if err := e.warnOfMatch(ctx, st, s.To.Match); err != nil {
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

// policyFiles reads and checks policy files, which extend policies that are in force and each other.
func (e *Env) policyFiles(ctx context.Context, st *store.Store, cfg config.Config, paths []string) ([]policies.File, error) {
	var sources []policies.Source
	for _, path := range paths {
		raw, err := e.readFile(path)
		sources = append(sources, policies.Source{Path: path, Raw: raw, Err: err})
	}
	files, err := policies.Read(ctx, st, cfg, summarizing(e.Registry), sources...)
	if err != nil {
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

type policyRollbackCmd struct {
	Name string `arg:"" help:"The policy."`
	To   int    `placeholder:"VERSION" help:"The version; default: the one that was in force before."`
	confirmFlags
}

func (c *policyRollbackCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	steps, to, err := policies.RollingBack(ctx, st, cfg, c.Name, c.To)
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		e.note("%s is in force already", policies.Title(to))
		return nil
	}
	return c.run(ctx, e, st, steps)
}

type policyDisableCmd struct {
	Name string `arg:"" help:"The policy."`
	confirmFlags
}

func (c *policyDisableCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	steps, err := policies.Disabling(ctx, st, cfg, c.Name)
	if err != nil {
		return err
	}
	return c.run(ctx, e, st, steps)
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

//go:build !nodev

package cli

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/dev/eval"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// defaultPolicy names the policy that applies without a configuration.
const defaultPolicy = "default"

// programVersion returns the version for definitions of policies.
func programVersion() string {
	v := newBuildVersion(debug.ReadBuildInfo())
	return fmt.Sprint(v.Version, v.Revision, v.Modified)
}

// evalPolicies returns the policies of names, which may be comma-separated lists; without
// names, the built-in ones that need no model. open is called if a policy may need models.
// The error lists all invalid names.
func evalPolicies(names []string, cfg config.Config, registry *plan.Registry, open func() (summary.Model, error)) ([]eval.Policy, error) {
	known := append(eval.Baselines(), evalExtractive())
	if len(names) == 0 {
		return known, nil
	}
	var out []eval.Policy
	var faults []error
	for _, name := range splitPolicies(names) {
		if slices.ContainsFunc(out, func(p eval.Policy) bool { return p.Name == name }) {
			continue
		}
		p, err := evalPolicy(name, cfg.Policy, known, registry, open)
		if exit, ok := errors.AsType[*exitError](err); ok {
			return nil, exit // about the models, not about the name
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("--policy %w", err))
			continue
		}
		out = append(out, p)
	}
	if len(faults) > 0 {
		return nil, &exitError{exitUsage, errors.Join(faults...)}
	}
	return out, nil
}

// evalPolicy returns the policy with a name.
func evalPolicy(name string, base policy.Policy, known []eval.Policy, registry *plan.Registry, open func() (summary.Model, error)) (eval.Policy, error) {
	if i := slices.IndexFunc(known, func(p eval.Policy) bool { return p.Name == name }); i >= 0 {
		return known[i], nil
	}
	if name != modelPolicy {
		return evalPipeline(name, base, known, registry, open)
	}
	models, err := open()
	if err == nil && models == nil {
		err = fmt.Errorf("%s: no models are configured: want llm.models in the configuration file", name)
	}
	if err != nil {
		return eval.Policy{}, err
	}
	return evalModel(base.Summary, models), nil
}

// splitPolicies splits lists at their commas, except those between the parameters of a
// strategy: "a,b:x=1,y=2,c" gives a, b:x=1,y=2 and c.
func splitPolicies(lists []string) []string {
	var out []string
	for _, list := range lists {
		first := len(out)
		for _, part := range splitTop(list) {
			part = strings.TrimSpace(part)
			name, _, param := strings.Cut(part, "=")
			if param && !strings.Contains(name, ":") && len(out) > first && strings.Contains(out[len(out)-1], ":") {
				out[len(out)-1] += "," + part
				continue
			}
			out = append(out, part)
		}
	}
	return out
}

// namedPolicy returns the policy of a preset, the defaults, the configuration, or joined strategies. An
// error names others, too.
func namedPolicy(name string, base policy.Policy, registry *plan.Registry, others ...string) (policy.Policy, error) {
	if preset, err := policy.PresetNamed(name); err == nil {
		return preset.Over(base), nil
	}
	switch name {
	case configuredPolicy:
		return base, nil
	case defaultPolicy: // within the configured limits and by the same writer, as presets are
		d := policy.Default()
		d.Summary.Writer = base.Summary.Writer
		base.Preset, base.Pipeline, base.Summary = "", d.Pipeline, d.Summary
		return base, nil
	}
	base.Pipeline = nil
	for spec := range strings.SplitSeq(name, "+") {
		s, err := parseStrategy(spec)
		if err == nil && !slices.Contains(registry.Names(), s.Strategy) {
			others = append(others, "a preset ("+strings.Join(policy.PresetNames(), ", ")+")", defaultPolicy, configuredPolicy)
			err = fmt.Errorf("unknown policy: want %s, or strategies with + between them (%s)", strings.Join(others, ", "), strings.Join(registry.Names(), ", "))
		}
		if err != nil {
			return base, fmt.Errorf("%s: %w", name, err)
		}
		base.Pipeline = append(base.Pipeline, s)
	}
	return base, nil
}

// evalPipeline returns the policy of a name (see namedPolicy).
func evalPipeline(name string, base policy.Policy, known []eval.Policy, registry *plan.Registry, open func() (summary.Model, error)) (eval.Policy, error) {
	base, err := namedPolicy(name, base, registry, eval.Names(known), modelPolicy)
	if err != nil {
		return eval.Policy{}, err
	}
	var models summary.Model
	if summarizes(base.Summary, base.Steps(base.Limits("", tokens.Window), registry.Fill), registry) {
		if models, err = open(); err != nil {
			return eval.Policy{}, err
		}
	}
	p, err := eval.Pipeline(name, base, eval.Build{Registry: registry, Model: models, Version: programVersion()})
	if err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

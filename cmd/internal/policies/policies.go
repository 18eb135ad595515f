// Package policies reads policy files and changes the policies that are in force, after a look at
// the effects, for the command line and the HTTP API.
package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Ref is NAME or NAME@VERSION; the version is 0 for that in force.
type Ref struct {
	Name    string
	Version int
}

// UnmarshalText parses NAME[@VERSION].
func (r *Ref) UnmarshalText(text []byte) error {
	name, version, given := strings.Cut(string(text), "@")
	r.Name, r.Version = name, 0
	if !given {
		return nil
	}
	n, err := strconv.Atoi(version)
	if err != nil || n < 1 {
		return fmt.Errorf("%q: want NAME or NAME@VERSION, such as support@3", text)
	}
	r.Version = n
	return nil
}

// Load returns the version that the reference names. That of the policy default is the
// configuration's unless another one is in force.
func (r Ref) Load(ctx context.Context, st *store.Store) (store.PolicyVersion, error) {
	v, err := st.Policy(ctx, r.Name, r.Version)
	if errors.Is(err, store.ErrNotFound) && r.Name == policy.DefaultName && r.Version == 0 {
		v = store.PolicyVersion{Name: r.Name, Match: map[string]string{}, InForce: true}
		if v.Spec, err = st.Operator.DefaultPolicy(ctx); errors.Is(err, store.ErrNotFound) {
			return v, fmt.Errorf("no scheduler has saved the policy of its configuration yet: %w", store.ErrNotFound)
		}
		if err == nil {
			v.Spec, err = withoutSchedule(v.Spec)
		}
	}
	return v, err
}

// withoutSchedule returns the spec of a policy that a scheduler has saved with its schedule.
func withoutSchedule(raw json.RawMessage) (json.RawMessage, error) {
	p := policy.Default()
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("policy cannot be read: %w", err)
	}
	return policy.Spec(p)
}

// Title returns "support@3", or "default (configuration)" for a policy that was not applied.
func Title(v store.PolicyVersion) string {
	if v.Version == 0 {
		return v.Name + " (configuration)"
	}
	return store.PolicyName(v.Name, v.Version)
}

// InForce returns the version of a policy that is in force, nil for none.
func InForce(ctx context.Context, st *store.Store, name string) (*store.PolicyVersion, error) {
	v, err := st.Policy(ctx, name, 0)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // none is in force
	}
	return &v, err
}

// VersionBefore returns the version that was in force before that of now, if any.
func VersionBefore(ctx context.Context, st *store.Store, name string, now *store.PolicyVersion) (int, error) {
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

// Row is a policy in a list.
type Row struct {
	store.PolicyVersion
	// Sessions have it, and Due of them are due; nil if they are not counted.
	Sessions *int64 `json:"sessions,omitempty"`
	Due      *int64 `json:"due,omitempty"`
}

// List returns the policies in force that sessions of a tenant, or of any for an empty one, may have,
// that of the configuration, too. Their sessions are counted if that is asked for, which reads all of them.
func List(ctx context.Context, st *store.Store, tenant string, counted bool) ([]Row, error) {
	list, err := st.Policies(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var counts []store.PolicyCount
	if counted {
		if counts, err = st.Operator.PolicyCounts(ctx, tenant); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(list, func(v store.PolicyVersion) bool { return v.Name == policy.DefaultName }) {
		list = append(list, store.PolicyVersion{Name: policy.DefaultName, Match: map[string]string{}, InForce: true})
	}
	rows := make([]Row, len(list))
	for i, v := range list {
		rows[i].PolicyVersion = v
		if counted {
			rows[i].Sessions, rows[i].Due = new(int64), new(int64)
		}
		for _, n := range counts {
			if n.Name == v.Name {
				*rows[i].Sessions, *rows[i].Due = n.Sessions, n.Due
			}
		}
	}
	return rows, nil
}

// History has the versions and changes of a policy, the newest first.
type History struct {
	Versions []store.PolicyVersion `json:"versions"`
	Changes  []store.PolicySwitch  `json:"changes"`
}

// HistoryOf returns the history of a policy. ErrNotFound: it has never been applied.
func HistoryOf(ctx context.Context, st *store.Store, name string) (h History, err error) {
	if h.Changes, err = st.Operator.PolicySwitches(ctx, name); err != nil {
		return h, err
	}
	h.Versions, err = st.Operator.PolicyHistory(ctx, name)
	if err == nil && len(h.Versions) == 0 {
		err = fmt.Errorf("policy %s has never been applied: %w", term.Clean(name), store.ErrNotFound)
	}
	return h, err
}

// thresholds returns those of a policy by the table of models, as a scheduler with this
// configuration sets them, and the hash that they have.
func thresholds(cfg config.Config, spec json.RawMessage) ([]store.Threshold, string, error) {
	p, err := policy.ReadSpec(spec)
	if err != nil {
		return nil, "", err
	}
	p.ModelTable = cfg.Models.Version()
	return scheduler.Thresholds(p, ModelPrefixes(cfg), cfg.Models.Window, tokens.BindsReasoning), p.FleetHash(), nil
}

// ModelPrefixes returns the beginnings of names that have thresholds of their own.
func ModelPrefixes(cfg config.Config) []string {
	return slices.Concat(cfg.Models.Prefixes(), tokens.ReasoningModels())
}

// Step is a change of one policy, as it is shown before it is made.
type Step struct {
	Change store.PolicyChange
	From   *store.PolicyVersion // in force, nil for none
	To     *store.PolicyVersion // nil: disabled
	Base   json.RawMessage      // the settings of what a new one extends, nil if that is not known
}

// NewStep returns the step from the version in force, if any, to another one, which is new where it
// has no number.
func NewStep(cfg config.Config, name string, from, to *store.PolicyVersion) (Step, error) {
	s := Step{Change: store.PolicyChange{Name: name}, From: from, To: to}
	if from != nil {
		s.Change.Expect = from.Version
	}
	if to == nil {
		return s, nil
	}
	if s.Change.Version = to.Version; to.Version == 0 {
		s.Change.Spec, s.Change.Hash, s.Change.Match, s.Change.Note = to.Spec, to.Hash, to.Match, to.Note
		s.Change.Extends, s.Change.BaseHash, s.Change.Given = to.Extends, to.BaseHash, to.Given
	}
	var err error
	s.Change.Thresholds, s.Change.FleetHash, err = thresholds(cfg, to.Spec)
	return s, err
}

// NewVersion returns the policy of a file as a version without a number.
func NewVersion(f File) (*store.PolicyVersion, error) {
	spec, err := policy.Spec(f.Policy)
	if err != nil {
		return nil, err
	}
	return &store.PolicyVersion{
		Name: f.Name, Spec: spec, Hash: policy.SpecHash(spec), Match: f.Match, Note: f.Note,
		Extends: f.base.name, BaseHash: f.base.hash, Given: f.Given,
	}, nil
}

// Applying returns the steps that put files in force, and the versions that are in force already.
func Applying(ctx context.Context, st *store.Store, cfg config.Config, files []File) (steps []Step, same []store.PolicyVersion, err error) {
	for _, f := range files {
		from, err := InForce(ctx, st, f.Name)
		if err != nil {
			return nil, nil, err
		}
		to, err := NewVersion(f)
		if err != nil {
			return nil, nil, err
		}
		if from != nil {
			changes, err := policy.Diff(from.Spec, to.Spec)
			if err != nil {
				return nil, nil, err
			}
			if len(changes) == 0 && policy.Match(from.Match).String() == f.Match.String() &&
				from.Extends == to.Extends && slices.Equal(from.Given, to.Given) {
				same = append(same, *from)
				continue
			}
		}
		s, err := NewStep(cfg, f.Name, from, to)
		if err != nil {
			return nil, nil, err
		}
		s.Base = f.base.spec
		steps = append(steps, s)
	}
	return steps, same, nil
}

// RollingBack returns the step to an earlier version, with 0 to the one that was in force before, or none
// where that is in force.
func RollingBack(ctx context.Context, st *store.Store, cfg config.Config, name string, version int) (
	steps []Step, to store.PolicyVersion, err error,
) {
	from, err := InForce(ctx, st, name)
	if err == nil && version == 0 {
		version, err = VersionBefore(ctx, st, name, from)
	}
	if err == nil {
		to, err = st.Policy(ctx, name, version)
	}
	if err != nil || to.InForce {
		return nil, to, err
	}
	s, err := NewStep(cfg, name, from, &to)
	return []Step{s}, to, err
}

// Disabling returns the step that takes a policy out of force.
func Disabling(ctx context.Context, st *store.Store, cfg config.Config, name string) ([]Step, error) {
	from, err := st.Policy(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	s, err := NewStep(cfg, name, &from, nil)
	return []Step{s}, err
}

// Described is a step as programs read it.
type Described struct {
	Name    string            `json:"name"`
	From    int               `json:"from_version"` // 0: none was in force
	To      int               `json:"version"`      // 0: the policy is disabled, or was not applied
	Match   map[string]string `json:"match"`
	Extends string            `json:"extends,omitempty"`
	Changes []policy.Change   `json:"changes"`
	// Others are the other policies that sessions have now which get this one.
	Others []Other `json:"others,omitempty"`
	// Lost are settings of Changes and Others that people miss when they are gone.
	Lost []policy.Change `json:"lost,omitempty"`
}

// Other compares a policy that sessions lose with that which they get.
type Other struct {
	Policy   string          `json:"policy"`
	Sessions int64           `json:"sessions"`
	Changes  []policy.Change `json:"changes"`
}

// Changes are steps with their effects on sessions.
type Changes struct {
	Policies []Described          `json:"policies"`
	Effects  []store.PolicyEffect `json:"effects"`
	Applied  bool                 `json:"applied"`
}

// Preview describes steps, and their effects on sessions.
func Preview(ctx context.Context, st *store.Store, steps []Step) (Changes, error) {
	out := Changes{Policies: make([]Described, len(steps)), Effects: []store.PolicyEffect{}}
	for i, s := range steps {
		var err error
		if out.Policies[i], err = s.describe(); err != nil {
			return out, err
		}
	}
	if len(steps) == 0 {
		return out, nil
	}
	found, err := st.Operator.PreviewPolicies(ctx, changesOf(steps))
	if err != nil {
		return out, err
	}
	out.Effects = append(out.Effects, found...)
	for i, s := range steps {
		if err := s.compare(ctx, st, out.Effects, &out.Policies[i]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// Apply makes the steps of a preview, all or none.
func (c *Changes) Apply(ctx context.Context, st *store.Store, steps []Step, by string) error {
	versions, err := st.Operator.ChangePolicies(ctx, changesOf(steps), by)
	if err != nil {
		return err
	}
	for i := range c.Policies {
		c.Policies[i].To = versions[i]
	}
	c.Applied = true
	return nil
}

func changesOf(steps []Step) []store.PolicyChange {
	changes := make([]store.PolicyChange, len(steps))
	for i, s := range steps {
		changes[i] = s.Change
	}
	return changes
}

// compare adds to a step the settings that its sessions have now from other policies.
func (s Step) compare(ctx context.Context, st *store.Store, effects []store.PolicyEffect, d *Described) error {
	if s.To == nil {
		return nil
	}
	if s.From != nil {
		d.Lost = lost(d.Changes)
	}
	for _, x := range effects {
		if x.To != s.Change.Name || x.From == s.Change.Name {
			continue
		}
		was, err := Ref{Name: x.From}.Load(ctx, st)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		changes, err := policy.Diff(was.Spec, s.To.Spec)
		if err != nil {
			return err
		}
		d.Others = append(d.Others, Other{x.From, x.Sessions, changes})
		for _, c := range lost(changes) {
			if !slices.Contains(d.Lost, c) {
				d.Lost = append(d.Lost, c)
			}
		}
	}
	return nil
}

// describe describes the step, without the new version. A new policy is compared with its base.
func (s Step) describe() (out Described, err error) {
	out = Described{Name: s.Change.Name, From: s.Change.Expect, Match: map[string]string{}, Changes: []policy.Change{}}
	if s.To == nil {
		return out, nil
	}
	if s.To.Match != nil {
		out.Match = s.To.Match
	}
	out.Extends = s.To.Extends
	before := s.Base
	if s.From != nil {
		before = s.From.Spec
	}
	if before == nil {
		if before, err = policy.Spec(policy.Default()); err != nil {
			return out, err
		}
	}
	out.Changes, err = policy.Diff(before, s.To.Spec)
	return out, err
}

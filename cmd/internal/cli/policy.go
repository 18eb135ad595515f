package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/scheduler"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// policyCmd holds the commands for named policies.
type policyCmd struct {
	Apply    policyApplyCmd    `cmd:"" help:"Put policies of files in force, after a look at what that changes."`
	List     policyListCmd     `cmd:"" help:"List the policies in force, with their sessions, and how far the sessions follow."`
	Show     policyShowCmd     `cmd:"" help:"Show a version of a policy."`
	Diff     policyDiffCmd     `cmd:"" help:"Show which settings differ between two versions."`
	History  policyHistoryCmd  `cmd:"" help:"Show which versions of a policy were in force, since when, and by whom."`
	Rollback policyRollbackCmd `cmd:"" help:"Put an earlier version of a policy in force again."`
	Disable  policyDisableCmd  `cmd:"" help:"Take a policy out of force: its sessions get that which matches next."`
	Explain  policyExplainCmd  `cmd:"" help:"Explain which policy a session has, and when it is compacted next, or why not."`
	Test     policyTestCmd     `cmd:"" help:"Plan runs without making them: what would leave the view, how far, at what cost."`
	Words    policyWordsCmd    `cmd:"" name:"vocabulary" help:"List the words that the conditions of triggers may use."`
	Assign   policyAssignCmd   `cmd:"" help:"Give one session a policy, whatever matches it."`
}

// policyRef is NAME or NAME@VERSION; the version is 0 for that in force.
type policyRef struct {
	Name    string
	Version int
}

// UnmarshalText parses NAME[@VERSION].
func (r *policyRef) UnmarshalText(text []byte) error {
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

// load returns the version that the reference names.
func (r policyRef) load(ctx context.Context, st *store.Store) (store.PolicyVersion, error) {
	return reports.LoadPolicy(ctx, st, r.Name, r.Version)
}

// title returns "support@3", or "default (configuration)" for a policy that was not applied.
func title(v store.PolicyVersion) string {
	if v.Version == 0 {
		return v.Name + " (configuration)"
	}
	return store.PolicyName(v.Name, v.Version)
}

// thresholds returns those of a policy by the table of models, as a scheduler with this
// configuration sets them, and the hash that they have.
func thresholds(cfg config.Config, spec json.RawMessage) ([]store.Threshold, string, error) {
	p, err := policy.ReadSpec(spec)
	if err != nil {
		return nil, "", err
	}
	p.ModelTable = cfg.Models.Version()
	return scheduler.Thresholds(p, modelPrefixes(cfg), cfg.Models.Window, tokens.BindsReasoning), p.FleetHash(), nil
}

// modelPrefixes returns the beginnings of names that have thresholds of their own.
func modelPrefixes(cfg config.Config) []string {
	return slices.Concat(cfg.Models.Prefixes(), tokens.ReasoningModels())
}

// policyStep is a change of one policy, as it is shown before it is made.
type policyStep struct {
	change store.PolicyChange
	from   *store.PolicyVersion // in force, nil for none
	to     *store.PolicyVersion // nil: disabled
	base   json.RawMessage      // the settings of what a new one extends, nil if that is not known
}

// newPolicyStep returns the step from the version in force, if any, to another one, which
// is new where it has no number.
func newPolicyStep(cfg config.Config, name string, from, to *store.PolicyVersion) (policyStep, error) {
	s := policyStep{change: store.PolicyChange{Name: name}, from: from, to: to}
	if from != nil {
		s.change.Expect = from.Version
	}
	if to == nil {
		return s, nil
	}
	if s.change.Version = to.Version; to.Version == 0 {
		s.change.Spec, s.change.Hash, s.change.Match, s.change.Note = to.Spec, to.Hash, to.Match, to.Note
		s.change.Extends, s.change.BaseHash, s.change.Given = to.Extends, to.BaseHash, to.Given
	}
	var err error
	s.change.Thresholds, s.change.FleetHash, err = thresholds(cfg, to.Spec)
	return s, err
}

// policyStepJSON is a step in the output of --json.
type policyStepJSON struct {
	Name    string            `json:"name"`
	From    int               `json:"from_version"` // 0: none was in force
	To      int               `json:"version"`      // 0: the policy is disabled, or was not applied
	Match   map[string]string `json:"match"`
	Extends string            `json:"extends,omitempty"`
	Changes []policy.Change   `json:"changes"`
	// Others are the other policies that sessions have now which get this one.
	Others []policyOtherJSON `json:"others,omitempty"`
	// Lost are settings of Changes and Others that people miss when they are gone.
	Lost []policy.Change `json:"lost,omitempty"`
}

// policyOtherJSON compares a policy that sessions lose with that which they get.
type policyOtherJSON struct {
	Policy   string          `json:"policy"`
	Sessions int64           `json:"sessions"`
	Changes  []policy.Change `json:"changes"`
}

// compare adds to a step the settings that its sessions have now from other policies.
func (s policyStep) compare(ctx context.Context, st *store.Store, effects []store.PolicyEffect, j *policyStepJSON) error {
	if s.to == nil {
		return nil
	}
	if s.from != nil {
		j.Lost = lost(j.Changes)
	}
	for _, x := range effects {
		if x.To != s.change.Name || x.From == s.change.Name {
			continue
		}
		was, err := policyRef{Name: x.From}.load(ctx, st)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		changes, err := policy.Diff(was.Spec, s.to.Spec)
		if err != nil {
			return err
		}
		j.Others = append(j.Others, policyOtherJSON{x.From, x.Sessions, changes})
		for _, c := range lost(changes) {
			if !slices.Contains(j.Lost, c) {
				j.Lost = append(j.Lost, c)
			}
		}
	}
	return nil
}

// json describes the step, without the new version. A new policy is compared with its base.
func (s policyStep) json() (out policyStepJSON, err error) {
	out = policyStepJSON{Name: s.change.Name, From: s.change.Expect, Match: map[string]string{}, Changes: []policy.Change{}}
	if s.to == nil {
		return out, nil
	}
	if s.to.Match != nil {
		out.Match = s.to.Match
	}
	out.Extends = s.to.Extends
	before := s.base
	if s.from != nil {
		before = s.from.Spec
	}
	if before == nil {
		if before, err = policy.Spec(policy.Default()); err != nil {
			return out, err
		}
	}
	out.Changes, err = policy.Diff(before, s.to.Spec)
	return out, err
}

// print writes the step for people.
func (s policyStep) print(e *Env, j policyStepJSON) {
	switch {
	case s.to == nil:
		e.say("%s: is disabled", e.Out.Bold(title(*s.from)))
		return
	case s.from == nil:
		of := "the default settings"
		if s.base != nil && s.to.Extends != baseNone {
			of = s.to.Extends + ", which it extends,"
		}
		e.say("%s: is new, and differs from %s in", e.Out.Bold(s.change.Name), of)
	case s.to.Version > 0:
		e.say("%s: goes back to version %d, which differs in", e.Out.Bold(title(*s.from)), s.to.Version)
	default:
		e.say("%s: gets a new version, which differs in", e.Out.Bold(title(*s.from)))
	}
	was := policy.Match{}
	if s.from != nil {
		was = s.from.Match
	}
	if is := policy.Match(s.to.Match); was.String() != is.String() {
		j.Changes = append([]policy.Change{{Key: "match", From: was.String(), To: is.String()}}, j.Changes...)
	}
	writePolicyChanges(e, j.Changes)
	if s.from != nil && s.to.Version == 0 && s.to.Extends != baseNone {
		e.say("  all that the file leaves out is that of %s, as it is now", s.to.Extends)
	}
	for _, o := range j.Others {
		if s.from == nil && o.Policy == s.to.Extends {
			continue // as above
		}
		e.say("  %s", term.Plural(o.Sessions, "session that has "+o.Policy+" now gets other settings in",
			"sessions that have "+o.Policy+" now get other settings in"))
		writePolicyChanges(e, o.Changes)
	}
	for _, c := range j.Lost {
		e.say("%s its sessions lose %s: %s → %s", e.Out.Bold("warning:"), c.Key, setting(c.Key, c.From), setting(c.Key, c.To))
	}
}

// writePolicyChanges writes one line for each setting that differs.
func writePolicyChanges(e *Env, changes []policy.Change) {
	var pairs []pair
	for _, c := range changes {
		if from, to := setting(c.Key, c.From), setting(c.Key, c.To); from != to {
			pairs = append(pairs, pair{"  " + c.Key, from + " → " + to})
		}
	}
	if len(pairs) == 0 {
		e.say("  nothing")
	}
	e.pairs(pairs...)
}

// setting returns a setting as a YAML file would have it, "none" for one that is not set, or
// is zero, and the setting that counts instead.
func setting(key, raw string) string {
	if slices.Contains([]string{"", "0", `"0s"`}, raw) {
		switch key {
		case "start_tokens":
			return "none (start counts)"
		case "target_tokens":
			return "none (target counts)"
		case "window_tokens":
			return "none (that of the model counts)"
		}
		return "none"
	}
	var text string
	if json.Unmarshal([]byte(raw), &text) != nil || text == "" {
		return term.Clean(raw)
	}
	if d, err := time.ParseDuration(text); err == nil {
		return policy.Days(d)
	}
	return term.Clean(text)
}

// run shows the changes of steps, asks, and makes them.
func (c confirmFlags) run(ctx context.Context, e *Env, st *store.Store, steps []policyStep) error {
	changes := make([]store.PolicyChange, len(steps))
	shown := make([]policyStepJSON, len(steps))
	for i, s := range steps {
		var err error
		if shown[i], err = s.json(); err != nil {
			return err
		}
		changes[i] = s.change
	}
	effects := []store.PolicyEffect{}
	if len(steps) > 0 {
		found, err := st.Operator.PreviewPolicies(ctx, changes)
		if err != nil {
			return err
		}
		effects = append(effects, found...)
		for i, s := range steps {
			if err := s.compare(ctx, st, effects, &shown[i]); err != nil {
				return err
			}
		}
	}
	if !e.JSON {
		for i, s := range steps {
			s.print(e, shown[i])
			e.say("")
		}
		writeEffects(e, effects)
	}
	applied, err := c.confirmed(e, len(steps), "Put this in force?")
	if err != nil {
		return err
	}
	if applied {
		versions, err := st.Operator.ChangePolicies(ctx, changes, e.by())
		if err != nil {
			return err
		}
		for i := range shown {
			shown[i].To = versions[i]
		}
	}
	return e.show(map[string]any{"policies": shown, "effects": effects, "applied": applied}, func() {
		if !applied {
			return
		}
		for _, s := range shown {
			if s.To == 0 {
				e.say("%s is disabled", s.Name)
				continue
			}
			e.say("%s is in force", store.PolicyName(s.Name, s.To))
		}
		e.say("a scheduler takes it to the sessions; `compactor policy list` shows how far")
	})
}

// writeEffects writes how sessions change.
func writeEffects(e *Env, effects []store.PolicyEffect) {
	if len(effects) == 0 {
		e.say("no session is concerned")
		return
	}
	sum := store.PolicyEffect{From: "all"}
	for _, x := range effects {
		sum.Sessions, sum.DueNow, sum.NotDue = sum.Sessions+x.Sessions, sum.DueNow+x.DueNow, sum.NotDue+x.NotDue
	}
	if len(effects) > 1 {
		effects = append(slices.Clone(effects), sum)
	}
	columns[store.PolicyEffect]{
		{"from", term.Text("OLD POLICY"), nil},
		{"to", term.Text("NEW POLICY"), func(x store.PolicyEffect) any { return cmp.Or(when(x.From == x.To, "new settings"), x.To) }},
		{"sessions", term.Num("SESSIONS"), nil},
		{"become_due", term.Num("BECOME DUE"), nil},
		{"no_longer_due", term.Num("NO LONGER DUE"), nil},
	}.write(e, effects)
}

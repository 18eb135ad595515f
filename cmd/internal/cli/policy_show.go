package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

type policyListCmd struct {
	AllTenants allTenants `help:"Policies and sessions of every tenant."`
}

// policiesSoon is the time within which a scheduler begins to take a change to the sessions.
const policiesSoon = 10 * time.Second

func (c *policyListCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	tenant := c.AllTenants.tenant(cfg)
	rows, err := policies.List(ctx, st, tenant, true)
	if err != nil {
		return err
	}
	progress, err := st.PolicyProgress(ctx)
	if err != nil {
		return err
	}
	others := 0
	if tenant != "" {
		all, err := st.Policies(ctx, "")
		if err != nil {
			return err
		}
		for _, v := range all {
			if !slices.ContainsFunc(rows, func(r policies.Row) bool { return r.Name == v.Name }) {
				others++
			}
		}
	}
	return e.show(map[string]any{"policies": rows, "progress": progress}, func() {
		policyColumns(e).write(e, rows)
		e.say("")
		if others > 0 {
			e.say("other tenants have %s: see --all-tenants", term.Plural(others, "policy", "policies"))
		}
		switch late := e.since(progress.ChangedAt); {
		case !progress.Pending:
			e.say("all sessions follow the policies")
		case progress.Changed == 0 && progress.Percent == 0:
			e.say("sessions do not follow the last change yet, of %s ago%s", term.Duration(late),
				when(late >= policiesSoon, ": is a scheduler running?"))
		default:
			e.say("sessions follow the last change, of %s ago: %.0f %% looked at, %s changed", term.Duration(late),
				progress.Percent, term.Count(progress.Changed))
		}
	})
}

func policyColumns(e *Env) columns[policies.Row] {
	return columns[policies.Row]{
		{"name", term.Text("POLICY"), nil},
		{"version", term.ID("VERSION"), func(r policies.Row) any { return cmp.Or(when(r.Version == 0, "–"), strconv.Itoa(r.Version)) }},
		{"match", term.Text("MATCH"), func(r policies.Row) any {
			switch {
			case r.Version == 0:
				return "all others (configuration)"
			case r.Name == policy.DefaultName:
				return "all others"
			}
			return cmp.Or(policy.Match(r.Match).String(), "those assigned")
		}},
		{"sessions", term.Num("SESSIONS"), nil},
		{"due", term.Num("DUE"), nil},
		{"created_at", term.Num("APPLIED").IfRoom(), func(r policies.Row) any { return when(r.Version > 0, any(e.since(r.CreatedAt))) }},
	}
}

type policyShowCmd struct {
	Policy policies.Ref `arg:"" placeholder:"NAME[@VERSION]" help:"The policy; without a version, that in force."`
	All    bool         `help:"Show all settings, not only those that differ from the defaults."`
	Model  string       `placeholder:"NAME" help:"Also explain the limits for this model."`
}

func (c *policyShowCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	v, err := c.Policy.Load(ctx, st)
	if err != nil {
		return err
	}
	p, err := policy.ReadSpec(v.Spec)
	if err != nil && c.Model != "" && !e.JSON {
		return err
	}
	settings, err := c.settings(v)
	if err != nil {
		return err
	}
	return e.show(v, func() {
		e.pairs(
			pair{"policy", policies.Title(v)},
			pair{"in force", yesOrNo(v.InForce)},
			pair{"match", policy.Match(v.Match).String()},
			pair{"note", v.Note},
			pair{"applied", when(v.Version > 0, timeText(v.CreatedAt)+" by "+cmp.Or(v.CreatedBy, "unknown"))},
			pair{"extends", c.extends(ctx, st, cfg, v)},
			pair{"hash", v.Hash},
		)
		e.say("")
		if !c.All {
			e.say("settings that differ from the defaults:%s", when(len(settings) == 0, "\n  nothing"))
		}
		e.pairs(settings...)
		if c.Model == "" {
			return
		}
		e.say("")
		for _, line := range p.Explain(c.Model, cfg.Models.Window, e.Registry.Fill) {
			if !strings.HasPrefix(line, "events:") { // those are up to the configuration
				e.say("%s", term.Clean(line))
			}
		}
	})
}

// extends names the policy that a version extends, and reports whether that has changed since.
func (c *policyShowCmd) extends(ctx context.Context, st *store.Store, cfg config.Config, v store.PolicyVersion) string {
	if v.Extends == "" || v.Extends == policies.BaseNone {
		return v.Extends
	}
	switch inForce, same := policies.Follows(ctx, st, cfg, v); {
	case !inForce:
		return v.Extends + ", which is not in force any more"
	case !same:
		return v.Extends + ", which has changed since: apply the file again to follow"
	}
	return v.Extends
}

// settings returns the settings of a version, as default → set unless all are wanted.
func (c *policyShowCmd) settings(v store.PolicyVersion) (pairs []pair, err error) {
	var from json.RawMessage
	if !c.All {
		if from, err = policy.Spec(policy.Default()); err != nil {
			return nil, err
		}
	}
	changes, err := policy.Diff(from, v.Spec)
	for _, s := range changes {
		was, text := policies.Setting(s.Key, s.From), policies.Setting(s.Key, s.To)
		switch {
		case c.All:
		case was == text:
			continue
		default:
			s.Key, text = "  "+s.Key, was+" → "+text
		}
		pairs = append(pairs, pair{s.Key, text + when(policies.Inherited(v, strings.TrimSpace(s.Key)), " (from "+v.Extends+")")})
	}
	return pairs, err
}

type policyWordsCmd struct{}

func (*policyWordsCmd) Run(e *Env) error {
	type wordJSON struct {
		Name string `json:"name"`
		Type string `json:"type"`
		Doc  string `json:"doc"`
	}
	words := []wordJSON{}
	for _, w := range policy.Vocabulary() {
		words = append(words, wordJSON{w.Name, cmp.Or(when(w.Bool(), "yes or no"), "number"), w.Doc})
	}
	return e.show(map[string]any{"words": words, "examples": policy.Examples()}, func() {
		columns[wordJSON]{
			{"name", term.Text("WORD"), nil},
			{"type", term.Text("IS A"), nil},
			{"doc", term.Text("MEANING"), nil},
		}.write(e, words)
		e.say("")
		t := e.Out.Table(term.Text("TO RUN"), term.Text("WRITE"))
		for _, x := range policy.Examples() {
			t.Row(x.Name, string(x.When))
		}
		t.Row("also at a time of day", "no trigger: schedules, or policy.cron")
		t.Row("again, after a compaction", "no trigger: more steps of the pipeline")
		t.Row("by hand, or by the application", "no trigger: compact, request_compaction")
		e.wrote(t.Write())
	})
}

type policyDiffCmd struct {
	From policies.Ref `arg:"" placeholder:"NAME[@VERSION]" help:"The policy; without a version, that in force."`
	To   string       `arg:"" optional:"" placeholder:"NAME[@VERSION]|FILE" help:"The other one, or a policy file. Default: what was in force before FROM."`
}

func (c *policyDiffCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	from, err := c.From.Load(ctx, st)
	if err != nil {
		return err
	}
	to, err := c.other(ctx, e, st, cfg, from)
	if err != nil {
		return err
	}
	if c.To == "" {
		from, to = to, from
	}
	changes, err := policy.Diff(from.Spec, to.Spec)
	if err != nil {
		return err
	}
	if a, b := policy.Match(from.Match).String(), policy.Match(to.Match).String(); a != b {
		changes = append([]policy.Change{{Key: "match", From: a, To: b}}, changes...)
	}
	name := cmp.Or(c.To, policies.Title(to))
	return e.show(map[string]any{"from": policies.Title(from), "to": name, "changes": changes}, func() {
		e.say("from %s to %s:", policies.Title(from), term.Clean(name))
		writePolicyChanges(e, changes)
	})
}

// other returns the version of --to, or the one before.
func (c *policyDiffCmd) other(ctx context.Context, e *Env, st *store.Store, cfg config.Config,
	from store.PolicyVersion,
) (store.PolicyVersion, error) {
	if c.To == "" {
		version, err := policies.VersionBefore(ctx, st, from.Name, &from)
		if err != nil {
			return store.PolicyVersion{}, err
		}
		return st.Policy(ctx, from.Name, version)
	}
	if _, err := os.Stat(c.To); err == nil {
		files, err := e.policyFiles(ctx, st, cfg, []string{c.To})
		if err != nil {
			return store.PolicyVersion{}, err
		}
		v, err := policies.NewVersion(files[0])
		return *v, err
	}
	var ref policies.Ref
	if err := ref.UnmarshalText([]byte(c.To)); err != nil {
		return store.PolicyVersion{}, wrong("%w", err)
	}
	return ref.Load(ctx, st)
}

type policyHistoryCmd struct {
	Name string `arg:"" help:"The policy."`
}

func (c *policyHistoryCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	h, err := policies.HistoryOf(ctx, st, c.Name)
	if err != nil {
		return err
	}
	byVersion := map[int]store.PolicyVersion{}
	for _, v := range h.Versions {
		byVersion[v.Version] = v
	}
	type row = store.PolicySwitch
	return e.show(h, func() {
		columns[row]{
			{"changed_at", term.Text("WHEN"), nil},
			{"version", term.Text("VERSION"), func(s row) any {
				return cmp.Or(when(s.Version > 0,
					store.PolicyName(s.Name, s.Version)), "disabled")
			}},
			{"changed_by", term.Text("BY"), nil},
			{"", term.Text("MATCH"), func(s row) any { return policy.Match(byVersion[s.Version].Match).String() }},
			{"", term.Text("NOTE"), func(s row) any { return byVersion[s.Version].Note }},
		}.write(e, h.Changes)
	})
}

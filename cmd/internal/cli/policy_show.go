package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
)

type policyListCmd struct {
	AllTenants bool `help:"Policies and sessions of every tenant."`
}

func (*policyListCmd) Help() string {
	return `After a change of policies a scheduler takes it to the existing sessions; the last line shows how far.

Examples:

    compactor policy list
    compactor policy list --all-tenants --json | jq '.progress'`
}

// policyRowJSON is a policy in the list.
type policyRowJSON struct {
	store.PolicyVersion
	Sessions int64 `json:"sessions"`
	Due      int64 `json:"due"`
}

// policiesSoon is within what a scheduler begins to take a change to the sessions.
const policiesSoon = 10 * time.Second

func (c *policyListCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	tenant := cfg.Tenant
	if c.AllTenants {
		tenant = ""
	}
	list, err := st.Policies(ctx, tenant)
	if err != nil {
		return err
	}
	counts, err := st.Operator.PolicyCounts(ctx, tenant)
	if err != nil {
		return err
	}
	progress, err := st.PolicyProgress(ctx)
	if err != nil {
		return err
	}
	rows := []policyRowJSON{}
	applied := false
	for _, v := range list {
		applied = applied || v.Name == policy.DefaultName
		rows = append(rows, policyRowJSON{PolicyVersion: v})
	}
	if !applied {
		rows = append(rows, policyRowJSON{PolicyVersion: store.PolicyVersion{Name: policy.DefaultName, Match: map[string]string{}, InForce: true}})
	}
	for i := range rows {
		for _, n := range counts {
			if n.Name == rows[i].Name {
				rows[i].Sessions, rows[i].Due = n.Sessions, n.Due
			}
		}
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"policies": rows, "progress": progress})
	}
	t := e.Out.Table(term.Text("POLICY"), term.ID("VERSION"), term.Text("MATCH"), term.Num("SESSIONS"), term.Num("DUE"), term.Num("APPLIED").IfRoom())
	for _, r := range rows {
		version, match, age := any(r.Version), policy.Match(r.Match).String(), any(nil)
		switch {
		case r.Version == 0:
			version, match = "–", "all others (configuration)"
		case r.Name == policy.DefaultName:
			match = "all others"
		case match == "":
			match = "those assigned"
		}
		if r.Version > 0 {
			age = e.since(r.CreatedAt)
		}
		t.Row(r.Name, version, match, r.Sessions, r.Due, age)
	}
	if err := t.Write(); err != nil {
		return err
	}
	e.say("")
	all := list
	if tenant != "" {
		if all, err = st.Policies(ctx, ""); err != nil {
			return err
		}
	}
	if others := len(all) - len(list); others > 0 {
		e.say("other tenants have %s: see --all-tenants", term.Plural(others, "policy", "policies"))
	}
	switch late := e.since(progress.ChangedAt); {
	case !progress.Pending:
		e.say("all sessions follow the policies")
	case progress.Changed == 0 && progress.Percent == 0 && late < policiesSoon:
		e.say("sessions do not follow the last change yet, of %s ago", term.Duration(late))
	case progress.Changed == 0 && progress.Percent == 0:
		e.say("sessions do not follow the last change yet, of %s ago: is a scheduler running?", term.Duration(late))
	default:
		e.say("sessions follow the last change, of %s ago: %.0f %% looked at, %s changed", term.Duration(late),
			progress.Percent, term.Count(progress.Changed))
	}
	return nil
}

type policyShowCmd struct {
	Policy policyRef `arg:"" placeholder:"NAME[@VERSION]" help:"The policy; without a version, that in force."`
	All    bool      `help:"Show all settings, not only those that differ from the defaults."`
	Model  string    `placeholder:"NAME" help:"Also explain the limits for this model."`
}

func (*policyShowCmd) Help() string {
	return `Examples:

    compactor policy show support
    compactor policy show support@2 --all
    compactor policy show default --model gpt-5`
}

func (c *policyShowCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	v, err := c.Policy.load(ctx, st)
	if err != nil {
		return err
	}
	if e.JSON {
		return term.JSON(e.Out.W, v)
	}
	inForce := "no"
	if v.InForce {
		inForce = "yes"
	}
	created := ""
	if v.Version > 0 {
		created = fmt.Sprintf("%s by %s", v.CreatedAt.Format("2006-01-02 15:04:05Z"), cmp.Or(term.Clean(v.CreatedBy), "unknown"))
	}
	if err := e.Out.Pairs([2]any{"policy", title(v)}, [2]any{"in force", inForce}, [2]any{"match", policy.Match(v.Match).String()},
		[2]any{"note", v.Note}, [2]any{"applied", created}, [2]any{"extends", c.extends(ctx, st, cfg, v)}, [2]any{"hash", v.Hash}); err != nil {
		return err
	}
	e.say("")
	if err := c.settings(e, v); err != nil {
		return err
	}
	if c.Model == "" {
		return nil
	}
	p, err := policy.ReadSpec(v.Spec)
	if err != nil {
		return err
	}
	e.say("")
	for _, line := range p.Explain(c.Model, cfg.Models.Window, e.Registry.Fill) {
		if strings.HasPrefix(line, "events:") {
			continue // that is up to the configuration
		}
		e.say("%s", term.Clean(line))
	}
	return nil
}

// extends says what a version extends, and whether that has changed since.
func (c *policyShowCmd) extends(ctx context.Context, st *store.Store, cfg config.Config, v store.PolicyVersion) string {
	if v.Extends == "" || v.Extends == baseNone {
		return v.Extends
	}
	b := bases{ctx: ctx, st: st, cfg: cfg}
	switch now, err := b.of(v.Name, v.Extends); {
	case err != nil:
		return v.Extends + ", which is not in force any more"
	case now.hash != v.BaseHash:
		return v.Extends + ", which has changed since: apply the file again to follow"
	}
	return v.Extends
}

// settings writes the settings of a version, as default → set unless all are wanted.
func (c *policyShowCmd) settings(e *Env, v store.PolicyVersion) error {
	var from json.RawMessage
	if !c.All {
		var err error
		if from, err = policy.Spec(policy.Default()); err != nil {
			return err
		}
		e.say("settings that differ from the defaults:")
	}
	changes, err := policy.Diff(from, v.Spec)
	if err != nil {
		return err
	}
	if !c.All && len(changes) == 0 {
		return writePolicyChanges(e, changes)
	}
	var pairs [][2]any
	for _, s := range changes {
		text := setting(s.Key, s.To)
		if was := setting(s.Key, s.From); !c.All && was == text {
			continue
		} else if !c.All {
			text = was + " → " + text
		}
		if inherited(v, s.Key) {
			text += " (from " + v.Extends + ")"
		}
		pairs = append(pairs, [2]any{strings.Repeat("  ", map[bool]int{false: 1}[c.All]) + s.Key, text})
	}
	return e.Out.Pairs(pairs...)
}

type policyWordsCmd struct{}

func (*policyWordsCmd) Help() string {
	return `A condition compares these with numbers and each other (<, <=, ==, !=, >=, >, + - * /), combined by &&, || and not. It must name something that the database compares in each alternative of ||, so that finding the sessions that are due costs no more than they do: a size, a number or a report of the application; what is left is decided by the run. Times take only sessions that are larger than the target. Applications report by report_state: SELECT compactor.report_state(tenant, session, '{"closed": true}').

Examples:

    compactor policy vocabulary
    compactor policy explain chat-42   # the triggers of a session's policy, with these values`
}

func (*policyWordsCmd) Run(e *Env) error {
	type wordJSON struct {
		Name string `json:"name"`
		Type string `json:"type"`
		Doc  string `json:"doc"`
	}
	words := []wordJSON{}
	for _, w := range policy.Vocabulary() {
		words = append(words, wordJSON{w.Name, map[bool]string{true: "yes or no", false: "number"}[w.Bool()], w.Doc})
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"words": words, "examples": policy.Examples()})
	}
	t := e.Out.Table(term.Text("WORD"), term.Text("IS A"), term.Text("MEANING"))
	for _, w := range words {
		t.Row(w.Name, w.Type, w.Doc)
	}
	if err := t.Write(); err != nil {
		return err
	}
	e.say("")
	t = e.Out.Table(term.Text("TO RUN"), term.Text("WRITE"))
	for _, x := range policy.Examples() {
		t.Row(x.Name, string(x.When))
	}
	t.Row("also at a time of day", "no trigger: schedules, or policy.cron")
	t.Row("again, after a compaction", "no trigger: more steps of the pipeline")
	t.Row("by hand, or by the application", "no trigger: compact, request_compaction")
	return t.Write()
}

type policyDiffCmd struct {
	From policyRef `arg:"" placeholder:"NAME[@VERSION]" help:"The policy; without a version, that in force."`
	To   string    `arg:"" optional:"" placeholder:"NAME[@VERSION]|FILE" help:"The other one, or a policy file. Default: what was in force before FROM."`
}

func (*policyDiffCmd) Help() string {
	return `Examples:

    compactor policy diff support
    compactor policy diff support@1 support@3
    compactor policy diff default support.yaml`
}

func (c *policyDiffCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	from, err := c.From.load(ctx, st)
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
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"from": title(from), "to": cmp.Or(c.To, title(to)), "changes": changes})
	}
	e.say("from %s to %s:", title(from), term.Clean(cmp.Or(c.To, title(to))))
	return writePolicyChanges(e, changes)
}

// other returns what --to names, or the version before.
func (c *policyDiffCmd) other(ctx context.Context, e *Env, st *store.Store, cfg config.Config, from store.PolicyVersion) (store.PolicyVersion, error) {
	if c.To == "" {
		version, err := versionBefore(ctx, st, from.Name, &from)
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
		v, err := newVersion(files[0])
		return *v, err
	}
	var ref policyRef
	if err := ref.UnmarshalText([]byte(c.To)); err != nil {
		return store.PolicyVersion{}, wrong("%w", err)
	}
	return ref.load(ctx, st)
}

type policyHistoryCmd struct {
	Name string `arg:"" help:"The policy."`
}

func (*policyHistoryCmd) Help() string {
	return `Examples:

    compactor policy history support`
}

func (c *policyHistoryCmd) Run(ctx context.Context, e *Env, st *store.Store) error {
	switches, err := st.Operator.PolicySwitches(ctx, c.Name)
	if err != nil {
		return err
	}
	versions, err := st.Operator.PolicyHistory(ctx, c.Name)
	if err != nil {
		return err
	}
	if len(versions) == 0 {
		return fmt.Errorf("policy %s has never been applied: %w", term.Clean(c.Name), store.ErrNotFound)
	}
	if e.JSON {
		return term.JSON(e.Out.W, map[string]any{"versions": versions, "changes": switches})
	}
	notes := map[int]store.PolicyVersion{}
	for _, v := range versions {
		notes[v.Version] = v
	}
	t := e.Out.Table(term.Text("WHEN"), term.Text("IN FORCE"), term.Text("BY"), term.Text("MATCH"), term.Text("NOTE"))
	for _, s := range switches {
		what := "disabled"
		if s.Version > 0 {
			what = store.PolicyName(s.Name, s.Version)
		}
		v := notes[s.Version]
		t.Row(s.ChangedAt, what, s.ChangedBy, policy.Match(v.Match).String(), v.Note)
	}
	return t.Write()
}

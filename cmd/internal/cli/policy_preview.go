package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/worker"
)

type policyTestCmd struct {
	Sessions []string `arg:"" optional:"" name:"session" help:"Sessions to plan on."`
	Sample   int      `placeholder:"N" range:"1,100000" help:"Plan on N sessions instead, chosen at random; with --file, among those that match it."`
	File     string   `placeholder:"FILE" help:"Plan under this policy file instead of the policy that a session has."`
}

func (c *policyTestCmd) Validate() error {
	if (len(c.Sessions) > 0) == (c.Sample != 0) {
		return errors.New("want sessions or --sample")
	}
	return nil
}

// previewTotalsJSON sums up sessions.
type previewTotalsJSON struct {
	Sessions     int            `json:"sessions"`
	Outcomes     map[string]int `json:"outcomes"`
	TargetMet    int            `json:"target_met"`
	TokensBefore chat.Tokens    `json:"tokens_before"`
	TokensAfter  chat.Tokens    `json:"tokens_after"`
	reports.ModelCalls
}

func (t *previewTotalsJSON) add(p reports.Preview) {
	t.Sessions++
	t.Outcomes[p.Outcome]++
	if p.TargetMet {
		t.TargetMet++
	}
	t.TokensBefore, t.TokensAfter = t.TokensBefore+p.TokensBefore, t.TokensAfter+p.TokensAfter
	if p.Calls.Name != "" {
		t.Name = p.Calls.Name
	}
	t.Calls, t.Input, t.Output, t.Cost = t.Calls+p.Calls.Calls, t.Input+p.Calls.Input, t.Output+p.Calls.Output, t.Cost+p.Calls.Cost
}

func (c *policyTestCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	var file *config.PolicyFile
	if c.File != "" {
		files, err := e.policyFiles(ctx, st, cfg, []string{c.File})
		if err != nil {
			return err
		}
		file = &files[0].PolicyFile
		file.Policy.ModelTable = cfg.Models.Version()
		if tenant := file.Match["tenant"]; tenant != "" && e.flags["tenant"] == "" {
			cfg.Tenant = tenant
		}
	}
	switch v, err := (policyRef{Name: policy.DefaultName}).load(ctx, st); {
	case errors.Is(err, store.ErrNotFound): // no scheduler has saved its configuration yet
	case err != nil:
		return err
	default:
		if p, err := policy.ReadSpec(v.Spec); err == nil {
			cfg.Policy = p
		}
	}
	names, err := c.sessions(ctx, st, cfg, file)
	if err != nil {
		return err
	}
	totals := previewTotalsJSON{Outcomes: map[string]int{}}
	shown := []reports.Preview{}
	var progress *term.Progress
	if c.Sample > 0 {
		progress = e.Err.Progress("planning, sessions", int64(len(names)))
	}
	for _, name := range names {
		p, err := preview(ctx, e, st, cfg, name, file)
		if err != nil {
			return err
		}
		totals.add(p)
		if e.JSON || c.Sample == 0 || len(shown) < maxShown {
			shown = append(shown, p)
		}
		if progress != nil {
			progress.Add(1)
		}
	}
	if progress != nil {
		progress.Done("")
	}
	return e.show(map[string]any{"sessions": shown, "totals": totals}, func() {
		switch {
		case len(shown) == 0:
			e.note("no sessions")
		case c.Sample > 0:
			totals.print(e, shown)
		default:
			for i, p := range shown {
				if i > 0 {
					e.say("")
				}
				printPreview(e, p)
			}
		}
	})
}

// sessions returns the names of the sessions to plan on.
func (c *policyTestCmd) sessions(ctx context.Context, st *store.Store, cfg config.Config, file *config.PolicyFile) ([]string, error) {
	if c.Sample == 0 {
		return c.Sessions, nil
	}
	labels := map[string]string{}
	most := c.Sample
	if file != nil {
		for key, value := range file.Match {
			if key != "tenant" && key != "model" {
				labels[key] = value
			}
		}
		most *= 20 // of which the model may rule out most
	}
	rows, err := st.Operator.Sample(ctx, cfg.Tenant, labels, most)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range rows {
		if len(names) < c.Sample && (file == nil || file.Match.Fits(policy.Subject{Tenant: cfg.Tenant, Model: r.Model, Labels: r.Labels})) {
			names = append(names, r.Session)
		}
	}
	return names, nil
}

// preview plans on a session.
func preview(ctx context.Context, e *Env, st *store.Store, cfg config.Config, session string, file *config.PolicyFile) (reports.Preview, error) {
	p := reports.Planning{Config: cfg, Registry: e.Registry}
	if file != nil {
		p.Other = &file.Policy
	}
	out, err := p.Preview(ctx, st, key(cfg, session))
	if file != nil {
		out.Policy, out.Version = file.Name, 0
	}
	if err == nil {
		e.noteUnknown(cfg, out.Model)
	}
	return out, err
}

// printPreview writes a session for people.
func printPreview(e *Env, p reports.Preview) {
	e.pairs(append([]pair{
		{"session", p.Session},
		{"model", p.Model},
		{"policy", store.PolicyName(p.Policy, p.Version)},
		{"would end", joined(p.Outcome, outcomeText(store.RunRow{Outcome: p.Outcome}))},
		{"tokens", change(int64(p.TokensBefore), int64(p.TokensAfter))},
		{"target", fmt.Sprintf("%s, %s (start %s)", term.Count(p.Target), met(p), term.Count(p.Start))},
		{"messages", change(p.MessagesBefore, p.MessagesAfter)},
		{"model calls", callsText(p.Calls)},
	}, cachePairs(p.Cache)...)...)
	writeSteps(e, p.Planned)
	if len(p.Gone) == 0 {
		return
	}
	e.say("")
	columns[worker.Gone]{
		{"reason", term.Text("EXCLUDED BY"), nil},
		{"covered", term.Text("HOW"), func(g worker.Gone) any { return cmp.Or(when(g.Covered, "in a summary or replaced"), "dropped") }},
		{"messages", term.Num("MESSAGES"), nil},
		{"tokens", term.Num("TOKENS"), nil},
	}.write(e, p.Gone)
}

// met reports in words whether the target is met.
func met(p reports.Preview) string { return when(!p.TargetMet, "not ") + "met" }

// callsText describes calls, "" for none.
func callsText(c reports.ModelCalls) string {
	if c.Calls == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s: %s tokens in, up to %s out, cost up to %.4f", plural(c.Calls, "call"), term.Clean(c.Name),
		term.Count(c.Input), term.Count(c.Output), c.Cost)
}

// maxShown is the number of sessions of a sample that are shown.
const maxShown = 20

// print writes a sample for people: some of its sessions, and the sum.
func (t previewTotalsJSON) print(e *Env, shown []reports.Preview) {
	columns[reports.Preview]{
		{"session", term.Text("SESSION"), nil},
		{"policy", term.Text("POLICY"), func(p reports.Preview) any { return store.PolicyName(p.Policy, p.Version) }},
		{"outcome", term.Text("WOULD END"), nil},
		{"tokens_after", term.Num("TOKENS"), func(p reports.Preview) any { return brief(int64(p.TokensBefore), int64(p.TokensAfter)) }},
		{"target_met", term.Num("TARGET"), func(p reports.Preview) any { return met(p) }},
	}.write(e, shown)
	if n := t.Sessions - len(shown); n > 0 {
		e.say("and %s more", term.Count(n))
	}
	e.say("")
	e.pairs(
		pair{"sessions", t.Sessions},
		pair{"would end", strings.TrimSpace(listCounts(t.Outcomes))},
		pair{"tokens", fmt.Sprintf("%s, %s less", change(int64(t.TokensBefore), int64(t.TokensAfter)),
			term.Percent(t.TokensBefore-t.TokensAfter, t.TokensBefore))},
		pair{"target met", fmt.Sprintf("%s of %s", term.Count(t.TargetMet), term.Count(t.Sessions))},
		pair{"model calls", callsText(t.ModelCalls)},
	)
}

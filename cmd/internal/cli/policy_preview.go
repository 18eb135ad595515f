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

func (c *policyTestCmd) Run(ctx context.Context, e *Env, st *store.Store, cfg config.Config) error {
	t := reports.Trial{Config: cfg, Registry: e.Registry, Tenant: e.flags["tenant"], Sessions: c.Sessions, Sample: c.Sample}
	if c.File != "" {
		files, err := e.policyFiles(ctx, st, cfg, []string{c.File})
		if err != nil {
			return err
		}
		t.File = &files[0].PolicyFile
	}
	shown := []reports.Preview{}
	var progress *term.Progress
	t.Begin = func(sessions int) {
		if c.Sample > 0 {
			progress = e.Err.Progress("planning, sessions", int64(sessions))
		}
	}
	t.Each = func(p reports.Preview) {
		e.noteUnknown(cfg, p.Model)
		if e.JSON || c.Sample == 0 || len(shown) < maxShown {
			shown = append(shown, p)
		}
		if progress != nil {
			progress.Add(1)
		}
	}
	totals, err := t.Run(ctx, st)
	if err != nil {
		return err
	}
	if progress != nil {
		progress.Done("")
	}
	return e.show(map[string]any{"sessions": shown, "totals": totals}, func() {
		switch {
		case len(shown) == 0:
			e.note("no sessions")
		case c.Sample > 0:
			printTrial(e, totals, shown)
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

// printPreview writes a session for people.
func printPreview(e *Env, p reports.Preview) {
	e.pairs(append([]pair{
		{"session", p.Session},
		{"model", p.Model},
		{"policy", store.PolicyName(p.Policy, p.Version)},
		{"would end", joined(p.Outcome, reports.Meaning(store.RunRow{Outcome: p.Outcome}))},
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

// printTrial writes a sample for people: some of its sessions, and the sum.
func printTrial(e *Env, t reports.TrialTotals, shown []reports.Preview) {
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

package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/sessionstore/compactor/cmd/internal/policies"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/policy"
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

// printStep writes a step for people.
func printStep(e *Env, s policies.Step, j policies.Described) {
	switch {
	case s.To == nil:
		e.say("%s: is disabled", e.Out.Bold(policies.Title(*s.From)))
		return
	case s.From == nil:
		of := "the default settings"
		if s.Base != nil && s.To.Extends != policies.BaseNone {
			of = s.To.Extends + ", which it extends,"
		}
		e.say("%s: is new, and differs from %s in", e.Out.Bold(s.Change.Name), of)
	case s.To.Version > 0:
		e.say("%s: goes back to version %d, which differs in", e.Out.Bold(policies.Title(*s.From)), s.To.Version)
	default:
		e.say("%s: gets a new version, which differs in", e.Out.Bold(policies.Title(*s.From)))
	}
	was := policy.Match{}
	if s.From != nil {
		was = s.From.Match
	}
	if is := policy.Match(s.To.Match); was.String() != is.String() {
		j.Changes = append([]policy.Change{{Key: "match", From: was.String(), To: is.String()}}, j.Changes...)
	}
	writePolicyChanges(e, j.Changes)
	if s.From != nil && s.To.Version == 0 && s.To.Extends != policies.BaseNone {
		e.say("  all that the file leaves out is that of %s, as it is now", s.To.Extends)
	}
	for _, o := range j.Others {
		if s.From == nil && o.Policy == s.To.Extends {
			continue // as above
		}
		e.say("  %s", term.Plural(o.Sessions, "session that has "+o.Policy+" now gets other settings in",
			"sessions that have "+o.Policy+" now get other settings in"))
		writePolicyChanges(e, o.Changes)
	}
	for _, c := range j.Lost {
		e.say("%s its sessions lose %s: %s → %s", e.Out.Bold("warning:"), c.Key, policies.Setting(c.Key, c.From), policies.Setting(c.Key, c.To))
	}
}

// writePolicyChanges writes one line for each setting that differs.
func writePolicyChanges(e *Env, changes []policy.Change) {
	var pairs []pair
	for _, c := range changes {
		if from, to := policies.Setting(c.Key, c.From), policies.Setting(c.Key, c.To); from != to {
			pairs = append(pairs, pair{"  " + c.Key, from + " → " + to})
		}
	}
	if len(pairs) == 0 {
		e.say("  nothing")
	}
	e.pairs(pairs...)
}

// run shows the changes of steps, asks, and makes them.
func (c confirmFlags) run(ctx context.Context, e *Env, st *store.Store, steps []policies.Step) error {
	changes, err := policies.Preview(ctx, st, steps)
	if err != nil {
		return err
	}
	if !e.JSON {
		for i, s := range steps {
			printStep(e, s, changes.Policies[i])
			e.say("")
		}
		writeEffects(e, changes.Effects)
	}
	apply, err := c.confirmed(e, len(steps), "Put this in force?")
	if err == nil && apply {
		err = changes.Apply(ctx, st, steps, e.by())
	}
	if err != nil {
		return err
	}
	return e.show(changes, func() {
		if !changes.Applied {
			return
		}
		for _, s := range changes.Policies {
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

package eval

import (
	"context"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// automatic compacts a session that grows by one message after the other as automatic runs of a
// worker would, at the limits of the policy itself: a run plans over the view, when a trigger holds
// or the view exceeds the start and no guard has it wait, and is discarded if it saves too little.
// Conditions of triggers and guards on the time never hold.
type automatic struct {
	policy   policy.Policy
	build    Build
	options  strategies.Options
	limits   policy.Limits
	triggers []policy.CompiledTrigger
	facts    policy.Facts // with the messages since the last run
	session  *strategies.Conversation
	// due is the size from which a session is looked at again after a run without effect, lowGain
	// the number of runs in a row that saved little.
	due     chat.Tokens
	lowGain int
	usage   Usage
}

// ownLimits compacts the messages of in at the limits of p.
func ownLimits(ctx context.Context, p policy.Policy, b Build, in Input) (Kept, error) {
	o := strategies.Options{Counter: in.Size.Whole(), FreeReasoning: !p.BindsReasoning(in.Model, tokens.BindsReasoning)}
	a := automatic{
		policy: p, build: b, options: o, session: strategies.NewConversation(o),
		limits: p.Limits(in.Model, tokens.Window), triggers: p.Compiled(), facts: p.Facts(in.Model, tokens.Window),
	}
	waiting := 0 // calls without a result
	for i := range in.Messages {
		m := &in.Messages[i]
		a.session.Append(*m)
		switch m.Role {
		case chat.RoleTool:
			waiting--
			a.facts.ToolOutput = max(a.facts.ToolOutput, o.Counter.Message(m))
		case chat.RoleUser:
			waiting = 0
			a.facts.NewTurns++
		case chat.RoleSystem, chat.RoleDeveloper, chat.RoleAssistant, chat.RoleFunction:
		}
		if len(m.ToolCalls) > 0 {
			waiting = len(m.ToolCalls)
			a.facts.ToolRounds++
		}
		a.facts.NewMessages++
		a.facts.NewTokens += o.Counter.Message(m)
		if waiting > 0 {
			continue
		}
		a.facts.TurnCompleted = m.Role != chat.RoleUser && m.Role != chat.RoleTool
		if err := a.written(ctx); err != nil {
			return Kept{Usage: a.usage}, err
		}
	}
	return Kept{a.session.View(), a.usage}, nil
}

// written runs a compaction if the session is due.
func (a *automatic) written(ctx context.Context) error {
	n, size := a.session.Size()
	g, limits := a.policy.Guards, a.limits
	switch {
	case g.ServiceManaged, size < a.due, size <= limits.Window && g.MidTurn == policy.GuardWait && !a.facts.TurnCompleted:
		return nil
	case a.triggers != nil:
		f := a.facts
		f.Tokens, f.Messages = size, int64(n)
		for _, r := range a.session.Records() {
			if r.Included && r.Role == chat.RoleUser && r.Kind == chat.KindSource {
				f.Turns++
			}
		}
		t, ok := policy.Fired(a.triggers, f)
		if !ok {
			return nil
		}
		limits = limits.WithTarget(t.Trigger)
	case !limits.Over(size):
		return nil
	}
	if a.facts.NewTurns > 0 {
		limits = limits.ForTurns(a.policy.TargetTurns, a.facts.NewTokens/chat.Tokens(a.facts.NewTurns))
	}
	run, writers, err := strategies.Build(a.build.Registry, a.policy, limits, summary.Options{Model: a.build.Model})
	if err != nil {
		return err
	}
	report, planned, err := a.options.Run(ctx, a.options.Pipeline(run), a.view())
	for _, w := range writers {
		if w != nil {
			a.usage.add(UsageOf(w.Provenance()))
		}
	}
	if err != nil {
		return err
	}
	gain := report.Gain()
	low := g.LowGain(gain, size)
	repairs := len(report.Violations) > 0
	if planned.Empty() || !repairs && (gain < a.policy.MinGainTokens || low && g.Ineffective(a.lowGain) && size <= limits.Window) {
		a.due = size + max(a.policy.MinGainTokens, 1)
		return nil
	}
	if a.lowGain++; !low {
		a.lowGain = 0
	}
	a.session.Apply(planned)
	_, left := a.session.Size()
	if a.due = 0; limits.Over(left) {
		a.due = left + max(a.policy.MinGainTokens, 1)
	}
	a.facts.Added = policy.Added{}
	return nil
}

// view returns the transcript of an automatic run, which holds the view only.
func (a *automatic) view() *plan.Transcript {
	whole := a.session.Transcript()
	t := &plan.Transcript{Counter: whole.Counter, Originals: whole.Originals, Unmarked: whole.Unmarked}
	for _, e := range whole.Entries {
		if e.Included {
			t.Entries = append(t.Entries, e)
		}
	}
	return t
}

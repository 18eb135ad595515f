package worker

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/policy"
)

// Preview is the result of a run that was planned and not applied.
type Preview struct {
	// Outcome is that of the run, as if it applied its plan.
	Outcome string
	Limits  policy.Limits
	// Before and After are the sizes of the context, in real tokens.
	Before, After                 chat.Tokens
	MessagesBefore, MessagesAfter int64
	// Rewritten is the part of the view behind its first change, in stored tokens.
	Rewritten chat.Tokens
	Steps     []pipeline.StepResult
	// Gone counts the messages that leave the view, by reason, in the order of the plan.
	Gone []Gone
	// Diff is the change of the view. What it writes has the ids new-1, new-2 and so on.
	Diff store.RunDiff
}

// Gone counts messages that leave the view for a reason. A summary or a replacement is in
// the place of those that are covered.
type Gone struct {
	Reason   string      `json:"reason"`
	Messages int         `json:"messages"`
	Tokens   chat.Tokens `json:"tokens"`
	Covered  bool        `json:"covered"`
}

// Preview plans a run over the view of a session (store.Snapshot) under the policy that it
// has, or another one, whatever the session's size and the guards of automatic runs. It
// writes nothing. The policy must be valid.
func (p *Planner) Preview(ctx context.Context, st Store, c *store.Claim, other *policy.Policy) (Preview, error) {
	of := namedPolicy{}
	var err error
	if other != nil {
		of.policy = *other
		c.Session.Policy, c.Session.PolicyVersion = "", -1 // a key of its own in the cache
	} else if of, err = p.policyOf(ctx, st, &c.Session); err != nil {
		return Preview{}, err
	}
	if of.err != nil {
		return Preview{}, of.err
	}
	if p.Model != nil {
		// The model is not called, so that an extract stands for its summary.
		of.policy.Summary.OnFailure = policy.OnFailureExtractive
	}
	a := &attempt{runContext: p.newRunContext(c, of), w: New(st, p, Config{})}
	a.begin()
	out := Preview{Limits: a.limits, Before: a.context, MessagesBefore: c.Session.LiveMessages}
	out.Diff = store.RunDiff{Out: []store.DiffPart{}, In: []store.DiffPart{}, Wrote: []store.MessageRow{}}
	result, change, err := a.plan(ctx)
	if err != nil {
		return out, err
	}
	out.Steps = result.Steps
	c.Options.DryRun = false // so that obstacles to applying the plan are reported
	if out.Outcome = a.skipReason(result); out.Outcome != "" {
		out.After, out.MessagesAfter = out.Before, out.MessagesBefore
		out.Diff.Stays = a.part("", c.Session.Live)
		return out, nil
	}
	out.Outcome, out.After, out.MessagesAfter = a.appliedOutcome(c.Session.Live.Minus(change.Plan.Gone()).Union(change.Plan.Include)), a.leaves, a.ledger.MessagesAfter
	unchanged := change.Plan.Unchanged(a.metas, func(i int) bool { return a.entries[i].Included })
	out.Rewritten = chat.Tokens(a.ledger.TokensAfter) - unchanged
	live := c.Session.Live
	out.Diff.Stays = a.part("", live.Minus(change.Plan.Gone()))
	if back := change.Plan.Include.Minus(live); len(back) > 0 {
		out.Diff.In = append(out.Diff.In, a.part("", back))
	}
	for _, x := range change.Plan.Exclude {
		out.Gone = append(out.Gone, a.gone(x.Reason, x.Seqs, false))
		if gone := x.Seqs.Intersect(live); len(gone) > 0 {
			out.Diff.Out = append(out.Diff.Out, a.part(x.Reason, gone))
		}
	}
	for i, x := range change.Plan.Additions {
		out.Gone = append(out.Gone, a.gone(x.Reason, x.Covers, true))
		id := fmt.Sprintf("new-%d", i+1)
		if gone := x.Covers.Intersect(live); len(gone) > 0 {
			part := a.part(x.Reason, gone)
			part.SummarizedBy = id
			out.Diff.Out = append(out.Diff.Out, part)
		}
		out.Diff.Wrote = append(out.Diff.Wrote, store.MessageRow{
			ID: id, Kind: x.Kind, Role: x.Message.Role, Tokens: x.Tokens, Included: true, SummaryOf: x.Covers.String(),
			Message: x.Message.Body().AppendJSON(nil),
		})
	}
	return out, nil
}

// part counts the messages among seqs.
func (a *attempt) part(reason string, seqs chat.Ranges) store.DiffPart {
	p := store.DiffPart{Reason: reason}
	var found []chat.Seq
	for _, m := range a.metas {
		if seqs.Has(m.Seq) {
			p.Messages++
			p.Tokens += m.Tokens
			found = append(found, m.Seq)
		}
	}
	p.Seqs = chat.RangesOf(found...).String()
	return p
}

// gone counts the messages of the view among seqs.
func (a *attempt) gone(reason string, seqs chat.Ranges, covered bool) Gone {
	out := Gone{Reason: reason, Covered: covered}
	for _, m := range a.claim.View {
		if seqs.Has(m.Seq) {
			out.Messages++
			out.Tokens += m.Tokens
		}
	}
	return out
}

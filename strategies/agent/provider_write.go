package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// compact writes new messages to a source with the plans of New and After.
func (p *Provider) compact(ctx context.Context, s Source, messages []chat.Message) (strategies.Report, error) {
	log, err := s.History.Load(ctx, true) // what is excluded decides which calls results pair with
	if err != nil {
		return strategies.Report{}, err
	}
	t, err := p.transcript(log, messages)
	if err != nil {
		return strategies.Report{}, err
	}
	w := chat.Write{Messages: messages, After: log.Last, Revision: log.Revision, FreeReasoning: p.Options.FreeReasoning}
	var pinned []chat.Seq
	for i := range log.Records {
		if log.Records[i].Pinned {
			pinned = append(pinned, log.Records[i].Seq)
		}
	}
	w.Pinned = chat.RangesOf(pinned...)
	report, plan, failed := p.plan(ctx, t, len(messages))
	if failed == nil {
		w.Plan, w.Steps = plan, report.Steps
		if !s.StoreExcluded {
			if w.Messages, w.Plan, err = p.storeRest(ctx, log, messages, plan); err != nil {
				return strategies.Report{}, err
			}
		}
	}
	if len(w.Messages) == 0 && w.Plan.Empty() {
		return report, failed
	}
	return report, errors.Join(failed, s.History.Append(ctx, w))
}

// transcript returns a log followed by new messages.
func (p *Provider) transcript(log chat.Log, messages []chat.Message) (*plan.Transcript, error) {
	t := &plan.Transcript{Counter: p.Options.Counter}
	if t.Counter == nil {
		t.Counter = tokens.Chars4{}
	}
	var pairer chat.Pairer
	for i := range log.Records {
		r := &log.Records[i]
		if r.Kind != chat.KindSummary { // a moved message is described at its original
			pairer.Describe(&r.Message, r.Seq)
		}
		t.Entries = append(t.Entries, plan.Entry{
			Meta: r.Meta, Included: r.Included, Pinned: r.Pinned || p.Options.Pinned(-1, r.Message.ID), Message: &r.Message,
		})
	}
	own := slices.Clone(messages)
	for i := range own {
		m := &own[i]
		meta := pairer.Describe(m, log.Last+chat.Seq(i+1))
		plan.Count(t.Counter, &meta, m)
		t.Entries = append(t.Entries, plan.Entry{
			Meta: meta, Included: true, Pinned: p.Options.Pinned(i, m.ID), Message: m,
		})
	}
	_, err := pipeline.NewDraft(t) // checks the order
	return t, err
}

// plan runs New on the new messages alone, so that it cannot change others, and After on
// all of them. The guard applies to the whole.
func (p *Provider) plan(ctx context.Context, t *plan.Transcript, fresh int) (strategies.Report, chat.Plan, error) {
	all := p.Options.Pipeline(p.After)
	if p.New != nil {
		alone := strategies.Options{}.Pipeline(p.New)
		// Only the whole is guarded.
		planned, err := alone.Plan(ctx, &plan.Transcript{Entries: t.Entries[len(t.Entries)-fresh:], Counter: t.Counter})
		if err != nil {
			return strategies.Report{}, chat.Plan{}, err
		}
		fixed := pipeline.Fixed(p.New.Name(), planned)
		if all.Target > 0 { // New runs even if the view is within the target of After
			after := pipeline.Pipeline{Steps: all.Steps, Target: all.Target, Fallback: all.Fallback}
			all = pipeline.Pipeline{Steps: []plan.Strategy{fixed, after}, Guard: all.Guard}
		} else {
			all.Steps = slices.Concat([]plan.Strategy{fixed}, all.Steps)
		}
	}
	return p.Options.Run(ctx, all, t)
}

// storeRest returns the new messages that a plan keeps and the plan for the log with these alone,
// where a removed message no longer separates its neighbours.
func (p *Provider) storeRest(ctx context.Context, log chat.Log, messages []chat.Message, whole chat.Plan) ([]chat.Message, chat.Plan, error) {
	rest, left := withoutExcluded(messages, whole, log.Last)
	if left.Empty() {
		return rest, left, nil
	}
	t, err := p.transcript(log, rest)
	if err != nil {
		return nil, chat.Plan{}, err
	}
	guarded := p.Options.Pipeline(p.After)
	r, err := pipeline.Pipeline{Steps: []plan.Strategy{pipeline.Fixed("rest", left)}, Guard: guarded.Guard, FreeReasoning: guarded.FreeReasoning}.Run(ctx, t, nil)
	return rest, r.Plan, err
}

// withoutExcluded removes the new messages that a plan excludes, and the reasoning that it
// drops of the others. Additions that cover only such messages are stored as messages in their
// place, unless it is before the new messages: then these stay. The plan for the older messages is
// adjusted to the seqs of the remaining messages.
func withoutExcluded(messages []chat.Message, p chat.Plan, last chat.Seq) ([]chat.Message, chat.Plan) {
	fresh := chat.Ranges{{Lo: last + 1, Hi: last + chat.Seq(len(messages)) + 1}}
	gone := p.Gone().Intersect(fresh)
	out := chat.Plan{Include: p.Include, DropReasoning: p.DropReasoning.Minus(fresh)}
	for _, x := range p.Exclude {
		if x.Seqs = x.Seqs.Minus(fresh); len(x.Seqs) > 0 {
			out.Exclude = append(out.Exclude, x)
		}
	}
	var own []chat.Addition
	for _, a := range p.Additions {
		switch older := a.Covers.Minus(fresh); {
		case len(older) > 0:
			a.Covers = older
			out.Additions = append(out.Additions, a)
		case a.Position <= last:
			gone = gone.Minus(a.Covers)
			out.Additions = append(out.Additions, a)
		default:
			own = append(own, a)
		}
	}
	slices.SortStableFunc(own, func(a, b chat.Addition) int { // in view order
		return chat.Compare(chat.Meta{Position: a.Position, Kind: a.Kind}, chat.Meta{Position: b.Position, Kind: b.Kind})
	})
	var rest []chat.Message
	place := func(before func(chat.Addition) bool) {
		for len(own) > 0 && before(own[0]) {
			rest = append(rest, own[0].Message)
			own = own[1:]
		}
	}
	stored := map[chat.Seq]chat.Seq{}
	at := make([]chat.Seq, len(messages)) // the new position of a summary in front of each message
	for i, m := range messages {
		q := last + chat.Seq(i+1)
		place(func(a chat.Addition) bool { return a.Position < q || a.Position == q && a.Kind == chat.KindSummary })
		at[i] = last + chat.Seq(len(rest)+1)
		place(func(a chat.Addition) bool { return a.Position == q })
		if meta := m.Meta(q); meta.Signed() && p.DropReasoning.Has(q) {
			if meta.ReasoningOnly() {
				continue
			}
			m = m.WithoutReasoning()
		}
		if !gone.Has(q) {
			rest = append(rest, m)
			stored[q] = last + chat.Seq(len(rest))
		}
	}
	for _, a := range own {
		rest = append(rest, a.Message)
	}
	for i := range out.Additions {
		a := &out.Additions[i]
		if own := a.Covers.Intersect(fresh); len(own) > 0 {
			var seqs []chat.Seq
			for _, q := range own.Seqs() {
				seqs = append(seqs, stored[q])
			}
			a.Covers = chat.RangesOf(seqs...)
		}
		switch k := int(a.Position - last - 1); {
		case k >= len(at):
			a.Position = last + chat.Seq(len(rest)+1)
		case k >= 0:
			a.Position = at[k]
		}
	}
	return rest, out
}

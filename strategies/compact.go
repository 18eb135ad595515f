package strategies

import (
	"context"
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Report describes a compaction. Seqs are those of Conversation.Append: for Compact, message
// i of the input has seq i+1.
type Report struct {
	// Before and After count the conversation; Steps report each strategy.
	Before plan.Totals
	After  plan.Totals
	Steps  []pipeline.StepResult
	// Excluded lists the messages removed from the view, by seq, Restored those included
	// again, Written the additions.
	Excluded []Excluded
	Restored chat.Ranges
	Written  []Written
	// Violations lists the violations of the view before the run, Repairs the repairs of them.
	Violations []chat.Violation
	Repairs    []pipeline.Repair
	// Rejected counts invalid additions of strategies.
	Rejected int
	// Reasoning lists the messages that lost their signed reasoning, which was written on
	// another view than the one before it now.
	Reasoning []chat.Seq
	// OpenLoop reports that the conversation ends in an open tool loop with signed reasoning,
	// before which nothing could change.
	OpenLoop bool
	// Grew reports that the result had more tokens and was discarded (see
	// Options.AllowGrowth). Steps describe the discarded result.
	Grew bool
}

// Gain returns the number of tokens by which the view shrank; negative if it grew.
func (r *Report) Gain() chat.Tokens { return r.Before.IncludedTokens - r.After.IncludedTokens }

// Changed reports whether the view changed.
func (r *Report) Changed() bool {
	return len(r.Excluded) > 0 || len(r.Written) > 0 || len(r.Restored) > 0
}

// Excluded describes a message that is not in the view.
type Excluded struct {
	Seq    chat.Seq    `json:"seq"`
	ID     string      `json:"id,omitempty"`
	Role   chat.Role   `json:"role"`
	Kind   chat.Kind   `json:"-"`
	Tokens chat.Tokens `json:"tokens"`
	Reason string      `json:"reason"`
	// By is the summary or replacement in the view that covers the message, 0 for none.
	By chat.Seq `json:"by,omitempty"`
}

// Written describes a summary or replacement that a strategy added to the view.
type Written struct {
	Seq    chat.Seq
	Kind   chat.Kind
	Reason string
	Covers chat.Ranges
	Tokens chat.Tokens
	// Message is shared with the conversation and must not be changed.
	Message *chat.Message
}

// Run runs a pipeline on t, whose content must be loaded. It returns the report and the plan
// to apply, which is empty if the result is discarded because the view would grow.
func (o Options) Run(ctx context.Context, p pipeline.Pipeline, t *plan.Transcript) (Report, chat.Plan, error) {
	r, err := p.Run(ctx, t, nil)
	if err == nil && !o.AllowGrowth {
		r, err = p.LimitGrowth(ctx, t, nil, r, nil)
	}
	if err != nil {
		return Report{}, chat.Plan{}, err
	}
	return newReport(t, &r), r.Plan, nil
}

// newReport returns the report of a run on t, and clears the plan of a discarded result.
func newReport(t *plan.Transcript, r *pipeline.Result) Report {
	out := Report{
		Before: r.Before, After: r.After, Steps: r.Steps, Violations: r.Violations, Repairs: r.Repairs, Rejected: r.Rejected,
		OpenLoop: r.OpenLoop,
	}
	if r.WouldGrow {
		out.Grew, out.After, r.Plan = true, r.Before, chat.Plan{}
		return out
	}
	p := &r.Plan
	out.Restored = p.Include
	excluded := map[chat.Seq]exclusion{}
	exclude := func(seqs chat.Ranges, reason string, by chat.Seq) {
		for _, q := range seqs.Seqs() {
			excluded[q] = exclusion{reason, by}
		}
	}
	for _, x := range p.Exclude {
		exclude(x.Seqs, x.Reason, 0)
	}
	next := chat.Seq(1)
	for i := range t.Entries {
		next = max(next, t.Entries[i].Seq+1)
	}
	for k := range p.Additions {
		a := &p.Additions[k]
		q := next + chat.Seq(k)
		exclude(a.Covers, a.Reason, q)
		out.Written = append(out.Written, Written{Seq: q, Kind: a.Kind, Reason: a.Reason, Covers: a.Covers, Tokens: a.Tokens, Message: &a.Message})
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		x, gone := excluded[e.Seq]
		if !gone && (e.Included || p.Include.Has(e.Seq)) && e.Signed() && p.DropReasoning.Has(e.Seq) {
			gone, x.reason = e.HoldsOnlyReasoning(), string(chat.ViolationStaleReasoning)
			if !gone {
				out.Reasoning = append(out.Reasoning, e.Seq)
			}
		}
		if gone {
			out.Excluded = append(out.Excluded, newExcluded(e, x))
		}
	}
	slices.SortFunc(out.Excluded, func(a, b Excluded) int { return int(a.Seq - b.Seq) })
	return out
}

// newExcluded returns the report of an excluded entry.
func newExcluded(e *plan.Entry, x exclusion) Excluded {
	return Excluded{Seq: e.Seq, ID: e.Message.ID, Role: e.Role, Kind: e.Kind, Tokens: e.Tokens, Reason: x.reason, By: x.by}
}

// Compacted is the result of Compact.
type Compacted struct {
	// Messages is the view.
	Messages []chat.Message
	Report
}

// Compact compacts messages with a strategy or a Pipeline. It stores nothing and does not
// change the input. On an error, a *StrategyError or that of ctx, Messages is the input.
func Compact(ctx context.Context, messages []chat.Message, s plan.Strategy, o Options) (Compacted, error) {
	for i := range messages {
		if err := messages[i].Validate(); err != nil {
			return Compacted{Messages: messages}, fmt.Errorf("compact: message %d: %w", i, err)
		}
	}
	c := NewConversation(o)
	c.Append(messages...)
	if err := c.checkPins(); err != nil {
		return Compacted{Messages: messages}, fmt.Errorf("compact: %w", err)
	}
	r, err := c.Compact(ctx, s)
	if err != nil {
		return Compacted{Messages: messages}, err
	}
	return Compacted{Messages: c.View(), Report: r}, nil
}

// checkPins returns an error for pins of the options that match no message.
func (c *Conversation) checkPins() error {
	for _, i := range c.options.Pins {
		if i < 0 || i >= c.appended {
			return fmt.Errorf("pin message at index %d of %d: %w", i, c.appended, ErrUnknownMessage)
		}
	}
	seen := map[string]bool{}
	if len(c.pinIDs) > 0 {
		for i := range c.entries {
			seen[c.entries[i].Message.ID] = true
		}
	}
	for _, id := range c.options.PinIDs {
		if !seen[id] {
			return fmt.Errorf("pin message %q: %w", id, ErrUnknownMessage)
		}
	}
	return nil
}

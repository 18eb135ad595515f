package strategies

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Report says what a compaction did. Seqs are those of Conversation.Append: for
// Compact, message i of those given has seq i+1.
type Report struct {
	// Before and After count the conversation, Steps what each strategy did.
	Before plan.Totals
	After  plan.Totals
	Steps  []pipeline.Step
	// Excluded are the messages that were taken out, by seq, Restored those that came
	// back, Written what was put in.
	Excluded []Excluded
	Restored chat.Ranges
	Written  []Written
	// Faults are what was wrong with the view before, Repairs what had to be mended.
	Violations []chat.Violation
	Repairs    []pipeline.Repair
	// Rejected counts what strategies wrote that no view could hold.
	Rejected int
	// Grew: the result had more tokens and was thrown away (see Options.AllowGrowth);
	// Steps say what it was.
	Grew bool
}

// Gain returns how many tokens the view has lost; negative if it grew.
func (r *Report) Gain() chat.Tokens { return r.Before.IncludedTokens - r.After.IncludedTokens }

// Changed reports whether the view is another one.
func (r *Report) Changed() bool {
	return len(r.Excluded) > 0 || len(r.Written) > 0 || len(r.Restored) > 0
}

// Excluded is a message that is not in the view.
type Excluded struct {
	Seq    chat.Seq
	ID     string
	Role   chat.Role
	Kind   chat.Kind
	Tokens chat.Tokens
	Reason string
	// By is the summary or stand-in in the view that stands for it, 0 for none.
	By chat.Seq
}

// Written is a summary or stand-in that a strategy put into the view.
type Written struct {
	Seq    chat.Seq
	Kind   chat.Kind
	Reason string
	Covers chat.Ranges
	Tokens chat.Tokens
	// Message is the conversation's own and must not be changed.
	Message *chat.Message
}

// Compacted is what Compact makes of messages.
type Compacted struct {
	// Messages is the view.
	Messages []chat.Message
	Report
}

// Compact has a strategy, or a Pipeline, compact messages. Nothing is stored, and
// the messages are not changed. A strategy that fails leaves them as they are: the
// error is a *StrategyError or that of ctx, and Messages is what was given.
func Compact(ctx context.Context, messages []chat.Message, s plan.Strategy, o Options) (Compacted, error) {
	c := NewConversation(o)
	c.Append(messages...)
	if err := c.knowsPins(); err != nil {
		return Compacted{Messages: messages}, fmt.Errorf("compact: %w", err)
	}
	r, err := c.Compact(ctx, s)
	if err != nil {
		return Compacted{Messages: messages}, err
	}
	return Compacted{Messages: c.View(), Report: r}, nil
}

// knowsPins is the error for pins of the options that no message has.
func (c *Conversation) knowsPins() error {
	for _, i := range c.options.Pins {
		if i < 0 || i >= c.said {
			return fmt.Errorf("pin message at index %d of %d: %w", i, c.said, ErrUnknownMessage)
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

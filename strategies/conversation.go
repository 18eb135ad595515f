package strategies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// ErrUnknownMessage is returned for a pin on a message that does not exist.
var ErrUnknownMessage = errors.New("no such message")

// Options configure compaction in memory. The zero value counts with tokens.Chars4 and
// enforces the invariants of a view.
type Options struct {
	// Counter counts all messages, including those that strategies write.
	Counter plan.Counter
	// Target and Fallback are those of the Pipeline. If the strategy is a pipeline, its own
	// values apply where these are zero.
	Target   chat.Tokens
	Fallback bool
	// AllowGrowth accepts a result with more tokens than its input, which is otherwise
	// discarded, except for repairs of the view and restored pinned messages.
	AllowGrowth bool
	// MidLoop keeps the newest assistant message and everything after it, that is, the
	// results that the model has not read yet (see SplitMidLoop).
	MidLoop bool
	// Pins and PinIDs name messages that stay in the view verbatim: by index among all
	// appended messages, from 0, and by ID.
	Pins   []int
	PinIDs []string
	// FreeReasoning reports that the model accepts signed and encrypted reasoning whatever
	// precedes it (see tokens.BindsReasoning). Otherwise, once a compaction has changed
	// something, the messages after it lose such reasoning, and nothing changes before that of
	// an open tool loop (see Report.OpenLoop).
	FreeReasoning bool
}

// Conversation holds the history of a tool loop in memory. Messages are appended, compacted
// with Compact, and read with View. A compaction stays in effect until a later one changes
// it. Nothing is stored.
//
// Append takes time proportional to the appended messages, Compact one pass over the whole
// conversation; Size shows whether it is worthwhile. A Conversation is not safe for concurrent
// use.
type Conversation struct {
	options Options
	pins    map[int]bool
	pinIDs  map[string]bool

	// entries are in view order. at holds their indexes, exclusions the reasons of those
	// that are excluded, both by seq-1.
	entries    []plan.Entry
	at         []int32
	exclusions []exclusion

	marked   bool // a store marks the messages that are summaries
	appended int  // messages without additions
	pairer   chat.Pairer
	groups   chat.Grouper
	included int
	tokens   chat.Tokens
}

// exclusion is the reason why a message is not in the view, and the addition that covers
// it.
type exclusion struct {
	reason string
	by     chat.Seq
}

// NewConversation returns an empty conversation.
func NewConversation(o Options) *Conversation {
	if o.Counter == nil {
		o.Counter = tokens.Chars4{}
	}
	c := &Conversation{options: o, pins: map[int]bool{}, pinIDs: map[string]bool{}}
	for _, i := range o.Pins {
		c.pins[i] = true
	}
	for _, id := range o.PinIDs {
		c.pinIDs[id] = true
	}
	return c
}

// Append adds messages at the end and returns the seq of the first; the others follow
// consecutively. Seqs start at 1, and additions of strategies use them too. The messages
// must not be changed afterwards.
func (c *Conversation) Append(messages ...chat.Message) chat.Seq {
	first := c.next()
	own := slices.Clone(messages)
	for i := range own {
		c.add(&own[i])
	}
	return first
}

// AppendRecord adds a record of a store, which may be pinned or a summary. It gets a new
// seq and token count.
func (c *Conversation) AppendRecord(r chat.Record) {
	c.marked = true
	c.add(&r.Message)
	last := &c.entries[len(c.entries)-1]
	last.Pinned = last.Pinned || r.Pinned
	if r.Kind == chat.KindSummary && !plan.FromApplication(r.Meta) {
		last.Kind = chat.KindSummary
	}
}

func (c *Conversation) add(m *chat.Message) {
	meta := c.pairer.Describe(m, c.next())
	plan.Count(c.options.Counter, &meta, m)
	c.groups.Add(&meta)
	c.at = append(c.at, int32(len(c.entries)))
	c.exclusions = append(c.exclusions, exclusion{})
	c.entries = append(c.entries, plan.Entry{
		Meta: meta, Included: true, Pinned: c.pins[c.appended] || m.ID != "" && c.pinIDs[m.ID], Message: m,
	})
	c.appended++
	c.included++
	c.tokens += meta.Tokens
}

func (c *Conversation) next() chat.Seq { return chat.Seq(len(c.exclusions) + 1) }

// Size returns the number of messages in the view and their tokens in constant time.
func (c *Conversation) Size() (messages int, size chat.Tokens) { return c.included, c.tokens }

// Pin pins or unpins messages. Excluded messages return with the next Compact. If any
// message is unknown, nothing is pinned and the error wraps ErrUnknownMessage.
func (c *Conversation) Pin(pinned bool, seqs ...chat.Seq) error {
	for _, q := range seqs {
		if q < 1 || q >= c.next() || !plan.FromApplication(c.entries[c.at[q-1]].Meta) {
			return fmt.Errorf("pin message %d: %w, or it is one that a strategy wrote", q, ErrUnknownMessage)
		}
	}
	for _, q := range seqs {
		c.entries[c.at[q-1]].Pinned = pinned
	}
	return nil
}

// View returns the messages to send to the model. Calls of one batch that were appended in
// several messages are one (see chat.Merge).
func (c *Conversation) View() []chat.Message {
	out, view := make([]chat.Message, 0, c.included), make([]chat.Meta, 0, c.included)
	for i := range c.entries {
		if c.entries[i].Included {
			out, view = append(out, *c.entries[i].Message), append(view, c.entries[i].Meta)
		}
	}
	return chat.Merge(view, out)
}

// Records returns all messages in view order, including excluded ones.
func (c *Conversation) Records() []chat.Record {
	out := make([]chat.Record, len(c.entries))
	for i := range c.entries {
		e := &c.entries[i]
		out[i] = chat.Record{Meta: e.Meta, Message: *e.Message, Included: e.Included, Pinned: e.Pinned}
	}
	return out
}

// Totals counts the conversation in one pass.
func (c *Conversation) Totals() plan.Totals { return c.Transcript().Totals() }

// Excluded returns the messages that are not in the view, by seq.
func (c *Conversation) Excluded() []Excluded {
	var out []Excluded
	for k := range c.exclusions {
		if !c.entries[c.at[k]].Included {
			out = append(out, c.excluded(chat.Seq(k+1)))
		}
	}
	return out
}

func (c *Conversation) excluded(q chat.Seq) Excluded {
	x := c.exclusions[q-1]
	for x.by > 0 && !c.entries[c.at[x.by-1]].Included {
		x.by = c.exclusions[x.by-1].by
	}
	return newExcluded(&c.entries[c.at[q-1]], x)
}

// Compact plans with a strategy or a Pipeline and applies the plan. On an error, a
// *StrategyError or that of ctx, nothing has changed. With a nil strategy Compact only
// repairs the view.
func (c *Conversation) Compact(ctx context.Context, s plan.Strategy) (Report, error) {
	defer c.pinUnread()()
	report, p, err := c.options.Run(ctx, c.options.Pipeline(s), c.Transcript())
	if err != nil {
		return Report{}, fmt.Errorf("compact: %w", err)
	}
	c.apply(p)
	return report, nil
}

// pinUnread pins the messages that the model has not read yet until release is called.
func (c *Conversation) pinUnread() (release func()) {
	var held []chat.Seq
	if c.options.MidLoop {
		for i := range slices.Backward(c.entries) {
			e := &c.entries[i]
			if !e.Included {
				continue
			}
			if !e.Pinned {
				e.Pinned = true
				held = append(held, e.Seq)
			}
			if e.Role == chat.RoleAssistant && e.Kind != chat.KindSummary {
				return func() { c.unpin(held) }
			}
		}
	}
	c.unpin(held) // there is no unfinished loop
	return func() {}
}

func (c *Conversation) unpin(seqs []chat.Seq) {
	for _, q := range seqs {
		c.entries[c.at[q-1]].Pinned = false
	}
}

// Pipeline returns a strategy as a pipeline with the target and the fallback of the
// options; the empty pipeline for nil.
func (o Options) Pipeline(s plan.Strategy) pipeline.Pipeline {
	p, whole := s.(pipeline.Pipeline)
	if !whole && s != nil {
		p.Steps = []plan.Strategy{s}
	}
	if o.Target > 0 {
		p.Target = o.Target
	}
	p.Fallback = p.Fallback || o.Fallback
	p.FreeReasoning = p.FreeReasoning || o.FreeReasoning
	return p
}

// Pinned reports whether the options pin the message at an index or with an id.
func (o Options) Pinned(index int, id string) bool {
	return slices.Contains(o.Pins, index) || id != "" && slices.Contains(o.PinIDs, id)
}

// Transcript returns the transcript for strategies. It shares the conversation's memory and
// is valid until the next change.
func (c *Conversation) Transcript() *plan.Transcript {
	t := plan.NewTranscript(c.entries, c.options.Counter, c.groups.Groups())
	t.Originals, t.Unmarked = c.originals, !c.marked
	return t
}

// Apply carries out a plan that was made on the Transcript, without a guard, and reports
// the messages that it changed. Compact applies plans of strategies safely.
func (c *Conversation) Apply(p chat.Plan) Report {
	r := newReport(c.Transcript(), &pipeline.Result{Plan: p})
	c.apply(p)
	return r
}

// apply carries out a plan.
func (c *Conversation) apply(p chat.Plan) {
	take := func(seqs chat.Ranges, reason string, by chat.Seq) {
		for _, x := range seqs {
			for q := x.Lo; q < x.Hi; q++ {
				c.include(q, false)
				c.exclusions[q-1] = exclusion{reason, by}
			}
		}
	}
	for _, x := range p.Exclude {
		take(x.Seqs, x.Reason, 0)
	}
	for _, x := range p.Include {
		for q := x.Lo; q < x.Hi; q++ {
			c.include(q, true)
			c.exclusions[q-1] = exclusion{}
		}
	}
	first := c.next()
	for k := range p.Additions {
		take(p.Additions[k].Covers, p.Additions[k].Reason, first+chat.Seq(k))
	}
	c.dropReasoning(p.DropReasoning)
	if len(p.Additions) > 0 {
		c.write(p.Additions)
	}
}

// dropReasoning takes the signed reasoning of messages out of the view, and those messages
// that hold nothing else.
func (c *Conversation) dropReasoning(seqs chat.Ranges) {
	for i := range c.entries {
		e := &c.entries[i]
		if !e.Included || !e.Signed() || !seqs.Has(e.Seq) {
			continue
		}
		if e.HoldsOnlyReasoning() {
			c.include(e.Seq, false)
			c.exclusions[e.Seq-1] = exclusion{reason: string(chat.ViolationStaleReasoning)}
			continue
		}
		c.tokens -= e.ReasoningTokens
		rest := e.Message.WithoutReasoning()
		e.Message = &rest
		e.Meta, _ = e.WithoutReasoning()
	}
}

func (c *Conversation) include(q chat.Seq, in bool) {
	e := &c.entries[c.at[q-1]]
	switch {
	case e.Included == in:
		return
	case in:
		c.included++
		c.tokens += e.Tokens
	default:
		c.included--
		c.tokens -= e.Tokens
	}
	e.Included = in
}

// write inserts additions at their positions, in one pass.
func (c *Conversation) write(adds []chat.Addition) {
	n := len(c.entries)
	for k := range adds {
		a := &adds[k]
		c.entries = append(c.entries, plan.Entry{Meta: a.Meta(c.next()), Included: true, Message: &a.Message})
		c.exclusions = append(c.exclusions, exclusion{})
		c.included++
		c.tokens += a.Tokens
	}
	written := slices.Clone(c.entries[n:])
	slices.SortFunc(written, func(a, b plan.Entry) int { return chat.Compare(a.Meta, b.Meta) })
	for i := len(c.entries) - 1; len(written) > 0; i-- { // from the back, so that nothing is overwritten
		last := written[len(written)-1]
		if n > 0 && chat.Less(last.Meta, c.entries[n-1].Meta) {
			n--
			c.entries[i] = c.entries[n]
			continue
		}
		c.entries[i] = last
		written = written[:len(written)-1]
	}
	c.at = append(c.at, make([]int32, len(adds))...)
	c.groups = chat.Grouper{}
	for i := range c.entries {
		c.at[c.entries[i].Seq-1] = int32(i)
		c.groups.Add(&c.entries[i].Meta)
	}
}

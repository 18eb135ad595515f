package chat

import (
	"cmp"
	"slices"
)

// Plan is what a compaction wants of a session: pure data, made without side
// effects, applied by the store in one transaction. The zero Plan wants nothing.
//
// Additions exclude what they cover by themselves; Exclude is for messages that
// go without anything in their place. A Seq stands in at most one of Exclude,
// Include and an addition's Covers.
type Plan struct {
	// Exclude takes messages out of the view.
	Exclude []Exclusion
	// Include brings excluded messages back.
	Include Ranges
	// Additions are the summaries and stand-ins that the plan writes.
	Additions []Addition
}

// Exclusion takes Seqs out of the view for a Reason (snake_case, shown to users).
type Exclusion struct {
	Reason string
	Seqs   Ranges
}

// Addition is a message that a plan writes: a summary of what it covers, or a
// stand-in for the one message it covers.
type Addition struct {
	Kind   Kind // KindSummary or KindStandIn
	Reason string
	// Covers is what the addition takes the place of: messages of the view the
	// plan was made on. They are excluded when it is applied, with a link to it.
	Covers Ranges
	// Position places the addition in the view (see Meta.Position).
	Position Seq
	Message  Message
	// Tokens and Flags of Message; Counter names who counted.
	Tokens  Tokens
	Counter string
	Flags   Flags
}

// Meta returns the metadata of the addition as the message with number seq.
func (a *Addition) Meta(seq Seq) Meta {
	return Meta{
		Seq: seq, Position: a.Position, Kind: a.Kind, Role: a.Message.Role, Flags: a.Flags,
		Calls: len(a.Message.ToolCalls), Tokens: a.Tokens,
	}
}

// Empty reports whether the plan changes nothing.
func (p Plan) Empty() bool {
	return len(p.Exclude) == 0 && len(p.Include) == 0 && len(p.Additions) == 0
}

// Gone is everything that the plan takes out of the view: what it excludes and what
// its additions cover.
func (p Plan) Gone() Ranges {
	var all []Range
	for i := range p.Exclude {
		all = append(all, p.Exclude[i].Seqs...)
	}
	for i := range p.Additions {
		all = append(all, p.Additions[i].Covers...)
	}
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	var out Ranges
	for _, x := range all {
		out = out.extend(x)
	}
	return out
}

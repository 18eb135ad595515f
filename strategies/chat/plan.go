package chat

import "slices"

// Plan is the result of planning a compaction: the changes to a session's view as plain
// data, which the store applies in one transaction. The zero Plan changes nothing.
//
// Additions exclude the messages they cover; Exclude is for messages without a replacement.
// A Seq is in at most one of Exclude, Include and an addition's Covers.
type Plan struct {
	// Exclude removes messages from the view.
	Exclude []Exclusion
	// Include restores excluded messages.
	Include Ranges
	// DropReasoning removes signed reasoning from the view: that of the messages after the
	// first change of the plan (see StaleReasoning).
	DropReasoning Ranges
	// Additions are the summaries and replacements to write.
	Additions []Addition
}

// Exclusion removes Seqs from the view for a Reason (snake_case, shown to users).
type Exclusion struct {
	Reason string
	Seqs   Ranges
}

// Addition is a message written by a plan: a summary of the messages it covers, or a
// replacement of the one message it covers.
type Addition struct {
	Kind   Kind // KindSummary or KindReplacement
	Reason string
	// Covers are messages of the view that the addition replaces. Applying the plan
	// excludes them with a link to the addition.
	Covers Ranges
	// Position places the addition in the view (see Meta.Position).
	Position Seq
	Message  Message
	// Tokens and Flags describe Message; Counter names the counter.
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

// Gone returns all messages that the plan removes from the view: those it excludes and
// those its additions cover.
func (p Plan) Gone() Ranges {
	var all []Range
	for i := range p.Exclude {
		all = append(all, p.Exclude[i].Seqs...)
	}
	for i := range p.Additions {
		all = append(all, p.Additions[i].Covers...)
	}
	return Merged(all)
}

// Unchanged counts the tokens that stand at the beginning of a view, in its order, after the
// plan as before it. The messages may include some that are not in the view.
func (p Plan) Unchanged(messages []Meta, inView func(i int) bool) (tokens Tokens) {
	gone := p.Gone()
	for i := range messages {
		m := &messages[i]
		before := func(a Addition) bool { return a.Position <= m.Position }
		if p.Include.Has(m.Seq) || inView(i) && gone.Has(m.Seq) || slices.ContainsFunc(p.Additions, before) {
			break
		}
		if inView(i) {
			tokens += m.Tokens
		}
	}
	return tokens
}

package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MendAction is what a repair does with one message of a view.
type MendAction string

// The actions of a repair. All but MendExclude put a stand-in in the place of the
// message; Mend.Apply writes it.
const (
	// MendTextify turns a result without its call into an assistant text.
	MendTextify MendAction = "textify"
	// MendDropCalls leaves the text of a call message that nobody answered.
	MendDropCalls MendAction = "drop_calls"
	// MendKeepAnswered leaves the calls of a message that were answered.
	MendKeepAnswered MendAction = "keep_answered"
	// MendExclude takes the message out of the view: it is part of the group of
	// a call that nobody answered and that says nothing.
	MendExclude MendAction = "exclude"
	// MendMove puts the same message to another position.
	MendMove MendAction = "move"
)

// Mend is one step of a repair, for the entry of the view with that Index.
type Mend struct {
	Index  int
	Seq    Seq
	Action MendAction
	// Reason is the fault that the mend removes.
	Reason FaultCode
	// Position is where the stand-in stands: in the place of the message, or
	// behind the group (or the system messages) it must not stand in. Stand-ins
	// get their seqs in the order of the mends, above all others.
	Position Seq
	// Results are the results that stay, for MendKeepAnswered: their ids are the
	// second argument of Apply.
	Results []Seq
}

// Repair returns what has to be done to a view so that Check finds nothing, in
// view order; nil for a view without faults. It keeps as many words as it can: only
// the reasoning of a call goes which has no answer and says nothing.
//
// An open call, which no user message follows, is left alone. Note that a stand-in
// that was moved behind a group shares the position of its last member: rewriting
// that member later puts the rewritten one, whose seq is higher, behind it. Check
// sees that, and Repair moves it again.
func Repair(view []Meta) []Mend {
	s := scanView(view)
	if len(s.faults) == 0 {
		return nil
	}
	mends := make(map[int]Mend, len(s.faults))
	for _, f := range s.faults {
		m := Mend{Index: f.Index, Seq: f.Seq, Reason: f.Code, Position: view[f.Index].Position}
		switch f.Code {
		case FaultOrphanResult:
			m.Action = MendTextify
		case FaultSummarySplitsGroup:
			m.Action = MendMove
		case FaultBeforeSystem:
			m.Action, m.Position = MendMove, s.systemEnd
		default:
			continue // mended with its group below, or by moving what splits it
		}
		if old, twice := mends[f.Index]; twice {
			m.Position = max(m.Position, old.Position)
			if old.Action == MendTextify {
				m.Action, m.Reason = old.Action, old.Reason
			}
		}
		mends[f.Index] = m
	}
	for _, b := range s.groups {
		for _, i := range b.inside {
			m := mends[i]
			m.Position = max(m.Position, view[b.last].Position)
			mends[i] = m
		}
		if b.unanswered {
			s.mendUnanswered(b, mends)
		}
	}
	out := make([]Mend, 0, len(mends))
	for _, m := range mends {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Mend) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

func (s *scan) mendUnanswered(b *batch, mends map[int]Mend) {
	put := func(i int, action MendAction) Mend {
		m := Mend{
			Index: i, Seq: s.view[i].Seq, Action: action,
			Reason: FaultUnansweredCall, Position: s.view[i].Position,
		}
		if old, twice := mends[i]; twice {
			m.Position = max(m.Position, old.Position)
		}
		mends[i] = m
		return m
	}
	call := s.view[b.call]
	switch {
	case len(b.results) > 0:
		m := put(b.call, MendKeepAnswered)
		for _, i := range b.results {
			m.Results = append(m.Results, s.view[i].Seq)
		}
		mends[b.call] = m
	case call.Has(HasText) || call.Has(HasMedia):
		put(b.call, MendDropCalls)
	default:
		put(b.call, MendExclude)
		for _, i := range slices.Concat(b.prefix, b.reasoning) {
			put(i, MendExclude)
		}
	}
}

// Meta is the metadata of the stand-in for the message that m describes, with
// number seq and without a token count. It is the zero Meta for MendExclude.
func (d Mend) Meta(m Meta, seq Seq) Meta {
	if d.Action == MendExclude {
		return Meta{}
	}
	m.Seq, m.Position, m.Kind, m.Tokens = seq, d.Position, KindStandIn, 0
	m.Flags &^= Estimated
	switch d.Action {
	case MendTextify:
		m.Role, m.Flags, m.Calls = RoleAssistant, HasText, 0
	case MendDropCalls:
		m.Calls = 0
	case MendKeepAnswered:
		m.Calls = len(d.Results)
	}
	return m
}

// Apply writes the stand-in for m. answered are the tool_call_ids of d.Results; it
// is read for MendKeepAnswered alone, and an id in it stands for one call. The
// stand-in has no ID, being a message of its own; for MendExclude there is none,
// and Apply returns the zero Message.
func (d Mend) Apply(m Message, answered []string) Message {
	m.ID = ""
	switch d.Action {
	case MendExclude:
		return Message{}
	case MendTextify:
		return textify(m)
	case MendDropCalls:
		m.ToolCalls = nil
	case MendKeepAnswered:
		left := slices.Clone(answered)
		var kept []ToolCall
		for _, c := range m.ToolCalls {
			if i := slices.Index(left, c.ID); i >= 0 {
				left = slices.Delete(left, i, i+1)
				kept = append(kept, c)
			}
		}
		m.ToolCalls = kept
	}
	return m
}

// textify keeps the words of a result whose call is missing.
func textify(m Message) Message {
	tool := "a tool"
	if m.Name != "" {
		tool = "tool " + m.Name
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[Result of %s whose call is missing]\n", tool)
	b.WriteString(m.Content.String())
	switch n := m.Content.Media(); n {
	case 0:
	case 1:
		b.WriteString("\n[1 media part not shown]")
	default:
		fmt.Fprintf(&b, "\n[%d media parts not shown]", n)
	}
	return Message{
		Role: RoleAssistant, Content: TextContent(b.String()),
		SourceID: m.SourceID, CreatedAt: m.CreatedAt,
	}
}

// Mended returns a history without faults: ms with the repair of its own view
// applied, or ms itself where there is nothing to repair.
func Mended(ms []Message) []Message {
	view := Describe(ms)
	mends := Repair(view)
	if len(mends) == 0 {
		return ms
	}
	type entry struct {
		Meta
		msg Message
	}
	out := make([]entry, len(ms), len(ms)+len(mends))
	for i := range ms {
		out[i] = entry{view[i], ms[i]}
	}
	seq := Seq(len(ms))
	for _, d := range mends {
		if d.Action != MendExclude {
			seq++
			var answered []string
			for _, q := range d.Results {
				answered = append(answered, ms[q-1].ToolCallID)
			}
			out = append(out, entry{d.Meta(view[d.Index], seq), d.Apply(ms[d.Index], answered)})
		}
		out[d.Index].Seq = 0 // replaced
	}
	out = slices.DeleteFunc(out, func(e entry) bool { return e.Seq == 0 })
	slices.SortStableFunc(out, func(a, b entry) int {
		if Less(a.Meta, b.Meta) {
			return -1
		}
		return 1
	})
	mended := make([]Message, len(out))
	for i, e := range out {
		mended[i] = e.msg
	}
	return mended
}

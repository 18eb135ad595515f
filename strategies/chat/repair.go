package chat

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// RepairAction is the kind of a repair step.
type RepairAction string

// The actions of a repair. All but RepairExclude replace the message with the result of
// RepairStep.Apply.
const (
	// RepairTextify turns a result without its call into an assistant text.
	RepairTextify RepairAction = "textify"
	// RepairDropCalls keeps the text of a call message without answers.
	RepairDropCalls RepairAction = "drop_calls"
	// RepairKeepAnswered keeps only the answered calls of a message. Each message of a batch
	// has this step: see RepairStep.Resolve.
	RepairKeepAnswered RepairAction = "keep_answered"
	// RepairExclude excludes a message of the group of an unanswered call without text.
	RepairExclude RepairAction = "exclude"
	// RepairMove moves the message to another position.
	RepairMove RepairAction = "move"
)

// RepairStep is one step of a repair, for the entry of the view with that Index.
type RepairStep struct {
	Index  int
	Seq    Seq
	Action RepairAction
	// Reason is the violation that the step removes.
	Reason ViolationCode
	// Position is that of the replacement: the position of the message, or one beside the
	// group it must not split, or after the system messages. Replacements get their seqs in
	// the order of the steps, above all others.
	Position Seq
	// Results are the results of the batch for RepairKeepAnswered: see Answered.
	Results []Seq
	// keep is the number of calls that stay of a message of a batch, as if the first ones of
	// the batch were those that are answered, which metadata does not show.
	keep int
	// end is the position of the last member of the batch.
	end Seq
}

// Repair returns the steps after which Check finds no violations, in view order; nil for a
// view without violations. It removes as little content as possible: calls without their
// result, and the reasoning of those of which nothing else is left.
//
// A batch that is open, as nothing follows it, is left alone, and a message that splits it goes in
// front of it. A replacement moved after a group shares the position of the group's last member,
// so that a later replacement of that member, with a higher seq, ends up after it. Check detects
// that and Repair moves it again.
func Repair(view []Meta) []RepairStep {
	if plain(view) {
		return nil
	}
	s := scanView(view)
	if len(s.violations) == 0 {
		return nil
	}
	steps := s.repairSteps()
	// Excluding messages can create new neighbours with violations, so check the
	// result again. One round is nearly always enough.
	for range maxRounds {
		after, from := applyRepairs(view, steps)
		again := scanView(after)
		if len(again.violations) == 0 {
			break
		}
		steps = merge(steps, again.repairSteps(), view, after, from)
	}
	return steps
}

const maxRounds = 4

// repairSteps returns the steps for the violations of one scan, in view order.
func (s *scan) repairSteps() []RepairStep {
	steps := make(map[int]*RepairStep, len(s.violations))
	for _, f := range s.violations {
		m := &RepairStep{Index: f.Index, Seq: f.Seq, Reason: f.Code, Position: s.view[f.Index].Position}
		switch f.Code {
		case ViolationOrphanResult:
			m.Action = RepairTextify
		case ViolationForeignRole:
			m.Action = RepairExclude
		case ViolationSummarySplitsGroup:
			m.Action = RepairMove
		case ViolationBeforeSystem:
			m.Action, m.Position = RepairMove, s.systemEnd
		default:
			continue // repaired with its group below, or by moving the message that splits it
		}
		if old := steps[f.Index]; old != nil {
			m.Position = max(m.Position, old.Position)
			if old.Action == RepairTextify || old.Action == RepairExclude {
				m.Action, m.Reason = old.Action, old.Reason
			}
		}
		steps[f.Index] = m
	}
	for _, b := range s.groups {
		for _, i := range b.inside {
			steps[i].Position = max(steps[i].Position, s.view[b.last].Position)
		}
		if b.open {
			for _, i := range slices.Concat(b.inside, b.pending) {
				steps[i].Position = s.view[b.first()].Position - 1
			}
		}
		for _, i := range b.before {
			steps[i].Position = s.view[b.prefix[0]].Position - 1
		}
		if b.unanswered {
			s.repairUnanswered(b, steps)
		}
	}
	return inOrder(steps)
}

func inOrder(steps map[int]*RepairStep) []RepairStep {
	out := make([]RepairStep, 0, len(steps))
	for _, i := range slices.Sorted(maps.Keys(steps)) {
		out = append(out, *steps[i])
	}
	return out
}

// applyRepairs returns the view after the steps and, for each of its entries, the index of
// its origin in view.
func applyRepairs(view []Meta, steps []RepairStep) (after []Meta, from []int) {
	next := Seq(1)
	for _, m := range view {
		next = max(next, m.Seq+1)
	}
	type entry struct {
		Meta
		from int
	}
	out := make([]entry, 0, len(view))
	for i, m := range view {
		if len(steps) == 0 || steps[0].Index != i {
			out = append(out, entry{m, i})
			continue
		}
		if after := steps[0].Meta(m, next); after.Seq > 0 {
			out = append(out, entry{after, i})
			next++
		}
		steps = steps[1:]
	}
	slices.SortFunc(out, func(a, b entry) int { return Compare(a.Meta, b.Meta) })
	for _, e := range out {
		after, from = append(after, e.Meta), append(from, e.from)
	}
	return after, from
}

// merge adds the steps of a second round to those of the first, in terms of the original
// view.
func merge(first, second []RepairStep, view, after []Meta, from []int) []RepairStep {
	origin := make(map[Seq]Seq, len(after))
	for i, m := range after {
		origin[m.Seq] = view[from[i]].Seq
	}
	steps := make(map[int]*RepairStep, len(first)+len(second))
	for i := range first {
		steps[first[i].Index] = &first[i]
	}
	for i := range second {
		d := &second[i]
		d.Index = from[d.Index]
		d.Seq = view[d.Index].Seq
		for i, q := range d.Results {
			d.Results[i] = origin[q]
		}
		if old := steps[d.Index]; old != nil && d.Action == RepairMove {
			old.Position = d.Position
			continue
		}
		steps[d.Index] = d
	}
	return inOrder(steps)
}

// repairUnanswered adds the steps for a batch that lacks results.
func (s *scan) repairUnanswered(b *callGroup, steps map[int]*RepairStep) {
	put := func(i int, action RepairAction) *RepairStep {
		m := &RepairStep{
			Index: i, Seq: s.view[i].Seq, Action: action,
			Reason: ViolationUnansweredCall, Position: s.view[i].Position,
		}
		if old := steps[i]; old != nil {
			m.Position = max(m.Position, old.Position)
		}
		steps[i] = m
		return m
	}
	says := func(i int) bool { return s.view[i].Flags&(HasText|HasMedia) != 0 }
	if left := len(b.results); left > 0 {
		for _, call := range b.calls {
			m := put(call, RepairKeepAnswered)
			m.keep, m.end = min(s.view[call].Calls, left), s.view[b.last].Position
			left -= m.keep
			for _, i := range b.results {
				m.Results = append(m.Results, s.view[i].Seq)
			}
		}
		return
	}
	for _, call := range b.calls {
		if says(call) {
			put(call, RepairDropCalls)
		} else {
			put(call, RepairExclude)
		}
	}
	if k := slices.IndexFunc(b.calls, says); k >= 0 {
		// Without calls the message no longer attaches the reasoning after it, so
		// move the messages inside the group in front of that reasoning.
		for _, i := range b.inside {
			steps[i].Position = s.view[b.calls[k]].Position
		}
		return
	}
	for _, i := range slices.Concat(b.prefix, b.reasoning) {
		put(i, RepairExclude)
	}
}

// Answered returns, for each step, the ids of the results that answer calls of its message, which
// Resolve and Apply take: of a batch with the same id in several messages, where others have moved one
// there, the last call has the result. message returns the content by seq.
func Answered(steps []RepairStep, message func(Seq) *Message) [][]string {
	out := make([][]string, len(steps))
	left := map[Seq][]string{} // by the first result of a batch
	for i, d := range slices.Backward(steps) {
		if d.Action != RepairKeepAnswered {
			continue
		}
		ids, seen := left[d.Results[0]]
		if !seen {
			for _, q := range d.Results {
				ids = append(ids, message(q).ToolCallID)
			}
		}
		for _, c := range answeredCalls(message(d.Seq), ids) {
			out[i] = append(out[i], c.ID)
			k := slices.Index(ids, c.ID)
			ids = slices.Delete(ids, k, k+1)
		}
		left[d.Results[0]] = ids
	}
	return out
}

// Resolve returns the step that is to be carried out on m, whose content shows which calls of a
// batch are answered, and whether there is any: a message stays as it is if all its calls are
// answered, and loses them, or goes if it says nothing else, if none is. answered is that of
// Answered.
func (d RepairStep) Resolve(m *Message, answered []string) (RepairStep, bool) {
	if d.Action != RepairKeepAnswered {
		return d, true
	}
	switch d.keep = len(answeredCalls(m, answered)); {
	case d.keep == len(m.ToolCalls):
		return d, false
	case d.keep == 0 && m.Flags()&(HasText|HasMedia) != 0:
		d.Action, d.Position = RepairDropCalls, max(d.Position, d.end) // not between others of the batch
	case d.keep == 0:
		d.Action = RepairExclude
	}
	return d, true
}

// answeredCalls returns the calls of a message with these ids; each id keeps one.
func answeredCalls(m *Message, ids []string) (kept []ToolCall) {
	left := slices.Clone(ids)
	for _, c := range m.ToolCalls {
		if i := slices.Index(left, c.ID); i >= 0 {
			left = slices.Delete(left, i, i+1)
			kept = append(kept, c)
		}
	}
	return kept
}

// Meta returns the metadata of the replacement for the message described by m, with number
// seq and without a token count. It returns the zero Meta for RepairExclude and for a call
// message of a batch that keeps no call.
func (d RepairStep) Meta(m Meta, seq Seq) Meta {
	if d.Action == RepairExclude || d.Action == RepairKeepAnswered && d.keep == 0 {
		return Meta{}
	}
	m.Seq, m.Position, m.Kind, m.Tokens = seq, d.Position, KindReplacement, 0
	m.Flags &^= Estimated | Moved
	if m.Calls == 0 || d.Action == RepairDropCalls {
		m.Flags &^= Parallel
	}
	switch d.Action {
	case RepairTextify:
		m.Role, m.Flags, m.Calls = RoleAssistant, HasText, 0
	case RepairDropCalls:
		m.Calls = 0
	case RepairKeepAnswered:
		m.Calls = d.keep
	case RepairExclude, RepairMove:
	}
	return m
}

// Apply returns the replacement for m. answered is that of Answered, used only by
// RepairKeepAnswered; each id keeps one call. The replacement has no ID. For
// RepairExclude Apply returns the zero Message.
func (d RepairStep) Apply(m Message, answered []string) Message {
	m.ID = ""
	switch d.Action {
	case RepairExclude:
		return Message{}
	case RepairTextify:
		return textify(m)
	case RepairDropCalls:
		m.ToolCalls, m.Legacy = nil, false
	case RepairKeepAnswered:
		m.ToolCalls = answeredCalls(&m, answered)
	case RepairMove: // only the position changes
	}
	return m
}

// textify returns an assistant message with the text of a result without its call.
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

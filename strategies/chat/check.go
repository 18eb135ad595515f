package chat

import (
	"cmp"
	"fmt"
	"slices"
)

// ViolationCode identifies the kind of a violation. Codes are stable and shown to users.
type ViolationCode string

// The violations of a view.
const (
	// ViolationOrphanResult is a tool message that answers no call of its group: it is not
	// Paired, its call is not in the view, or all calls there are answered.
	ViolationOrphanResult ViolationCode = "orphan_result"
	// ViolationUnansweredCall is a call message of a batch with fewer results than calls that
	// anything but its own results and reasoning follows. At the end of the view the batch is
	// open, which is valid: its results may still come.
	ViolationUnansweredCall ViolationCode = "unanswered_call"
	// ViolationSplitGroup is a result or reasoning separated from its call by a summary or
	// replacement.
	ViolationSplitGroup ViolationCode = "split_group"
	// ViolationSummarySplitsGroup is the summary or replacement that separates them.
	ViolationSummarySplitsGroup ViolationCode = "summary_splits_group"
	// ViolationBeforeSystem is a message before a leading system message.
	ViolationBeforeSystem ViolationCode = "before_system"
	// ViolationForeignRole is a message with a role that no provider takes, from a version
	// that stored it (see Message.Validate).
	ViolationForeignRole ViolationCode = "foreign_role"
	// ViolationStaleReasoning is signed or encrypted reasoning that was written on another
	// view than the one before it (see CheckReasoning).
	ViolationStaleReasoning ViolationCode = "stale_reasoning"
)

// Violation is a violation at the entry of the view with that Index.
type Violation struct {
	Index int
	Seq   Seq
	Code  ViolationCode
}

// String returns the code and the seq.
func (f Violation) String() string { return fmt.Sprintf("%s at seq %d", f.Code, f.Seq) }

// Check returns all violations of a view, in view order, and nil for a view that a strict
// provider accepts. It takes metadata in view order (see Less) and makes one linear pass. A
// replacement counts as its original, by its role, calls and Paired flag.
//
// A leading system message is one of the system messages at the start of the log: a source
// whose position continues the sequence from 1 through system messages and their
// replacements. Nothing else may precede these; later system messages may stand anywhere.
//
// A result belongs to the nearest call before it if only members of one group stand between
// them. If summaries or replacements do, it still belongs to the call as long as the
// positions of the members are consecutive, and the group is split; otherwise its call is
// missing.
//
// Check cannot detect, because the metadata of the view does not show it:
//   - that a result answers this call rather than one excluded between them
//     (call A, its second result and call B excluded, B's result included);
//   - that reasoning is missing from a group, or remained when its group was excluded;
//   - that signed reasoning was written on another view (see CheckReasoning);
//   - invalid ids and content: two results with one id, an empty message;
//   - whether the last user message and pinned messages are in the view.
//
// A plan that excludes whole groups causes neither of the first two. Roles need not
// alternate: writers of formats that require it merge messages.
func Check(view []Meta) []Violation {
	if plain(view) {
		return nil
	}
	return scanView(view).violations
}

// plain reports whether the view is of the common form that cannot have violations: every
// batch but the last is answered at once and in full, and summaries and replacements are
// separate from groups and leading system messages. It avoids the allocations of a scan.
func plain(view []Meta) bool {
	left := 0 // results that the last call still waits for
	var results, written, spoken, thinking bool
	for i := range view {
		m := &view[i]
		if m.Role == RoleTool {
			if left == 0 || m.Flags&Paired == 0 {
				return false
			}
			left--
			results, thinking = true, false
			continue
		}
		source, reasoning := m.Kind != KindSummary && m.Kind != KindReplacement, m.reasoningOnly()
		parallel := isCall(m) && m.Flags&Parallel != 0
		switch {
		case left > 0 && (!reasoning && !parallel || results),
			!source && thinking,
			!m.Role.Known(),
			m.Role == RoleSystem && written && !spoken:
			return false
		case isCall(m):
			left, results = left+m.Calls, false
		}
		thinking = reasoning
		written = written || !source
		spoken = spoken || source && m.Role != RoleSystem
	}
	return true
}

// scan is the pass over a view that Check and Repair share.
type scan struct {
	view       []Meta
	violations []Violation
	groups     []*callGroup
	cur        *callGroup // the call group that can still take members

	// prefix is reasoning that may belong to the next call, prefixPending the additions
	// among it.
	prefix, prefixPending []int

	// system is the position of the next leading system message, 0 after the last one;
	// before lists the messages in front of it, and systemEnd is the position of the last
	// one found.
	system    Seq
	before    []int
	systemEnd Seq
}

// callGroup is the group of a batch of calls in the view, as indexes.
type callGroup struct {
	calls, prefix, reasoning, results []int
	need                              int // the calls of the batch
	// inside lists messages between the call and its last member that belong after the
	// group, before those among the reasoning that belong in front of it.
	inside, before []int
	// pending lists additions and orphaned results after the last member; they are inside
	// if another member follows.
	pending []int
	last    int // the last member
	reach   Seq // position up to which members and results are consecutive
	tools   bool
	// interrupted reports whether pending contains an addition.
	interrupted bool
	// unanswered reports that the group lacks results and something follows it, open that
	// nothing does.
	unanswered, open bool
}

// first returns the first member of the group.
func (b *callGroup) first() int { return slices.Concat(b.prefix, b.calls)[0] }

func scanView(view []Meta) *scan {
	s := &scan{view: view, system: 1}
	for i, m := range view {
		s.leading(i, m)
		if !m.Role.Known() {
			s.report(ViolationForeignRole, i)
		}
		switch {
		case m.Role == RoleTool:
			s.result(i, m)
		case isCall(&m):
			s.call(i, m)
		case m.ReasoningOnly():
			s.reasoning(i, m)
		default:
			s.other(i, m)
		}
	}
	if b := s.cur; b != nil && !b.interrupted {
		b.open = len(b.results) < b.need
		s.cur = nil
	}
	s.close()
	slices.SortStableFunc(s.violations, func(a, b Violation) int { return cmp.Compare(a.Index, b.Index) })
	return s
}

func (s *scan) report(code ViolationCode, indexes ...int) {
	for _, i := range indexes {
		s.violations = append(s.violations, Violation{Index: i, Seq: s.view[i].Seq, Code: code})
	}
}

func (s *scan) leading(i int, m Meta) {
	switch {
	case s.system == 0:
	case m.Role == RoleSystem && m.Kind == KindReplacement && m.Position == s.system:
		s.system++ // stands for one, but has to stand first no more than others
	case m.Role == RoleSystem && m.Kind == KindSource && m.Position == s.system:
		s.report(ViolationBeforeSystem, s.before...)
		s.before = nil
		s.systemEnd = m.Position
		s.system++
	case m.Position > s.system, m.Kind == KindSource:
		s.system = 0
	default:
		s.before = append(s.before, i)
	}
}

func (s *scan) result(i int, m Meta) {
	s.prefix, s.prefixPending = nil, nil
	b := s.cur
	if b == nil {
		s.report(ViolationOrphanResult, i)
		return
	}
	b.tools = true
	if m.Has(Paired) && len(b.results) < b.need && s.join(i, m) {
		b.results = append(b.results, i)
		return
	}
	s.report(ViolationOrphanResult, i)
	if b.interrupted && m.Position != b.reach+1 {
		s.close() // an addition replaced the end of the group
		return
	}
	b.pending = append(b.pending, i)
	b.reach = m.Position
}

func (s *scan) reasoning(i int, m Meta) {
	if b := s.cur; b != nil && !b.tools && s.join(i, m) {
		b.reasoning = append(b.reasoning, i)
		return
	}
	s.close()
	if n := len(s.prefix); n > 0 && len(s.prefixPending) > 0 && m.Position != s.view[s.prefix[n-1]].Position+1 {
		s.prefix, s.prefixPending = nil, nil
	}
	s.prefix = append(s.prefix, i)
}

// join adds the message at i to the current group if it belongs to it; pending messages are
// inside the group then.
func (s *scan) join(i int, m Meta) bool {
	b := s.cur
	if b.interrupted {
		if m.Position != b.reach+1 {
			return false
		}
		s.report(ViolationSplitGroup, i)
		for _, k := range b.pending {
			if s.view[k].Role != RoleTool {
				s.report(ViolationSummarySplitsGroup, k)
			}
		}
	}
	b.inside = append(b.inside, b.pending...)
	b.pending, b.interrupted = nil, false
	b.last, b.reach = i, m.Position
	return true
}

func (s *scan) call(i int, m Meta) {
	if b := s.cur; b != nil && m.Has(Parallel) && !b.tools && s.join(i, m) {
		b.calls, b.need = append(b.calls, i), b.need+m.Calls
		return
	}
	s.close()
	b := &callGroup{calls: []int{i}, need: m.Calls, last: i, reach: m.Position, prefix: s.prefix}
	if n := len(s.prefixPending); n > 0 {
		lastIntruder := s.prefixPending[n-1]
		split, _ := slices.BinarySearch(s.prefix, lastIntruder)
		if m.Position == s.view[s.prefix[len(s.prefix)-1]].Position+1 {
			s.report(ViolationSplitGroup, s.prefix[:split]...)
			s.report(ViolationSummarySplitsGroup, s.prefixPending...)
			b.before = s.prefixPending
		} else {
			b.prefix = s.prefix[split:]
		}
	}
	s.prefix, s.prefixPending = nil, nil
	s.cur = b
	s.groups = append(s.groups, b)
}

// other handles a message outside call groups. A source ends the current group; an addition
// does not, since it may have been placed there.
func (s *scan) other(i int, m Meta) {
	switch {
	case m.Kind == KindSource:
		s.prefix, s.prefixPending = nil, nil
		s.close()
	case s.cur != nil:
		s.cur.pending = append(s.cur.pending, i)
		s.cur.interrupted = true
	case len(s.prefix) > 0:
		s.prefixPending = append(s.prefixPending, i)
	}
}

// close ends the current group, which something follows.
func (s *scan) close() {
	b := s.cur
	s.cur = nil
	if b != nil && len(b.results) < b.need {
		b.unanswered = true
		s.report(ViolationUnansweredCall, b.calls...)
	}
}

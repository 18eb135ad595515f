package chat

import (
	"cmp"
	"fmt"
	"slices"
)

// FaultCode says what is wrong with a message of a view; it is stable and shown
// to users.
type ViolationCode string

// The faults of a view.
const (
	// FaultOrphanResult: a tool message that answers no call of the group it
	// stands in: it never did (not Paired), its call is not in the view, or the
	// call there has been answered in full.
	ViolationOrphanResult ViolationCode = "orphan_result"
	// FaultUnansweredCall: a call message with fewer results than calls, while a
	// user message follows somewhere in the view. Without one the call is open,
	// which is no fault.
	ViolationUnansweredCall ViolationCode = "unanswered_call"
	// FaultSplitGroup: a result that does not stand with its call, or reasoning
	// that does not, because a summary or stand-in stands between.
	ViolationSplitGroup ViolationCode = "split_group"
	// FaultSummarySplitsGroup: the summary or stand-in that stands between.
	ViolationSummarySplitsGroup ViolationCode = "summary_splits_group"
	// FaultBeforeSystem: a message before a leading system message.
	ViolationBeforeSystem ViolationCode = "before_system"
)

// Fault is one thing wrong with a view, at the entry with that Index.
type Violation struct {
	Index int
	Seq   Seq
	Code  ViolationCode
}

// String names the code and the message.
func (f Violation) String() string { return fmt.Sprintf("%s at seq %d", f.Code, f.Seq) }

// Check returns every fault of a view, in view order, and nil for a view that a
// strict provider accepts. It takes metadata in view order (see Less) and one
// linear pass. A stand-in counts as the message it stands for, by its role, its
// calls and its Paired flag.
//
// A leading system message is a source whose position counts on from 1 through
// system messages alone (stand-ins for them included): the log began with it. Only
// these must not be preceded by anything else; a system message that came later is
// fine where it stands.
//
// A result belongs to the nearest call before it in the view if only members of
// one group stand between. If summaries or stand-ins do, it still belongs there
// as long as the positions of the members are consecutive, and the group is
// split; otherwise the call it belonged to has gone.
//
// What Check cannot see, because the view alone does not tell:
//   - that a result answers this call and not one that was excluded between them
//     (call A, its second result and call B gone, B's result left: the numbers fit);
//   - that reasoning is missing from a group, or that reasoning was left behind
//     when its group went: it looks like reasoning that never had one;
//   - ids and content: two results of one id, an empty message, a role the
//     provider does not know;
//   - whether the last user message and pinned messages are in the view.
//
// A plan made of whole groups breaks none of the first two.
func Check(view []Meta) []Violation {
	if plain(view) {
		return nil
	}
	return scanView(view).violations
}

// plain reports whether the view is of the common kind in which nothing can be
// wrong: every call but the last is answered at once and in full, and summaries
// and stand-ins stand apart from groups and from the leading system messages. It
// spares most views the scan, which allocates.
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
		switch {
		case left > 0 && (!reasoning || results),
			!source && thinking,
			m.Role == RoleSystem && written && !spoken:
			return false
		case isCall(m):
			left, results = m.Calls, false
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
	cur        *callGroup   // the call group that can still take members
	open       []*callGroup // groups that lack results, with no user message behind them yet

	// Reasoning that may turn out to belong to the next call, and the additions
	// that stand among it.
	prefix, prefixPending []int

	// The leading system messages: the position the next one has, 0 when there
	// can be none; what stands before it; and the position of the last one.
	system    Seq
	before    []int
	systemEnd Seq
}

// batch is a call group of the view, by indexes.
type callGroup struct {
	call                       int
	prefix, reasoning, results []int
	// inside: what stands between the call and its last member and belongs
	// behind; before: what stands among the reasoning and belongs in front of it.
	inside, before []int
	// pending: what stands behind the last member, and is inside if another one
	// comes: additions and orphaned results.
	pending []int
	last    int // the last member
	reach   Seq // position up to which members and results are consecutive
	tools   bool
	// interrupted: an addition stands in pending.
	interrupted bool
	user        bool // a user message stands in pending or inside
	unanswered  bool
}

func scanView(view []Meta) *scan {
	s := &scan{view: view, system: 1}
	for i, m := range view {
		s.leading(i, m)
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
	if m.Has(Paired) && len(b.results) < s.view[b.call].Calls && s.join(i, m) {
		b.results = append(b.results, i)
		return
	}
	s.report(ViolationOrphanResult, i)
	if b.interrupted && m.Position != b.reach+1 {
		s.close() // an addition stands in the place of the end of the group
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

// join makes the message at i a member of the current group, if it is one: what
// stands between it and the last member is inside the group then.
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
	s.close()
	b := &callGroup{call: i, last: i, reach: m.Position, prefix: s.prefix}
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

// other takes a message that belongs to no call group: it ends the current one,
// unless it is an addition, which may have been put there.
func (s *scan) other(i int, m Meta) {
	user := m.Role == RoleUser
	switch {
	case m.Kind == KindSource:
		s.prefix, s.prefixPending = nil, nil
		s.close()
	case s.cur != nil:
		s.cur.pending = append(s.cur.pending, i)
		s.cur.interrupted = true
		s.cur.user = s.cur.user || user
	case len(s.prefix) > 0:
		s.prefixPending = append(s.prefixPending, i)
	}
	if user {
		for _, b := range s.open {
			s.unanswered(b)
		}
		s.open = nil
	}
}

func (s *scan) close() {
	b := s.cur
	s.cur = nil
	switch {
	case b == nil || len(b.results) >= s.view[b.call].Calls:
	case b.user:
		s.unanswered(b)
	default:
		s.open = append(s.open, b)
	}
}

func (s *scan) unanswered(b *callGroup) {
	b.unanswered = true
	s.report(ViolationUnansweredCall, b.call)
}

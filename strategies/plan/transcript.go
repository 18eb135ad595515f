package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Entry is one message of a transcript.
type Entry struct {
	chat.Meta
	// Included reports whether the message is in the view.
	Included bool
	// Pinned messages stay in the view, verbatim.
	Pinned bool
	// By is the seq of the addition of an earlier step of the run that took the place of this
	// message in the view, 0 for none.
	By chat.Seq
	// Message is the content, nil unless it was loaded (see Reader).
	Message *chat.Message
}

// Transcript holds the messages of a session in view order. In an automatic run it is the
// view alone, with every entry included; in an operator's run it is the whole log. Entries
// that are not Included are not in the view: strategies neither count nor exclude them.
//
// It is not safe for concurrent use. Strategies must not change it.
type Transcript struct {
	// Entries are in the order of chat.Less.
	Entries []Entry
	// Counter counts the messages that the strategy writes. If it is nil, the token counts
	// of the plan's additions are used.
	Counter Counter
	// Originals reads what the summaries and replacements of earlier runs stand for; nil if it
	// is not known.
	Originals Originals
	// Unmarked reports that the messages come from a file or from a program's memory, so that
	// summaries of earlier runs among them may not be marked as such.
	Unmarked bool
	// Ended reports that the log goes on after its last calls: those at the end of the view
	// get no results any more.
	Ended bool

	groups []chat.Group
	calls  []int32 // by group, see callOf
}

// NewTranscript returns a transcript with precomputed groups, which must be those of
// chat.Groups.
func NewTranscript(entries []Entry, counter Counter, groups []chat.Group) *Transcript {
	return &Transcript{Entries: entries, Counter: counter, groups: groups}
}

// ErrNotLoaded is returned for a message whose content was not requested.
var ErrNotLoaded = errors.New("content is not loaded")

// Groups returns the atomic groups of all entries, included or not. They are computed once.
func (t *Transcript) Groups() []chat.Group {
	if t.groups == nil && len(t.Entries) > 0 {
		t.groups = chat.GroupsOf(len(t.Entries), func(i int) *chat.Meta { return &t.Entries[i].Meta })
	}
	return t.groups
}

// ViewGroups returns the groups of the entries in the view alone, and the index of the
// entry for each index in them.
func (t *Transcript) ViewGroups() (groups []chat.Group, at []int32) {
	var g chat.Grouper
	at = make([]int32, 0, len(t.Entries))
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Included {
			g.Add(&e.Meta)
			at = append(at, int32(i))
		}
	}
	return g.Groups(), at
}

// PassedPosition returns the position of the last message that ends the waiting for results:
// only calls after it can still get one. An included summary precedes the message at its
// position.
func PassedPosition(entries []Entry) chat.Seq {
	passed := chat.Seq(0)
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Role == chat.RoleTool || MakesCalls(e) || e.HoldsOnlyReasoning():
		case e.Kind == chat.KindSource, e.Kind == chat.KindReplacement && e.Included:
			passed = max(passed, e.Position)
		case e.Kind == chat.KindSummary && (e.Included || e.Has(chat.Moved)):
			passed = max(passed, e.Position-1)
		}
	}
	return passed
}

// GroupTotals counts the messages of group i in the view and their tokens.
func (t *Transcript) GroupTotals(i int) (messages int, tokens chat.Tokens) {
	g := t.Groups()[i]
	return included(t.Entries[g.Start:g.End])
}

// GroupIncluded reports whether any message of group i is in the view.
func (t *Transcript) GroupIncluded(i int) bool {
	n, _ := t.GroupTotals(i)
	return n > 0
}

// GroupPinned reports whether any message of group i in the view is pinned, so that the
// group must stay. Reasoning stays with its call, even if a message that is ordered like a
// summary stands between the two.
func (t *Transcript) GroupPinned(i int) bool {
	g := t.Groups()[i]
	if slices.ContainsFunc(t.Entries[g.Start:g.End], func(e Entry) bool { return e.Pinned && e.Included }) {
		return true
	}
	k := t.callOf(i)
	return k >= 0 && t.GroupPinned(k)
}

// callOf returns the group of the call that group i is the reasoning of, if only messages that
// are ordered like summaries stand between the two, or -1.
func (t *Transcript) callOf(i int) int {
	if t.calls == nil {
		groups, call := t.Groups(), int32(-1)
		t.calls = make([]int32, len(groups))
		for k, g := range slices.Backward(groups) {
			t.calls[k] = -1
			switch e := &t.Entries[g.Start]; {
			case e.Kind == chat.KindSummary:
			case g.Call >= 0:
				call = int32(k)
			case e.ReasoningOnly():
				t.calls[k] = call
			default:
				call = -1
			}
		}
	}
	return int(t.calls[i])
}

// MinimumRetained returns the group that is kept whatever the budget: the last included
// group other than a system message, else the last included group, else -1.
func (t *Transcript) MinimumRetained() int {
	groups, last := t.Groups(), -1
	for i, g := range slices.Backward(groups) {
		if !t.GroupIncluded(i) {
			continue
		}
		if g.Kind != chat.GroupSystem {
			return i
		}
		if last < 0 {
			last = i
		}
	}
	return last
}

// DropOldest adds the oldest groups for which may returns true to out until a view of size
// tokens is within budget, and returns the remaining size. Pinned groups and the newest one
// (see MinimumRetained) stay.
func (t *Transcript) DropOldest(out *SeqSet, size, budget chat.Tokens, may func(i int) bool) chat.Tokens {
	retained := t.MinimumRetained()
	for i := range t.Groups() {
		if size <= budget {
			break
		}
		if i == retained || !may(i) || t.GroupPinned(i) {
			continue
		}
		_, freed := t.GroupTotals(i)
		size -= freed
		t.GroupSeqs(out, i)
	}
	return size
}

// Included counts the messages in the view and their tokens.
func (t *Transcript) Included() (messages int, tokens chat.Tokens) { return included(t.Entries) }

func included(entries []Entry) (messages int, tokens chat.Tokens) {
	for i := range entries {
		if entries[i].Included {
			messages++
			tokens += entries[i].Tokens
		}
	}
	return messages, tokens
}

// Totals counts the transcript.
func (t *Transcript) Totals() Totals {
	n := Totals{Groups: len(t.Groups()), Messages: len(t.Entries)}
	for i := range t.groups {
		if t.GroupIncluded(i) {
			n.IncludedGroups++
		}
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		n.ToolCalls += e.Calls
		n.Tokens += e.Tokens
		if e.Included {
			n.IncludedMessages++
			n.IncludedToolCalls += e.Calls
			n.IncludedTokens += e.Tokens
		}
	}
	return n
}

// Read returns the content of entry i. The error wraps ErrNotLoaded if Reads did not name
// the entry.
func (t *Transcript) Read(i int) (*chat.Message, error) {
	if m := t.Entries[i].Message; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("message %d: %w", t.Entries[i].Seq, ErrNotLoaded)
}

// EachIncluded calls f with the index of every message of group i in the view.
func (t *Transcript) EachIncluded(i int, f func(e int)) {
	g := t.Groups()[i]
	for e := g.Start; e < g.End; e++ {
		if t.Entries[e].Included {
			f(e)
		}
	}
}

// ReadGroup returns the content of the messages of group i in the view.
func (t *Transcript) ReadGroup(i int) (messages []*chat.Message, err error) {
	t.EachIncluded(i, func(e int) {
		m, failed := t.Read(e)
		messages, err = append(messages, m), cmp.Or(err, failed)
	})
	return messages, err
}

// GroupSeqs adds the messages of group i to s.
func (t *Transcript) GroupSeqs(s *SeqSet, i int) {
	g := t.Groups()[i]
	for e := g.Start; e < g.End; e++ {
		s.Add(t.Entries[e].Seq)
	}
}

// SeqSet collects seqs that arrive mostly in order.
type SeqSet struct {
	Sorted chat.Ranges
	late   []chat.Seq
}

// Add adds q to the set.
func (s *SeqSet) Add(q chat.Seq) {
	n := len(s.Sorted)
	switch {
	case n == 0 || q > s.Sorted[n-1].Hi:
		s.Sorted = append(s.Sorted, chat.Range{Lo: q, Hi: q + 1})
	case q == s.Sorted[n-1].Hi:
		s.Sorted[n-1].Hi++
	default:
		s.late = append(s.late, q)
	}
}

// Ranges returns the set.
func (s *SeqSet) Ranges() chat.Ranges {
	if len(s.late) == 0 {
		return s.Sorted
	}
	return s.Sorted.Union(chat.RangesOf(s.late...))
}

// Exclude returns a plan that excludes the set, or the empty plan.
func (s *SeqSet) Exclude(reason string) chat.Plan {
	if len(s.Sorted) == 0 {
		return chat.Plan{}
	}
	return chat.Plan{Exclude: []chat.Exclusion{{Reason: reason, Seqs: s.Ranges()}}}
}

// Count sets the token counts of a message's metadata.
func Count(c Counter, meta *chat.Meta, m *chat.Message) {
	meta.Tokens, meta.ReasoningTokens = c.Message(m), 0
	if meta.Signed() {
		rest := m.WithoutReasoning()
		meta.ReasoningTokens = max(0, meta.Tokens-c.Message(&rest))
	}
}

// IsSource reports whether messages of kind k were written by the application. Strategies
// use FromApplication, which also holds for messages that the application moved.
func IsSource(k chat.Kind) bool { return k != chat.KindSummary && k != chat.KindReplacement }

// FromApplication reports whether the application wrote the message, even if it was moved.
func FromApplication(m chat.Meta) bool { return IsSource(m.Kind) || m.Has(chat.Moved) }

// MakesCalls reports whether the entry is an assistant message with tool calls.
func MakesCalls(e *Entry) bool { return e.Role == chat.RoleAssistant && e.Calls > 0 }

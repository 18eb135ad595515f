package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Draft is a working copy of a transcript to which plans are applied before they are
// combined into one. It never changes its input and is not safe for concurrent use.
//
// Additions get provisional seqs after the last one of the transcript, so that later plans
// can name them. The id of an entry is its index: the n entries of the input come first, in
// their order, then the additions.
type Draft struct {
	input   *plan.Transcript
	n       int32
	entries []plan.Entry
	marks   []mark
	adds    []chat.Addition
	first   chat.Seq // of the additions
	// sources and others are the ids of the input's entries by seq.
	sources, others []int32

	order   []int32 // ids in view order; nil if entries is in that order
	view    *plan.Transcript
	changes int
	// counted are the totals after countedAt changes.
	counted   plan.Totals
	countedAt int

	rejected int
	// noSummary is the error of the last strategy that requested a summary and got none.
	noSummary error
	// unchecked lists the replacements whose tool calls were not compared with those of
	// their originals, because the content was not loaded.
	unchecked []unchecked
	repairs   []Repair
	// instructions are the groups that PinPaths would pin if they were smaller.
	instructions []instructions

	// places and groups describe the log (see arrange). open is the first place of the first
	// incomplete call group, or -1 (see chat.OpenFrom).
	places []place
	groups []group
	open   int

	// bound reports that the model binds signed reasoning to the messages before it. frozen is
	// the position up to which an open tool loop then holds the view as it is, 0 for none, and
	// stale are the messages whose reasoning leaves the view.
	bound  bool
	frozen chat.Seq
	stale  chat.Ranges
}

// mark is the draft's state of an entry.
type mark struct {
	reason string
	by     int32 // id of the addition that covers the entry, or -1
	place  int32 // -1 for summaries and moved messages
	// earlier is the previous addition for the place of this one, or -1.
	earlier int32
}

// unchecked names a replacement and its original.
type unchecked struct{ id, of int32 }

// ErrTranscript is returned for a transcript that is not in view order, or in which the
// position of a source message differs from its seq.
var ErrTranscript = errors.New("transcript is out of order")

// NewDraft returns a draft of t without changes.
func NewDraft(t *plan.Transcript) (*Draft, error) {
	n := len(t.Entries)
	d := &Draft{
		input: t, n: int32(n), first: 1, countedAt: -1,
		entries: append(make([]plan.Entry, 0, n+4), t.Entries...),
		marks:   make([]mark, n, n+4),
		sources: make([]int32, 0, n),
	}
	for i := range d.entries {
		e := &d.entries[i]
		if i > 0 && !chat.Less(d.entries[i-1].Meta, e.Meta) || plan.IsSource(e.Kind) && e.Position != e.Seq {
			return nil, fmt.Errorf("message %d: %w", e.Seq, ErrTranscript)
		}
		d.marks[i].by = -1
		d.first = max(d.first, e.Seq+1)
		if plan.IsSource(e.Kind) {
			d.sources = append(d.sources, int32(i))
		} else {
			d.others = append(d.others, int32(i))
		}
	}
	slices.SortFunc(d.others, func(a, b int32) int { return int(d.entries[a].Seq - d.entries[b].Seq) })
	d.view = plan.NewTranscript(d.entries, t.Counter, t.Groups())
	d.view.Originals, d.view.Unmarked = t.Originals, t.Unmarked
	return d, nil
}

// Transcript returns the current state of the draft, additions included. It is valid until
// the draft changes.
func (d *Draft) Transcript() *plan.Transcript {
	if d.view == nil {
		d.order = make([]int32, 0, len(d.entries))
		written := make([]int32, len(d.adds))
		for k := range written {
			written[k] = d.n + int32(k)
		}
		slices.SortFunc(written, func(a, b int32) int { return chat.Compare(d.entries[a].Meta, d.entries[b].Meta) })
		for id := range d.n {
			for len(written) > 0 && chat.Less(d.entries[written[0]].Meta, d.entries[id].Meta) {
				d.order, written = append(d.order, written[0]), written[1:]
			}
			d.order = append(d.order, id)
		}
		d.order = append(d.order, written...)
		d.view = &plan.Transcript{
			Entries: make([]plan.Entry, len(d.entries)), Counter: d.input.Counter, Originals: d.input.Originals, Unmarked: d.input.Unmarked,
		}
	}
	if d.order == nil {
		d.view.Entries = d.entries
	}
	for i, id := range d.order {
		d.view.Entries[i] = d.entries[id]
	}
	return d.view
}

// Entries returns the entries of the input in their order, followed by those of the
// additions. The slice is shared.
func (d *Draft) Entries() []plan.Entry { return d.entries }

// Additions returns all additions, including those that are excluded again.
func (d *Draft) Additions() []chat.Addition { return d.adds }

// Rejected returns the number of invalid additions (see Apply).
func (d *Draft) Rejected() int { return d.rejected }

// NoSummary returns the error of the last strategy that requested a summary and got none.
func (d *Draft) NoSummary() error { return d.noSummary }

// Reason returns the reason for which the message with seq q was excluded or replaced, or
// "".
func (d *Draft) Reason(q chat.Seq) string { return d.marks[d.id(q)].reason }

// Within reports whether the view has at most budget tokens.
func (d *Draft) Within(budget chat.Tokens) bool {
	_, n := (&plan.Transcript{Entries: d.entries}).Included()
	return n <= budget
}

// totals counts the draft.
func (d *Draft) totals() plan.Totals {
	if d.countedAt != d.changes {
		d.counted, d.countedAt = d.Transcript().Totals(), d.changes
	}
	return d.counted
}

// viewOf returns the metadata of the messages in the view, in order, with room for one more.
func viewOf(t *plan.Transcript) []chat.Meta {
	n, _ := t.Included()
	out := make([]chat.Meta, 0, n+1)
	for i := range t.Entries {
		if t.Entries[i].Included {
			out = append(out, t.Entries[i].Meta)
		}
	}
	return out
}

// next returns the seq of the next addition.
func (d *Draft) next() chat.Seq { return d.first + chat.Seq(len(d.adds)) }

// wasIncluded reports whether an entry was in the view of the input.
func (d *Draft) wasIncluded(id int32) bool { return id < d.n && d.input.Entries[id].Included }

// ids appends the ids of the entries with these seqs to out.
func (d *Draft) ids(out []int32, r chat.Ranges) []int32 {
	for _, x := range r {
		for _, list := range [...][]int32{d.sources, d.others} {
			i := sort.Search(len(list), func(i int) bool { return d.entries[list[i]].Seq >= x.Lo })
			for ; i < len(list) && d.entries[list[i]].Seq < x.Hi; i++ {
				out = append(out, list[i])
			}
		}
		for q := max(x.Lo, d.first); q < min(x.Hi, d.next()); q++ {
			out = append(out, d.n+int32(q-d.first))
		}
	}
	return out
}

// idsOf returns the ids of the entries with these seqs.
func (d *Draft) idsOf(seqs []chat.Seq) []int32 { return d.ids(nil, chat.RangesOf(seqs...)) }

// id returns the id of the message with seq q, which must exist.
func (d *Draft) id(q chat.Seq) int32 {
	var one [1]int32
	return d.ids(one[:0], chat.Ranges{{Lo: q, Hi: q + 1}})[0]
}

// include puts an entry back into the view and clears its mark.
func (d *Draft) include(id int32) {
	if e := &d.entries[id]; !e.Included {
		e.Included, e.By = true, 0
		d.marks[id].reason, d.marks[id].by = "", -1
		d.changes++
	}
}

// exclude takes an entry out of the view and marks it with the reason and the addition that
// covers it, -1 for none.
func (d *Draft) exclude(id int32, reason string, by int32) {
	if d.entries[id].Included {
		d.entries[id].Included = false
		d.changes++
	}
	d.marks[id].reason, d.marks[id].by = reason, by
}

// pin pins messages for the rest of the run.
func (d *Draft) pin(seqs []chat.Seq) {
	for _, id := range d.idsOf(seqs) {
		d.entries[id].Pinned = true
	}
}

// load reads the content of the messages that have none and returns their ids.
func (d *Draft) load(ctx context.Context, seqs []chat.Seq, load plan.Loader) ([]int32, error) {
	var missing []int32
	var missingSeqs []chat.Seq
	for _, id := range d.idsOf(seqs) {
		if d.entries[id].Message == nil {
			missing = append(missing, id)
			missingSeqs = append(missingSeqs, d.entries[id].Seq)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	if load == nil {
		return nil, fmt.Errorf("message %d: %w", missingSeqs[0], plan.ErrNotLoaded)
	}
	got, err := load(ctx, missingSeqs)
	if err != nil {
		return nil, err
	}
	for i, id := range missing {
		m := got[missingSeqs[i]]
		if m == nil {
			return nil, fmt.Errorf("message %d: %w", missingSeqs[i], plan.ErrNotLoaded)
		}
		d.entries[id].Message = m
	}
	return missing, nil
}

// drop releases loaded content.
func (d *Draft) drop(ids []int32) {
	for _, id := range ids {
		d.entries[id].Message = nil
	}
}

// Apply applies a plan to the draft. reason is the reason of exclusions and additions that
// give none; excluding a message again sets its reason. Unknown seqs are ignored.
//
// Invalid additions are counted in Rejected and otherwise ignored: a summary that is a tool
// result or makes calls, a replacement with another role or other calls than its original,
// an addition that covers nothing in the view. As an exception, a summary may cover the
// same single message as the addition before it. It accompanies that addition within the
// run, but covers nothing on its own, so that the guard drops it and the final plan does
// not contain it.
func (d *Draft) Apply(p chat.Plan, reason string) {
	if p.Empty() {
		return
	}
	var found []int32
	for _, x := range p.Exclude {
		found = d.ids(found[:0], x.Seqs)
		for _, id := range found {
			d.exclude(id, cmp.Or(x.Reason, reason), d.marks[id].by)
		}
	}
	found = d.ids(found[:0], p.Include)
	for _, id := range found {
		d.include(id)
	}
	d.entries = slices.Grow(d.entries, len(p.Additions))
	d.marks = slices.Grow(d.marks, len(p.Additions))
	d.adds = slices.Grow(d.adds, len(p.Additions))
	before := int32(-1)
	for _, a := range p.Additions {
		a.Reason = cmp.Or(a.Reason, reason)
		found = d.ids(found[:0], a.Covers)
		accompanies := before >= 0 && len(found) == 1 && a.Kind == chat.KindSummary && d.marks[found[0]].by == before
		switch {
		case !d.validate(&a, found, accompanies):
			d.rejected++
		case accompanies:
			d.append(a)
		default:
			before = d.write(a, found)
		}
	}
}

// validate reports whether an addition can be part of a view, and sets its kind, position
// and flags. Unless live is set, it must cover a message in the view.
func (d *Draft) validate(a *chat.Addition, covers []int32, live bool) bool {
	for _, id := range covers {
		live = live || d.entries[id].Included
	}
	if !live || a.Kind != chat.KindSummary && a.Kind != chat.KindReplacement {
		return false
	}
	a.Flags = a.Flags&chat.Estimated | a.Message.Flags()
	d.strip(a)
	m, old := &a.Message, &d.entries[covers[0]]
	if len(covers) != 1 || old.Kind == chat.KindSummary {
		a.Kind = chat.KindSummary // it covers several messages, or a summary of several
	}
	if a.Kind == chat.KindSummary {
		if a.Position == 0 {
			a.Position = old.Position
			for _, id := range covers {
				a.Position = min(a.Position, d.entries[id].Position)
			}
		}
		return m.Role != chat.RoleTool && m.Role != "" && len(m.ToolCalls) == 0
	}
	a.Position = old.Position
	if old.Role == chat.RoleTool && !old.Has(chat.Paired) {
		return (m.Role == old.Role || m.Role == chat.RoleAssistant) && len(m.ToolCalls) == 0
	}
	a.Flags |= old.Flags & (chat.Paired | chat.Parallel)
	reasoningOnly := chat.Meta{Role: m.Role, Calls: len(m.ToolCalls), Flags: a.Flags}.ReasoningOnly()
	if m.Role != old.Role || len(m.ToolCalls) > old.Calls || old.ReasoningOnly() != reasoningOnly {
		return false
	}
	return old.Message == nil || callsOf(old.Message, m)
}

// strip removes the signed reasoning of an addition, which is new to the view.
func (d *Draft) strip(a *chat.Addition) {
	if m := (chat.Meta{Flags: a.Flags}); d.bound && m.Signed() {
		a.Message = a.Message.WithoutReasoning()
		a.Flags &^= chat.HasReasoning | chat.PlainReasoning
	}
}

// callsOf reports whether m answers the same call as old and makes a subsequence of old's
// calls. A replacement may make fewer calls: the guard restores the others unless their
// results are gone too.
func callsOf(old, m *chat.Message) bool {
	if old.ToolCallID != m.ToolCallID {
		return false
	}
	rest := old.ToolCalls
	for _, c := range m.ToolCalls {
		i := slices.IndexFunc(rest, func(o chat.ToolCall) bool { return o.ID == c.ID })
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// write appends a valid addition, excludes the messages it covers, and returns its id.
func (d *Draft) write(a chat.Addition, covers []int32) int32 {
	id := int32(len(d.entries))
	for _, c := range covers {
		e := &d.entries[c]
		if by := d.marks[c].by; !e.Included && by >= 0 && d.entries[by].Included && d.entries[by].Kind == chat.KindReplacement {
			continue // an included replacement already covers it
		}
		if e.Included {
			e.By = d.next()
		}
		d.exclude(c, a.Reason, id)
	}
	if old := &d.entries[covers[0]]; a.Kind == chat.KindReplacement && old.Message == nil && (old.Has(chat.Paired) || old.Calls > 0) {
		d.unchecked = append(d.unchecked, unchecked{id, covers[0]})
	}
	d.append(a)
	return id
}

// append counts an addition and adds its entry to the draft.
func (d *Draft) append(a chat.Addition) {
	if c := d.input.Counter; c != nil {
		a.Counter, a.Tokens = c.Name(), d.count(&a)
	}
	m := a.Message
	d.entries = append(d.entries, plan.Entry{Meta: a.Meta(d.next()), Included: true, Message: &m})
	d.marks = append(d.marks, mark{by: -1, place: -1})
	d.adds = append(d.adds, a)
	d.changes++
	d.view = nil
}

// count returns the tokens of an addition.
func (d *Draft) count(a *chat.Addition) chat.Tokens {
	if ac, ok := d.input.Counter.(plan.AdditionCounter); ok {
		return ac.Addition(a)
	}
	return d.input.Counter.Message(&a.Message)
}

// checkCalls removes replacements whose tool calls differ from their originals', if that
// could not be checked when they were written.
func (d *Draft) checkCalls(ctx context.Context, load plan.Loader) error {
	if len(d.unchecked) == 0 || load == nil {
		return nil
	}
	seqs := make([]chat.Seq, len(d.unchecked))
	for i, u := range d.unchecked {
		seqs[i] = d.entries[u.of].Seq
	}
	loaded, err := d.load(ctx, seqs, load)
	if err != nil {
		return fmt.Errorf("load originals of replacements: %w", err)
	}
	for _, u := range d.unchecked {
		if callsOf(d.entries[u.of].Message, d.entries[u.id].Message) {
			continue
		}
		d.rejected++
		live := u.id
		if !d.entries[live].Included {
			live, _ = d.resolve(live)
		}
		if live >= 0 && d.entries[live].Kind == chat.KindReplacement {
			d.exclude(live, "", -1)
			d.include(u.of)
		}
	}
	d.drop(loaded)
	d.unchecked = nil
	return nil
}

// resolve returns the included addition that covers an excluded entry, directly or through
// other additions, or -1 and the reason of the exclusion.
func (d *Draft) resolve(id int32) (by int32, reason string) {
	for {
		m := &d.marks[id]
		if m.by < 0 {
			return -1, m.reason
		}
		if id = m.by; d.entries[id].Included {
			return id, ""
		}
	}
}

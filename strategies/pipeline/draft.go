package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// Draft is a working copy of a transcript to which plans are applied before they are
// combined into one. It never changes its input and is not safe for concurrent use.
//
// Additions get provisional seqs after the last one of the transcript, so that later plans
// can name them.
type Draft struct {
	input *plan.Transcript
	// entries holds the entries of the input in their order, followed by the additions. The
	// index into it is the entry's id.
	entries []plan.Entry
	marks   []mark
	adds    []chat.Addition
	// next is the seq of the next addition. sources and others are the ids of the input's
	// entries by seq; sources is nil if all of them are sources.
	next            chat.Seq
	sources, others []int32

	order    []int32 // ids in view order; nil if entries is in that order
	view     *plan.Transcript
	changes  int
	rejected int
	// noSummary is the error of the last strategy that requested a summary and got none.
	noSummary error
	// unchecked lists the replacements whose tool calls were not compared with those of
	// their originals, because the content was not loaded.
	unchecked []unchecked
	found     []int32 // scratch space of Apply
	// bound reports that the model binds signed reasoning to what precedes it. open is the
	// position up to which an open tool loop then holds the view as it is, 0 for none, and
	// stale are the messages whose reasoning leaves the view.
	bound bool
	open  chat.Seq
	stale chat.Ranges
	// instructions are the groups that PinPaths would pin if they were smaller.
	instructions []instructions
}

// mark is the draft's state of an entry.
type mark struct {
	reason string
	by     int32 // id of the addition that covers the entry, or -1
	// wasIncluded reports whether the entry was included in the input.
	wasIncluded bool
}

// unchecked names a replacement and its original.
type unchecked struct{ id, of int32 }

// StrategyError is the error of a strategy that failed. None of its plan was applied.
type StrategyError struct {
	Strategy string
	// Panic reports whether the strategy panicked, Stack where.
	Panic bool
	Stack []byte
	Err   error
}

// Code returns the error as a code: strategy_failed or strategy_panicked.
func (e *StrategyError) Code() string {
	if e.Panic {
		return "strategy_panicked"
	}
	return "strategy_failed"
}

// Error implements error.
func (e *StrategyError) Error() string {
	if e.Panic {
		return fmt.Sprintf("strategy %s panicked: %v", e.Strategy, e.Err)
	}
	return fmt.Sprintf("strategy %s: %v", e.Strategy, e.Err)
}

// Unwrap returns the cause.
func (e *StrategyError) Unwrap() error { return e.Err }

// ErrTranscript is returned for a transcript that is not in view order, or in which the
// position of a source message differs from its seq.
var ErrTranscript = errors.New("transcript is out of order")

// NewDraft returns a draft of t without changes.
func NewDraft(t *plan.Transcript) (*Draft, error) {
	n := len(t.Entries)
	d := &Draft{
		input:   t,
		entries: append(make([]plan.Entry, 0, n+4), t.Entries...),
		marks:   make([]mark, n, n+4),
		next:    1,
	}
	for i := range d.entries {
		e := &d.entries[i]
		if i > 0 && !chat.Less(d.entries[i-1].Meta, e.Meta) || plan.IsSource(e.Kind) && e.Position != e.Seq {
			return nil, fmt.Errorf("message %d: %w", e.Seq, ErrTranscript)
		}
		d.marks[i] = mark{by: -1, wasIncluded: e.Included}
		d.next = max(d.next, e.Seq+1)
		if !plan.IsSource(e.Kind) {
			d.others = append(d.others, int32(i))
		}
	}
	if len(d.others) > 0 {
		d.sources = make([]int32, 0, n-len(d.others))
		for i := range d.entries {
			if plan.IsSource(d.entries[i].Kind) {
				d.sources = append(d.sources, int32(i))
			}
		}
		slices.SortFunc(d.others, func(a, b int32) int { return int(d.entries[a].Seq - d.entries[b].Seq) })
	}
	d.view = plan.NewTranscript(d.entries, t.Counter, t.Groups())
	d.view.Originals, d.view.Unmarked = t.Originals, t.Unmarked
	return d, nil
}

// Transcript returns the current state of the draft, additions included. It is valid until
// the draft changes.
func (d *Draft) Transcript() *plan.Transcript {
	if d.view != nil {
		return d.view
	}
	d.sortOrder()
	d.view = &plan.Transcript{
		Entries: make([]plan.Entry, len(d.entries)), Counter: d.input.Counter, Originals: d.input.Originals, Unmarked: d.input.Unmarked,
	}
	for i, id := range d.order {
		d.view.Entries[i] = d.entries[id]
	}
	return d.view
}

// Entries returns the entries of the input in their order, followed by those of the
// additions. The slice is shared: call Refresh after changing it.
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

// Run plans with a strategy and applies the plan. It reports whether the view changed. load
// may be nil if the transcript holds the content that the strategy reads. The error is a
// *StrategyError, or that of ctx or load.
func (d *Draft) Run(ctx context.Context, s plan.Strategy, load plan.Loader) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if d.withheld(s) {
		return false, nil
	}
	before := d.changes
	if st, ok := s.(Stager); ok {
		err := st.Stage(ctx, d, load)
		return d.changes != before, err
	}
	t := d.Transcript()
	if r, ok := s.(plan.Reader); ok {
		var seqs []chat.Seq
		if err := recovered(s, func() error { seqs = r.Reads(t); return nil }); err != nil {
			return false, err
		}
		loaded, err := d.load(ctx, seqs, load)
		if err != nil {
			return false, fmt.Errorf("load content for strategy %s: %w", s.Name(), err)
		}
		defer d.drop(loaded)
		t = d.Transcript()
	}
	var planned chat.Plan
	err = recovered(s, func() (err error) { planned, err = s.Plan(ctx, t); return err })
	if errors.Is(err, plan.ErrNoSummary) && ctx.Err() == nil {
		d.noSummary = err
	} else if err != nil {
		return false, err
	}
	var pins []chat.Seq
	if p, ok := s.(plan.Pinner); ok {
		if err := recovered(s, func() (err error) { pins, err = p.Pins(t); return err }); err != nil {
			return false, err
		}
	}
	if err := d.checkSummarySize(s, planned); err != nil {
		d.noSummary = err
		planned = chat.Plan{}
	}
	d.Apply(planned, s.Name())
	d.pin(pins)
	return d.changes != before, nil
}

// summarizing is implemented by strategies that request summaries.
type summarizing interface {
	Summarizer() plan.Summarizer
}

// strict reports whether the strategy's summarizer is a plan.Strict.
func strict(s plan.Strategy) bool {
	a, ok := s.(summarizing)
	if !ok {
		return false
	}
	_, ok = a.Summarizer().(plan.Strict)
	return ok
}

// checkSummarySize returns an error wrapping plan.ErrNoSummary if the summarizer is strict
// and the plan's additions have at least as many tokens as the messages they replace.
func (d *Draft) checkSummarySize(s plan.Strategy, p chat.Plan) error {
	if !strict(s) || len(p.Additions) == 0 || d.input.Counter == nil {
		return nil
	}
	grown := chat.Tokens(0)
	for i := range p.Additions {
		grown += d.count(&p.Additions[i])
	}
	d.found = d.ids(d.found[:0], p.Gone())
	for _, id := range d.found {
		if d.entries[id].Included {
			grown -= d.entries[id].Tokens
		}
	}
	if grown < 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", plan.ErrNoSummary, &plan.Failure{Code: plan.FailureTooLarge})
}

// pin pins messages for the rest of the run.
func (d *Draft) pin(seqs []chat.Seq) {
	if len(seqs) == 0 {
		return
	}
	for _, id := range d.ids(nil, chat.RangesOf(seqs...)) {
		d.entries[id].Pinned = true
	}
	d.Refresh()
}

// Stager is implemented by strategies that consist of others. Stage runs them on the draft
// itself, so that content is loaded for one of them at a time.
type Stager interface {
	plan.Strategy
	Stage(ctx context.Context, d *Draft, load plan.Loader) error
}

// recovered calls f and returns its error or panic as a *StrategyError. Panic values may
// hold content of messages, so only runtime errors are quoted.
func recovered(s plan.Strategy, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			cause, ok := v.(runtime.Error)
			failed := &StrategyError{Strategy: s.Name(), Panic: true, Stack: debug.Stack(), Err: cause}
			if !ok {
				failed.Err = fmt.Errorf("a %T", v)
			}
			err = failed
		}
	}()
	if err := f(); err != nil {
		return &StrategyError{Strategy: s.Name(), Err: err}
	}
	return nil
}

// load reads the content of the messages that have none and returns their ids.
func (d *Draft) load(ctx context.Context, seqs []chat.Seq, load plan.Loader) ([]int32, error) {
	var missing []int32
	var missingSeqs []chat.Seq
	for _, id := range d.ids(nil, chat.RangesOf(seqs...)) {
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
	d.Refresh()
	return missing, nil
}

// drop releases loaded content.
func (d *Draft) drop(ids []int32) {
	for _, id := range ids {
		d.entries[id].Message = nil
	}
	d.Refresh()
}

// Refresh updates the view after entries have changed in place.
func (d *Draft) Refresh() {
	switch {
	case d.view == nil:
	case d.order == nil:
		d.view.Entries = d.entries
	default:
		for i, id := range d.order {
			d.view.Entries[i] = d.entries[id]
		}
	}
}

// sortOrder computes the view order of all ids.
func (d *Draft) sortOrder() {
	n := len(d.entries) - len(d.adds)
	written := make([]int32, len(d.adds))
	for k := range written {
		written[k] = int32(n + k)
	}
	slices.SortFunc(written, func(a, b int32) int { return chat.Compare(d.entries[a].Meta, d.entries[b].Meta) })
	order := make([]int32, 0, len(d.entries))
	for i := range n {
		for len(written) > 0 && chat.Less(d.entries[written[0]].Meta, d.entries[i].Meta) {
			order = append(order, written[0])
			written = written[1:]
		}
		order = append(order, int32(i))
	}
	d.order = append(order, written...)
}

// ids appends the ids of the entries with these seqs to out.
func (d *Draft) ids(out []int32, r chat.Ranges) []int32 {
	n := len(d.entries) - len(d.adds)
	for _, x := range r {
		if d.sources == nil && len(d.others) == 0 {
			i := sort.Search(n, func(i int) bool { return d.entries[i].Seq >= x.Lo })
			for ; i < n && d.entries[i].Seq < x.Hi; i++ {
				out = append(out, int32(i))
			}
		} else {
			for _, list := range [...][]int32{d.sources, d.others} {
				i := sort.Search(len(list), func(i int) bool { return d.entries[list[i]].Seq >= x.Lo })
				for ; i < len(list) && d.entries[list[i]].Seq < x.Hi; i++ {
					out = append(out, list[i])
				}
			}
		}
		first := d.next - chat.Seq(len(d.adds))
		for q := max(x.Lo, first); q < min(x.Hi, d.next); q++ {
			out = append(out, int32(n)+int32(q-first))
		}
	}
	return out
}

// Within reports whether the view has at most budget tokens.
func (d *Draft) Within(budget chat.Tokens) bool {
	var n chat.Tokens
	for i := range d.entries {
		if d.entries[i].Included {
			n += d.entries[i].Tokens
		}
	}
	return n <= budget
}

// set includes an entry in the view or excludes it.
func (d *Draft) set(id int32, in bool) {
	if d.entries[id].Included != in {
		d.entries[id].Included = in
		d.changes++
	}
}

// id returns the id of the message with seq q, which must exist.
func (d *Draft) id(q chat.Seq) int32 {
	var one [1]int32
	return d.ids(one[:0], chat.Ranges{{Lo: q, Hi: q + 1}})[0]
}

// viewMetas returns the metadata of the messages in the view, in order, with room for one more.
func (d *Draft) viewMetas() []chat.Meta {
	entries := d.Transcript().Entries
	n, _ := d.view.Included()
	out := make([]chat.Meta, 0, n+1)
	for i := range entries {
		if entries[i].Included {
			out = append(out, entries[i].Meta)
		}
	}
	return out
}

// PlanStages returns the plan of a strategy that consists of others, on a transcript that
// holds the content they read. The plan is valid even if the error wraps plan.ErrNoSummary.
func PlanStages(ctx context.Context, t *plan.Transcript, s Stager) (chat.Plan, error) {
	d, err := NewDraft(t)
	if err != nil {
		return chat.Plan{}, err
	}
	if err := s.Stage(ctx, d, nil); err != nil {
		return chat.Plan{}, err
	}
	return d.compose(true), d.noSummary
}

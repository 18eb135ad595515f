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

// Draft is a transcript on which plans are tried out: what a pipeline works on
// between the transcript it was given and the plan it returns. It never writes
// to that transcript. A draft is used by one goroutine at a time.
//
// Messages that plans write get provisional seqs behind the last one of the
// transcript, so that later plans can name them.
type Draft struct {
	input *plan.Transcript
	// all holds the entries of the input in their order, then what was written.
	// An index into it is the entry's id.
	All   []plan.Entry
	marks []mark
	Adds  []chat.Addition
	// next is the seq of the next addition; sources and others are the ids of the
	// input by seq, sources nil when the input holds nothing else.
	Next            chat.Seq
	sources, others []int32

	order    []int32 // ids in view order, nil while they are in order themselves
	view     *plan.Transcript
	Changes  int
	Rejected int
	// unsummarized is why the last strategy that got no summary got none.
	Unsummarized error
	// unproven are stand-ins whose original was not at hand to compare calls with.
	unproven []unproven
	found    []int32 // scratch of Apply
}

// mark is what a draft knows of an entry beside the entry.
type mark struct {
	reason string
	by     int32 // id of the addition that covers the entry, or -1
	was    bool  // included in the input
}

// unproven is a stand-in and its original.
type unproven struct{ id, of int32 }

// Mark says what the draft did to a message.
type Mark struct {
	Reason string
	// By is the seq of the addition that covers the message, 0 for none.
	By chat.Seq
}

// StrategyError is a strategy that failed. Nothing of what it wanted was done.
type StrategyError struct {
	Strategy string
	// Panic: it panicked; Stack says where.
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

// ErrTranscript is the error for a transcript that is not in view order, or
// where a source message's position is not its seq.
var ErrTranscript = errors.New("transcript is out of order")

// NewDraft returns a draft that is still equal to its transcript.
func NewDraft(t *plan.Transcript) (*Draft, error) {
	n := len(t.Entries)
	d := &Draft{
		input: t,
		All:   append(make([]plan.Entry, 0, n+4), t.Entries...),
		marks: make([]mark, n, n+4),
		Next:  1,
	}
	for i := range d.All {
		e := &d.All[i]
		if i > 0 && !chat.Less(d.All[i-1].Meta, e.Meta) || plan.IsSource(e.Kind) && e.Position != e.Seq {
			return nil, fmt.Errorf("message %d: %w", e.Seq, ErrTranscript)
		}
		d.marks[i] = mark{by: -1, was: e.Included}
		d.Next = max(d.Next, e.Seq+1)
		if !plan.IsSource(e.Kind) {
			d.others = append(d.others, int32(i))
		}
	}
	if len(d.others) > 0 {
		d.sources = make([]int32, 0, n-len(d.others))
		for i := range d.All {
			if plan.IsSource(d.All[i].Kind) {
				d.sources = append(d.sources, int32(i))
			}
		}
		slices.SortFunc(d.others, func(a, b int32) int { return int(d.All[a].Seq - d.All[b].Seq) })
	}
	d.view = plan.NewTranscript(d.All, t.Counter, t.Groups())
	return d, nil
}

// Transcript returns the draft as it stands, written messages in their places. It is
// valid until the draft changes.
func (d *Draft) Transcript() *plan.Transcript {
	if d.view != nil {
		return d.view
	}
	d.sortOrder()
	d.view = &plan.Transcript{
		Entries: make([]plan.Entry, len(d.All)), Counter: d.input.Counter,
	}
	for i, id := range d.order {
		d.view.Entries[i] = d.All[id]
	}
	return d.view
}

// Mark says what the draft did to the message with this seq.
func (d *Draft) Mark(q chat.Seq) Mark {
	ids := d.ids(nil, chat.Ranges{{Lo: q, Hi: q + 1}})
	if len(ids) == 0 {
		return Mark{}
	}
	known := d.marks[ids[0]]
	m := Mark{Reason: known.reason}
	if known.by >= 0 {
		m.By = d.All[known.by].Seq
	}
	return m
}

// Run has a strategy plan on the draft and applies what it wants. It reports
// whether that changed what is in the view. load may be nil when the content of
// what the strategy reads is in the transcript. The error is a *StrategyError,
// or that of ctx or load.
func (d *Draft) Run(ctx context.Context, s plan.Strategy, load plan.Loader) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	before := d.Changes
	if st, ok := s.(Stager); ok {
		err := st.Stage(ctx, d, load)
		return d.Changes != before, err
	}
	t := d.Transcript()
	if r, ok := s.(plan.Reader); ok {
		var seqs []chat.Seq
		if err := guarded(s, func() error { seqs = r.Reads(t); return nil }); err != nil {
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
	err = guarded(s, func() (err error) { planned, err = s.Plan(ctx, t); return err })
	if errors.Is(err, plan.ErrNoSummary) && ctx.Err() == nil {
		d.Unsummarized = err
	} else if err != nil {
		return false, err
	}
	var pins []chat.Seq
	if p, ok := s.(plan.Pinner); ok {
		if err := guarded(s, func() (err error) { pins, err = p.Pins(t); return err }); err != nil {
			return false, err
		}
	}
	if err := d.worthIt(s, planned); err != nil {
		d.Unsummarized = err
		planned = chat.Plan{}
	}
	d.Apply(planned, s.Name())
	d.pin(pins)
	return d.Changes != before, nil
}

// asksSummary is implemented by strategies that ask for summaries.
type asksSummary interface {
	Summarizer() plan.Summarizer
}

// strict reports whether a strategy has summaries written by who is strict about them.
func strict(s plan.Strategy) bool {
	a, ok := s.(asksSummary)
	if !ok {
		return false
	}
	_, ok = a.Summarizer().(plan.Strict)
	return ok
}

// worthIt is why a plan with a summary is not taken: where whoever writes summaries is
// strict, one that makes the view larger than what it replaces is as good as none.
func (d *Draft) worthIt(s plan.Strategy, p chat.Plan) error {
	if !strict(s) || len(p.Additions) == 0 || d.input.Counter == nil {
		return nil
	}
	grown := chat.Tokens(0)
	for i := range p.Additions {
		grown += d.count(&p.Additions[i])
	}
	d.found = d.ids(d.found[:0], p.Gone())
	for _, id := range d.found {
		if d.All[id].Included {
			grown -= d.All[id].Tokens
		}
	}
	if grown < 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", plan.ErrNoSummary, &plan.Failure{Code: plan.FailureTooLarge})
}

// pin pins messages for what is still to come of a run.
func (d *Draft) pin(seqs []chat.Seq) {
	if len(seqs) == 0 {
		return
	}
	for _, id := range d.ids(nil, chat.RangesOf(seqs...)) {
		d.All[id].Pinned = true
	}
	d.Refresh()
}

// stager is a strategy made of others: it runs them on the draft itself, so that
// content is loaded for each as its turn comes.
type Stager interface {
	plan.Strategy
	Stage(ctx context.Context, d *Draft, load plan.Loader) error
}

// guarded turns what goes wrong in a strategy into a *StrategyError. The value of
// a panic may hold content, so only runtime errors are quoted.
func guarded(s plan.Strategy, f func() error) (err error) {
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

// load reads the content of messages that have none and returns their ids.
func (d *Draft) load(ctx context.Context, seqs []chat.Seq, load plan.Loader) ([]int32, error) {
	var missing []int32
	var want []chat.Seq
	for _, id := range d.ids(nil, chat.RangesOf(seqs...)) {
		if d.All[id].Message == nil {
			missing = append(missing, id)
			want = append(want, d.All[id].Seq)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	if load == nil {
		return nil, fmt.Errorf("message %d: %w", want[0], plan.ErrNotLoaded)
	}
	got, err := load(ctx, want)
	if err != nil {
		return nil, err
	}
	for i, id := range missing {
		m := got[want[i]]
		if m == nil {
			return nil, fmt.Errorf("message %d: %w", want[i], plan.ErrNotLoaded)
		}
		d.All[id].Message = m
	}
	d.Refresh()
	return missing, nil
}

// drop forgets loaded content.
func (d *Draft) drop(ids []int32) {
	for _, id := range ids {
		d.All[id].Message = nil
	}
	d.Refresh()
}

// refresh brings the view up to date with entries that changed in place.
func (d *Draft) Refresh() {
	switch {
	case d.view == nil:
	case d.order == nil:
		d.view.Entries = d.All
	default:
		for i, id := range d.order {
			d.view.Entries[i] = d.All[id]
		}
	}
}

// sortOrder puts all ids in view order.
func (d *Draft) sortOrder() {
	n := len(d.All) - len(d.Adds)
	written := make([]int32, len(d.Adds))
	for k := range written {
		written[k] = int32(n + k)
	}
	slices.SortFunc(written, func(a, b int32) int { return chat.Compare(d.All[a].Meta, d.All[b].Meta) })
	order := make([]int32, 0, len(d.All))
	for i := range n {
		for len(written) > 0 && chat.Less(d.All[written[0]].Meta, d.All[i].Meta) {
			order = append(order, written[0])
			written = written[1:]
		}
		order = append(order, int32(i))
	}
	d.order = append(order, written...)
}

// ids appends the ids of the entries with these seqs to out.
func (d *Draft) ids(out []int32, r chat.Ranges) []int32 {
	n := len(d.All) - len(d.Adds)
	for _, x := range r {
		if d.sources == nil && len(d.others) == 0 {
			i := sort.Search(n, func(i int) bool { return d.All[i].Seq >= x.Lo })
			for ; i < n && d.All[i].Seq < x.Hi; i++ {
				out = append(out, int32(i))
			}
		} else {
			for _, list := range [...][]int32{d.sources, d.others} {
				i := sort.Search(len(list), func(i int) bool { return d.All[list[i]].Seq >= x.Lo })
				for ; i < len(list) && d.All[list[i]].Seq < x.Hi; i++ {
					out = append(out, list[i])
				}
			}
		}
		first := d.Next - chat.Seq(len(d.Adds))
		for q := max(x.Lo, first); q < min(x.Hi, d.Next); q++ {
			out = append(out, int32(n)+int32(q-first))
		}
	}
	return out
}

// within reports whether the view has at most budget tokens.
func (d *Draft) Within(budget chat.Tokens) bool {
	var n chat.Tokens
	for i := range d.All {
		if d.All[i].Included {
			n += d.All[i].Tokens
		}
	}
	return n <= budget
}

// set puts an entry in the view or takes it out.
func (d *Draft) set(id int32, in bool) {
	if d.All[id].Included != in {
		d.All[id].Included = in
		d.Changes++
	}
}

// id is the id of the message with a seq that the draft knows.
func (d *Draft) Id(q chat.Seq) int32 {
	var one [1]int32
	return d.ids(one[:0], chat.Ranges{{Lo: q, Hi: q + 1}})[0]
}

// viewMetas are the messages in the view, in order.
func (d *Draft) ViewMetas() []chat.Meta {
	entries := d.Transcript().Entries
	n, _ := d.view.Included()
	out := make([]chat.Meta, 0, n)
	for i := range entries {
		if entries[i].Included {
			out = append(out, entries[i].Meta)
		}
	}
	return out
}

// planStages is the plan of a strategy that is made of others, where what they
// read is in the transcript. Its error may wrap ErrNoSummary: the plan holds then.
func PlanStages(ctx context.Context, t *plan.Transcript, s Stager) (chat.Plan, error) {
	d, err := NewDraft(t)
	if err != nil {
		return chat.Plan{}, err
	}
	if err := s.Stage(ctx, d, nil); err != nil {
		return chat.Plan{}, err
	}
	return d.compose(true), d.Unsummarized
}

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// ErrInvalidView is returned if a view violates an invariant after the guard. It indicates
// a bug in this package; no such plan is ever returned.
var ErrInvalidView = errors.New("the view would be invalid")

// Repair counts the messages that the guard repaired, by violation code.
type Repair struct {
	Reason   string
	Messages int
}

// Valid returns an error wrapping ErrInvalidView if the view has violations.
func Valid(view []chat.Meta) error {
	faults := chat.Check(view)
	if len(faults) == 0 {
		return nil
	}
	texts := make([]string, 0, 5)
	for _, f := range faults[:min(len(faults), cap(texts))] {
		texts = append(texts, f.String())
	}
	if more := len(faults) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("%w: %s", ErrInvalidView, strings.Join(texts, ", "))
}

// repair repairs the remaining violations. They come from the log, or from earlier runs to
// whose summaries messages were appended.
func (d *Draft) repair(ctx context.Context, load plan.Loader) error {
	for range 4 { // one round suffices for any view that a run has produced
		steps := chat.Repair(d.judged(viewOf(d.Transcript())))
		if len(steps) == 0 {
			return nil
		}
		if err := d.repairRound(ctx, steps, load); err != nil {
			return err
		}
	}
	return Valid(d.judged(viewOf(d.Transcript())))
}

// judged returns the view for Check and Repair. Where the log goes on after it, or it ends in a
// call that the log does not end in, a message stands for the one that followed.
func (d *Draft) judged(view []chat.Meta) []chat.Meta {
	last := len(view) - 1
	for last >= 0 && (view[last].Role == chat.RoleTool || view[last].HoldsOnlyReasoning()) {
		last--
	}
	ended := d.input.Ended
	if last >= 0 && view[last].Calls > 0 && len(d.places) > 0 {
		end := d.open // or the group that ends the log
		if end < 0 {
			end = d.groups[len(d.groups)-1].Start
		}
		k := int(d.marks[d.id(view[last].Seq)].place)
		ended = ended || k >= 0 && k < end
	}
	if !ended {
		return view
	}
	q := d.next()
	if n := len(view); n > 0 {
		q = max(q, view[n-1].Position+1)
	}
	return append(view, chat.Meta{Seq: q, Position: q, Kind: chat.KindSource, Role: chat.RoleAssistant, Flags: chat.HasText})
}

// repairRound carries out the steps of one round.
func (d *Draft) repairRound(ctx context.Context, steps []chat.RepairStep, load plan.Loader) error {
	var seqs []chat.Seq
	for _, m := range steps {
		if m.Action != chat.RepairExclude {
			seqs = append(append(seqs, m.Seq), m.Results...)
		} else if k := int(d.marks[d.id(m.Seq)].place); k >= 0 && d.places[k].call {
			d.groupOf(k).callExcluded = true
		}
	}
	loaded, err := d.load(ctx, seqs, load)
	if err != nil {
		return fmt.Errorf("load content to repair: %w", err)
	}
	answered := chat.Answered(steps, func(q chat.Seq) *chat.Message { return d.entries[d.id(q)].Message })
	for i, m := range steps {
		d.repairMessage(m, answered[i])
	}
	d.drop(loaded)
	return nil
}

// repairMessage carries out one step, unless it turns out to be needless.
func (d *Draft) repairMessage(m chat.RepairStep, answered []string) {
	id, reason := d.id(m.Seq), string(m.Reason)
	e := &d.entries[id]
	if m.Action == chat.RepairExclude && m.Reason == chat.ViolationUnansweredCall && e.Calls == 0 {
		k := int(d.marks[id].place)
		if e.Pinned || k < 0 || !d.groupOf(k).excludes(d, k) {
			return // the reasoning is pinned or belongs to another group
		}
	}
	if m.Action == chat.RepairKeepAnswered {
		var needed bool
		if m, needed = m.Resolve(e.Message, answered); !needed {
			return
		}
	}
	d.repairs = addRepair(d.repairs, reason)
	onlySigned := e.Signed() && e.HoldsOnlyReasoning()
	if m.Action == chat.RepairExclude || d.bound && onlySigned || d.fitsNowhere(m) {
		d.exclude(id, reason, -1)
		return
	}
	a := chat.Addition{
		Kind: chat.KindReplacement, Reason: reason, Position: m.Position, Tokens: e.Tokens,
		Message: m.Apply(*e.Message, answered),
		Flags:   m.Meta(e.Meta, d.next()).Flags,
	}
	d.strip(&a)
	d.placeRepaired(&a, m, id)
	written := int32(len(d.entries))
	d.exclude(id, reason, written)
	d.append(a)
	d.arrangeAddition(written)
}

func addRepair(to []Repair, reason string) []Repair {
	for i := range to {
		if to[i].Reason == reason {
			to[i].Messages++
			return to
		}
	}
	return append(to, Repair{reason, 1})
}

// excludes reports whether reasoning belongs to a call that a repair excludes. In a view with
// gaps the two may be neighbours without belonging together.
func (g *group) excludes(d *Draft, k int) bool {
	return g.callExcluded && d.places[k].position-d.places[g.Call].position == chat.Seq(k-g.Call)
}

// fitsNowhere reports whether the text of a result could stand neither after the reasoning that
// waits for a call nor between it and the moved call before it. Only results and reasoning stand
// between that call and the first place that waits; it has no place itself, and nothing can be put
// before it at its position.
func (d *Draft) fitsNowhere(m chat.RepairStep) bool {
	if m.Action != chat.RepairTextify || d.open < 0 || m.Position < d.places[d.open].position-1 {
		return false
	}
	for id := d.places[d.open].first - 1; id >= 0; id-- {
		e := &d.entries[id]
		if e.Included && e.Role != chat.RoleTool && !e.HoldsOnlyReasoning() && plan.FromApplication(e.Meta) {
			return plan.MakesCalls(e) && d.marks[id].place < 0
		}
	}
	return false
}

// placeRepaired sets kind and position of the replacement for a repaired message. If it
// cannot take the place of the original it becomes a summary: a replacement at another
// position would occupy the place of another message.
func (d *Draft) placeRepaired(a *chat.Addition, m chat.RepairStep, id int32) {
	e, k := &d.entries[id], int(d.marks[id].place)
	switch {
	case m.Action == chat.RepairMove, m.Position != e.Position:
		a.Kind, a.Position = chat.KindSummary, a.Position+1
		if d.open >= 0 {
			a.Position = min(a.Position, d.places[d.open].position)
		}
	case k < 0:
		a.Kind = chat.KindSummary
	case a.Message.Role != e.Role && d.withinGroup(k):
		a.Kind, a.Position = chat.KindSummary, d.places[d.groupOf(k).Start].position
	}
}

package pipeline

import (
	"context"
	"fmt"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// repair carries out the repair steps of one round.
func (l *layout) repair(ctx context.Context, steps []chat.RepairStep, open int32, load plan.Loader) ([]Repair, error) {
	d := l.d
	var seqs []chat.Seq
	for _, m := range steps {
		if m.Action != chat.RepairExclude {
			seqs = append(append(seqs, m.Seq), m.Results...)
			continue
		}
		if k := l.placeOf[d.id(m.Seq)]; k >= 0 {
			if l.makesCalls(k) {
				l.groups[l.places[k].group].callExcluded = true
			}
		}
	}
	loaded, err := d.load(ctx, seqs, load)
	if err != nil {
		return nil, fmt.Errorf("load content to repair: %w", err)
	}
	var repairs []Repair
	ids := chat.Answered(steps, func(q chat.Seq) *chat.Message { return d.entries[d.id(q)].Message })
	for i, m := range steps {
		id := d.id(m.Seq)
		reason := string(m.Reason)
		unanswered := m.Action == chat.RepairExclude && m.Reason == chat.ViolationUnansweredCall
		if unanswered && d.entries[id].Calls == 0 && (d.entries[id].Pinned || !l.callExcluded(id)) {
			continue // the reasoning is pinned or belongs to another group
		}
		answered := ids[i]
		if m.Action == chat.RepairKeepAnswered {
			var needed bool
			if m, needed = m.Resolve(d.entries[id].Message, answered); !needed {
				continue
			}
		}
		repairs = addRepair(repairs, reason, 1)
		if e := &d.entries[id]; m.Action == chat.RepairExclude || d.bound && e.Signed() && e.HoldsOnlyReasoning() || l.hasNoPlace(m, open) {
			d.set(id, false)
			d.marks[id].reason, d.marks[id].by = reason, -1
			continue
		}
		a := chat.Addition{
			Kind: chat.KindReplacement, Reason: reason, Position: m.Position, Tokens: d.entries[id].Tokens,
			Message: m.Apply(*d.entries[id].Message, answered),
		}
		meta := m.Meta(d.entries[id].Meta, d.next)
		a.Flags = meta.Flags
		d.strip(&a)
		l.placeRepaired(&a, m, id, open)
		d.set(id, false)
		d.marks[id].reason, d.marks[id].by = reason, int32(len(d.entries))
		d.append(a)
		l.add(int32(len(d.entries) - 1))
	}
	d.drop(loaded)
	d.Refresh()
	return repairs, nil
}

// hasNoPlace reports whether the text of a result could stand neither behind the reasoning that
// waits for a call nor between it and the moved call before it.
func (l *layout) hasNoPlace(m chat.RepairStep, open int32) bool {
	return m.Action == chat.RepairTextify && open >= 0 && m.Position >= l.position(int(open))-1 && l.followsMovedCall(open)
}

// placeRepaired sets kind and position of the replacement for a repaired message. If it
// cannot take the place of the original it becomes a summary: a replacement at another
// position would occupy the place of another message.
func (l *layout) placeRepaired(a *chat.Addition, m chat.RepairStep, id, open int32) {
	e, k := &l.d.entries[id], l.placeOf[id]
	switch {
	case m.Action == chat.RepairMove, m.Position != e.Position:
		a.Kind, a.Position = chat.KindSummary, a.Position+1
		if open >= 0 {
			a.Position = min(a.Position, l.position(int(open)))
		}
	case k < 0:
		a.Kind = chat.KindSummary
	case a.Message.Role != e.Role && l.withinGroup(k, open):
		a.Kind, a.Position = chat.KindSummary, l.position(int(l.groups[l.places[k].group].start))
	}
}

// callExcluded reports whether reasoning belongs to a call that a repair excludes. In a
// view with gaps the two may be neighbours without belonging together.
func (l *layout) callExcluded(id int32) bool {
	k := l.placeOf[id]
	if k < 0 {
		return false
	}
	g := &l.groups[l.places[k].group]
	return g.callExcluded && l.position(int(k))-l.position(int(g.call)) == chat.Seq(k-g.call)
}

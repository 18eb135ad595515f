package pipeline

import (
	"context"
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// pinTools pins the groups that call one of the named tools for the rest of a run. Groups
// are those of the log, in which a call and its replacement share one place.
func (d *Draft) pinTools(ctx context.Context, names []string, load plan.Loader) error {
	var seqs []chat.Seq
	for i := range d.entries {
		if plan.MakesCalls(&d.entries[i]) {
			seqs = append(seqs, d.entries[i].Seq)
		}
	}
	loaded, err := d.load(ctx, seqs, load)
	if err != nil {
		return fmt.Errorf("load tool calls to pin: %w", err)
	}
	defer d.drop(loaded)
	l := newLayout(d)
	seqs = seqs[:0]
	pin := func(id int32) { seqs = append(seqs, d.entries[id].Seq) }
	for i := range d.entries {
		e := &d.entries[i]
		named := func(c chat.ToolCall) bool { return slices.Contains(names, c.Name) }
		if !plan.MakesCalls(e) || !slices.ContainsFunc(e.Message.ToolCalls, named) {
			continue
		}
		pin(int32(i))
		if k := l.placeOf[i]; k >= 0 {
			for g, k := &l.groups[l.places[k].group], int32(0); g.start+k < g.end; k++ {
				l.each(g.start+k, pin)
			}
		}
	}
	d.pin(seqs)
	return nil
}

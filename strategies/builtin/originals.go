package builtin

import (
	"context"
	"iter"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// originals finds the messages that additions of earlier steps cover. A strict writer reads
// these, since it shortens messages itself and needs the parts that an addition lacks: the
// calls of a result, or the middle of a text.
type originals struct {
	t *plan.Transcript
	// by holds the indexes of the covered entries by the seq of their addition.
	by map[chat.Seq][]int
}

// originals returns the originals of a transcript for the summarizer, none unless it is
// strict.
func (s summarizing) originals(t *plan.Transcript) originals {
	if !s.strict() {
		return originals{t: t}
	}
	return newOriginals(t)
}

func newOriginals(t *plan.Transcript) originals {
	o := originals{t: t, by: map[chat.Seq][]int{}}
	for i := range t.Entries {
		if e := &t.Entries[i]; e.By > 0 && !e.Included {
			o.by[e.By] = append(o.by[e.By], i)
		}
	}
	return o
}

// of returns the indexes of the entries that entry i stands for, in order: itself unless it
// is an addition.
func (o originals) of(i int) []int {
	covered := o.by[o.t.Entries[i].Seq]
	if covered == nil {
		return []int{i}
	}
	var out []int
	for _, k := range covered {
		out = append(out, o.of(k)...)
	}
	slices.Sort(out)
	return out
}

// seqs returns the seqs of the entries that the given entries stand for, and their own.
func (o originals) seqs(entries []int) []chat.Seq {
	out := seqsOf(o.t, entries)
	for _, i := range entries {
		if of := o.of(i); of[0] != i {
			out = append(out, seqsOf(o.t, of)...)
		}
	}
	return out
}

// add adds the messages that entry i stands for to a task.
func (o originals) add(task *plan.Task, i int) error {
	for _, k := range o.of(i) {
		m, err := o.t.Read(k)
		if err != nil {
			return err
		}
		addMessage(task, m, kindOf(&o.t.Entries[k]), o.t.Entries[k].Seq)
	}
	return nil
}

// fromLog returns the Originals of a task that covers entries: nil if nothing before the last
// of them is out of the view, so that the task's messages are all there is.
func fromLog(t *plan.Transcript, covered []int) func(ctx context.Context, most int64) (iter.Seq2[chat.Original, error], []*chat.Message, error) {
	if t.Originals == nil || len(covered) == 0 {
		return nil
	}
	var seqs []chat.Seq
	sources := newOriginals(t)
	for _, i := range covered {
		seqs = append(seqs, seqsOf(t, sources.of(i))...)
	}
	last := slices.Max(seqs)
	missing := last // seqs are dense
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Seq <= last && (e.Included || e.By > 0) {
			missing--
		}
	}
	if missing == 0 {
		return nil
	}
	return func(ctx context.Context, most int64) (iter.Seq2[chat.Original, error], []*chat.Message, error) {
		return t.Originals(ctx, seqs, most)
	}
}

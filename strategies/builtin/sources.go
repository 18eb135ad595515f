package builtin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"iter"
	"math"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/plan"
)

// maxSources is how many bytes of messages a model's summary is made from, more than its
// prompts hold. Unlike the originals of an extract, they are in memory all at once. maxRead is how
// many bytes of the log are read for them, dropped messages included.
const maxSources, maxRead = 16 << 20, 64 << 20

// sourcesOf returns the Sources of a task whose messages are those of covered entries, or those that
// they stand for: nil if these are all messages of the application, and none can have been dropped
// that no summary includes. A summary is taken to include the messages that were dropped before it.
func sourcesOf(t *plan.Transcript, task plan.Task, covered []int) func(context.Context) ([]*chat.Message, []chat.Kind, []chat.Seq, error) {
	if task.Originals == nil {
		return nil
	}
	entries := map[*chat.Message]int{} // the entries of the task's messages
	o := newOriginals(t)
	for _, i := range covered {
		for _, k := range o.of(i) {
			if e := &t.Entries[k]; e.Message != nil && !summarizes(e) {
				entries[e.Message] = k
			}
		}
	}
	var kept plan.Task // earlier summaries, and messages that they were merged into
	var of []chat.Seq
	stands := false
	for n, m := range task.Messages {
		k, ok := entries[m]
		if !ok {
			addMessage(&kept, m, task.Kinds[n], task.Seqs[n])
			continue
		}
		of = append(of, t.Entries[k].Seq)
		stands = stands || !plan.FromApplication(t.Entries[k].Meta)
	}
	summarized := task.Previous != "" || len(kept.Messages) > 0
	if !stands && summarized {
		return nil
	}
	return func(ctx context.Context) ([]*chat.Message, []chat.Kind, []chat.Seq, error) {
		dropped := map[[sha256.Size]byte]int{} // the summary includes these already
		size, total := 0, 0
		if summarized {
			_, err := eachSource(ctx, t, nil, func(_ chat.Original, body []byte) bool {
				dropped[sha256.Sum256(body)]++
				total += len(body)
				return total <= maxRead
			})
			if err != nil || total > maxRead {
				return nil, nil, nil, err
			}
		}
		var read plan.Task
		total = 0
		older, err := eachSource(ctx, t, of, func(m chat.Original, body []byte) bool {
			total += len(body)
			if key := sha256.Sum256(body); dropped[key] > 0 {
				dropped[key]--
			} else {
				addMessage(&read, m.Message, chat.KindSource, m.Seq)
				size += len(body)
			}
			return size <= maxSources && total <= maxRead
		})
		if err != nil || size > maxSources || total > maxRead {
			return nil, nil, nil, err
		}
		kinds := slices.Concat(kept.Kinds, slices.Repeat([]chat.Kind{chat.KindSummary}, len(older)), read.Kinds)
		seqs := slices.Concat(kept.Seqs, make([]chat.Seq, len(older)), read.Seqs)
		return slices.Concat(kept.Messages, older, read.Messages), kinds, seqs, nil
	}
}

// summarizes reports whether an entry, whose content is loaded, is a summary of an earlier
// run or belongs to one, rather than a replacement of messages.
func summarizes(e *plan.Entry) bool {
	if !isSummary(e) {
		return false
	}
	content := e.Message.Content.String()
	_, _, framed := frame.Unwrap(content)
	return framed || e.Role == chat.RoleAssistant && content == acknowledgment
}

// eachSource calls f, while it returns true, with the messages of the application that stored
// messages stand for, without instructions and reasoning alone, and with bytes that identify them
// and are valid until f returns. It returns the summaries that stand for others.
func eachSource(ctx context.Context, t *plan.Transcript, of []chat.Seq, f func(m chat.Original, body []byte) bool) (older []*chat.Message, err error) {
	all, older, err := t.Originals(ctx, of, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	var body []byte
	for m, err := range all {
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		instructs := m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper
		if instructs || m.Role != chat.RoleTool && !chat.HasContent(m.Content) && len(m.ToolCalls) == 0 {
			continue
		}
		if body = m.AppendJSON(body[:0]); !f(m, body) {
			break
		}
	}
	return older, nil
}

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

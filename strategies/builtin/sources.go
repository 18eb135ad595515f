package builtin

import (
	"context"
	"crypto/sha256"
	"math"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/plan"
)

// maxSources is how many bytes of messages a model's summary is made from, more than its
// prompts hold. Unlike the originals of an extract, they are in memory all at once. maxRead is how
// many bytes of the log are read for them, with what was dropped.
const maxSources, maxRead = 16 << 20, 64 << 20

// sourcesOf returns the Sources of a task whose messages are those of covered entries, or of what
// they stand for: nil if these are all messages of the application, and none can have been dropped
// that no summary tells of. What was dropped is taken as told once there is a summary.
func sourcesOf(t *plan.Transcript, task plan.Task, covered []int) func(context.Context) ([]*chat.Message, []chat.Kind, []chat.Seq, error) {
	if task.Originals == nil {
		return nil
	}
	entries := map[*chat.Message]int{} // what the task's messages are in the log
	o := newOriginals(t)
	for _, i := range covered {
		for _, k := range o.of(i) {
			if e := &t.Entries[k]; e.Message != nil && !summarizes(e) {
				entries[e.Message] = k
			}
		}
	}
	var kept []*chat.Message // earlier summaries, and messages that they were merged into
	var kinds []chat.Kind
	var of, keptSeqs []chat.Seq
	stands, summarized := false, task.Previous != ""
	for n, m := range task.Messages {
		k, ok := entries[m]
		if !ok {
			summarized = true
			kept, kinds, keptSeqs = append(kept, m), append(kinds, task.Kinds[n]), append(keptSeqs, task.Seqs[n])
			continue
		}
		of = append(of, t.Entries[k].Seq)
		stands = stands || !plan.FromApplication(t.Entries[k].Meta)
	}
	if !stands && summarized {
		return nil
	}
	return func(ctx context.Context) ([]*chat.Message, []chat.Kind, []chat.Seq, error) {
		told := map[[sha256.Size]byte]int{} // what was dropped was told in the summary already
		size, total := 0, 0
		if summarized {
			_, err := eachSource(ctx, t, nil, func(_ chat.Original, body []byte) bool {
				told[sha256.Sum256(body)]++
				total += len(body)
				return total <= maxRead
			})
			if err != nil || total > maxRead {
				return nil, nil, nil, err
			}
		}
		var read []*chat.Message
		var seqs []chat.Seq
		total = 0
		older, err := eachSource(ctx, t, of, func(m chat.Original, body []byte) bool {
			total += len(body)
			if key := sha256.Sum256(body); told[key] > 0 {
				told[key]--
				return total <= maxRead
			}
			read, seqs = append(read, m.Message), append(seqs, m.Seq)
			size += len(body)
			return size <= maxSources && total <= maxRead
		})
		if err != nil || size > maxSources || total > maxRead {
			return nil, nil, nil, err
		}
		messages := slices.Concat(kept, older, read)
		kinds := append(slices.Clone(kinds), slices.Repeat([]chat.Kind{chat.KindSummary}, len(older))...)
		seqs = slices.Concat(keptSeqs, make([]chat.Seq, len(older)), seqs)
		return messages, append(kinds, slices.Repeat([]chat.Kind{chat.KindSource}, len(read))...), seqs, nil
	}
}

// summarizes reports whether an entry, whose content is loaded, is a summary of an earlier run
// or belongs to one, rather than a stand-in for messages.
func summarizes(e *plan.Entry) bool {
	if kindOf(e) != chat.KindSummary {
		return false
	}
	said := e.Message.Content.String()
	_, _, framed := frame.Unwrap(said)
	return framed || e.Role == chat.RoleAssistant && said == acknowledgment
}

// eachSource calls f, while it returns true, with the messages of the application that stored
// messages stand for, without instructions and reasoning alone, and with bytes that tell them apart
// and are valid until f returns. It returns the summaries that stand for others.
func eachSource(ctx context.Context, t *plan.Transcript, of []chat.Seq, f func(m chat.Original, body []byte) bool) (older []*chat.Message, err error) {
	all, older, err := t.Originals(ctx, of, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	var body []byte
	for m, err := range all {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
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

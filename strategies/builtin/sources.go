package builtin

import (
	"context"
	"math"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/plan"
)

// maxSources is how many bytes of messages a model's summary is made from, more than its
// prompts hold. Unlike the originals of an extract, they are in memory all at once.
const maxSources = 16 << 20

// sourcesOf returns the Sources of a task whose messages are those of covered entries, or of what
// they stand for: nil if these are all messages of the application, and none was dropped since the
// last summary.
func sourcesOf(t *plan.Transcript, task plan.Task, covered []int) func(context.Context) ([]*chat.Message, []chat.Kind, error) {
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
	var of []chat.Seq
	stands, summarized := false, task.Previous != ""
	for n, m := range task.Messages {
		k, ok := entries[m]
		if !ok {
			summarized = true
			kept, kinds = append(kept, m), append(kinds, task.Kinds[n])
			continue
		}
		of = append(of, t.Entries[k].Seq)
		stands = stands || !plan.FromApplication(t.Entries[k].Meta)
	}
	if !stands && summarized {
		return nil
	}
	return func(ctx context.Context) ([]*chat.Message, []chat.Kind, error) {
		told := map[string]int{} // what was dropped was told in the summary already
		if summarized {
			if _, _, err := eachSource(ctx, t, nil, func(_ *chat.Message, key string) { told[key]++ }); err != nil {
				return nil, nil, err
			}
		}
		var read []*chat.Message
		size := 0
		n, older, err := eachSource(ctx, t, of, func(m *chat.Message, key string) {
			if told[key]--; told[key] >= 0 {
				return
			}
			if size += len(key); size <= maxSources {
				read = append(read, m)
			}
		})
		if err != nil || size > maxSources || n+len(older) < len(of) { // words that were purged
			return nil, nil, err
		}
		messages := slices.Concat(kept, older, read)
		kinds := append(slices.Clone(kinds), slices.Repeat([]chat.Kind{chat.KindSummary}, len(older))...)
		return messages, append(kinds, slices.Repeat([]chat.Kind{chat.KindSource}, len(read))...), nil
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

// eachSource calls f with the messages of the application that stored messages stand for, without
// instructions and reasoning alone, and with texts that tell them apart. It returns the number of
// all messages, and the summaries that stand for others.
func eachSource(ctx context.Context, t *plan.Transcript, of []chat.Seq, f func(m *chat.Message, key string)) (n int, older []*chat.Message, err error) {
	all, older, err := t.Originals(ctx, of, math.MaxInt64)
	if err != nil {
		return 0, nil, err
	}
	for m, err := range all {
		if err != nil {
			return 0, nil, err
		}
		n++
		instructs := m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper
		if !instructs && (m.Role == chat.RoleTool || chat.HasContent(m.Content) || len(m.ToolCalls) > 0) {
			f(m, string(m.AppendJSON(nil)))
		}
	}
	return n, older, nil
}

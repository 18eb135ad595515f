package builtin

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
)

// afNote is a message with what Agent Framework keeps on it: its id, its group,
// its tokens, and links.
type afNote struct {
	id       string // "" for none
	contents []any
	entry    plan.Entry
	input    int // index among the given messages, -1 for a summary

	group  *afGroup // nil while there is no valid one
	tokens *int64
	reason string
	by     string // id of the summary that replaced it

	ofMessages, ofGroups []string // of a summary
}

type afGroup struct {
	id        string
	kind      chat.GroupKind
	index     int
	reasoning bool
}

// afList is the reference's list of messages: it names and annotates them bit by
// bit, so that what was stored with them stays. Grouping itself is this package's.
type afList struct {
	notes []*afNote
	bySeq map[chat.Seq]*afNote
	// counting: tokens are counted anew after each step.
	counting bool
	draft    *pipeline.Draft
}

// annotate groups the list from an index on, or from the first message without a
// group where it is negative.
func (l *afList) annotate(from int) {
	if from < 0 {
		if from = slices.IndexFunc(l.notes, func(n *afNote) bool { return n.group == nil }); from < 0 {
			return
		}
	}
	if from > 0 {
		if prev := l.notes[from-1].group; prev == nil {
			from--
		} else {
			for from > 0 && l.notes[from-1].group != nil && l.notes[from-1].group.id == prev.id {
				from--
			}
		}
	}
	l.name(from)
	index := 0
	if from > 0 && l.notes[from-1].group != nil {
		index = l.notes[from-1].group.index + 1
	}
	metas := make([]chat.Meta, 0, len(l.notes)-from)
	for _, n := range l.notes[from:] {
		metas = append(metas, n.entry.Meta)
	}
	for i, g := range chat.Groups(metas) {
		made := &afGroup{"group_" + l.notes[from+g.Start].id, g.Kind, index + i, g.HasReasoning}
		for _, n := range l.notes[from+g.Start : from+g.End] {
			n.group = made
		}
	}
}

// name gives ids to messages that have none.
func (l *afList) name(from int) {
	taken := map[string]bool{}
	for _, n := range l.notes {
		taken[n.id] = true
	}
	for i, n := range l.notes[from:] {
		if n.id != "" {
			continue
		}
		n.id = fmt.Sprintf("msg_%d", from+i)
		for k := len(l.notes); taken[n.id]; k++ {
			n.id = fmt.Sprintf("msg_%d", k)
		}
		taken[n.id] = true
	}
}

// count counts tokens from the first message that has no count to the end.
func (l *afList) count() {
	from := slices.IndexFunc(l.notes, func(n *afNote) bool { return n.tokens == nil })
	if from < 0 {
		return
	}
	for _, n := range l.notes[from:] {
		var id any
		if n.id != "" {
			id = n.id
		}
		text := pyJSON(pyObject{{"contents", n.contents}, {"message_id", id}, {"role", string(n.entry.Role)}}, true)
		tokens := max(1, int64(utf8.RuneCountInString(text)/4))
		n.tokens = &tokens
	}
}

// sync gives the draft the counts of the list.
func (l *afList) sync() {
	entries := l.draft.Entries()
	for i := range entries {
		if n := l.bySeq[entries[i].Seq]; n != nil {
			entries[i].Tokens = n.count()
		}
	}
	l.draft.Refresh()
}

func (n *afNote) count() chat.Tokens {
	if n.tokens == nil {
		return 0
	}
	return chat.Tokens(*n.tokens)
}

// afGrouped shows a strategy the groups of the list. The reference names groups by
// ids, which may repeat and may be stored with messages: the messages of one id are
// one group, wherever they stand.
type afGrouped struct {
	plan.Strategy
	list *afList
}

// Plan implements plan.Strategy.
func (s afGrouped) Plan(ctx context.Context, t *plan.Transcript) (chat.Plan, error) {
	return s.Strategy.Plan(ctx, s.list.regroup(t))
}

// regroup returns the transcript with the messages of each group id brought together.
func (l *afList) regroup(t *plan.Transcript) *plan.Transcript {
	var order []*afGroup
	members := map[string][]plan.Entry{}
	for _, e := range t.Entries {
		g := l.bySeq[e.Seq].group
		if members[g.id] == nil {
			order = append(order, g)
		}
		members[g.id] = append(members[g.id], e)
	}
	var entries []plan.Entry
	var groups []chat.Group
	for _, g := range order {
		start := len(entries)
		entries = append(entries, members[g.id]...)
		groups = append(groups, chat.Group{Kind: g.kind, Start: start, End: len(entries), HasReasoning: g.reasoning, Call: -1})
	}
	return plan.NewTranscript(entries, t.Counter, groups)
}

// Name implements Counter.
func (l *afList) Name() string { return "char4" }

// Message implements Counter: nothing is counted without its place.
func (l *afList) Message(*chat.Message) chat.Tokens { panic("a message without its place") }

// Addition implements AdditionCounter: what the strategies write is inserted.
func (l *afList) Addition(a *chat.Addition) chat.Tokens {
	text := a.Message.Content.Text
	n := &afNote{
		input: -1, ofMessages: []string{}, contents: []any{afContent("text", pyObject{{"text", text}})},
		entry: plan.Entry{Meta: chat.Meta{
			Seq: chat.Seq(len(l.draft.Entries()) + 1), Position: a.Position, Kind: a.Kind, Role: a.Message.Role, Flags: chat.HasText,
		}, Message: &a.Message},
	}
	covered := l.covered(a.Covers)
	for _, c := range covered {
		if c.id != "" {
			n.ofMessages = append(n.ofMessages, c.id)
		}
		if !slices.Contains(n.ofGroups, c.group.id) {
			n.ofGroups = append(n.ofGroups, c.group.id)
		}
	}
	n.id = fmt.Sprintf("summary_%d", len(l.notes))
	if a.Reason == "tool_result_compaction" {
		n.id = "tool_summary_" + n.ofGroups[0]
	}
	for _, c := range covered {
		c.by = n.id
	}
	// Of two summaries at one place the reference puts the newer one first.
	at := slices.IndexFunc(l.notes, func(o *afNote) bool {
		return o.entry.Position > a.Position ||
			o.entry.Position == a.Position && (plan.IsSource(o.entry.Kind) || slices.Contains(covered, o))
	})
	if at < 0 {
		at = len(l.notes)
	}
	l.notes = slices.Insert(l.notes, at, n)
	l.bySeq[n.entry.Seq] = n
	l.annotate(at)
	if l.counting {
		l.count()
		l.sync()
	}
	return n.count()
}

// covered returns the messages of a set, group by group.
func (l *afList) covered(set chat.Ranges) []*afNote {
	ordinal := map[string]int{}
	var out []*afNote
	for _, n := range l.notes {
		if _, ok := ordinal[n.group.id]; !ok {
			ordinal[n.group.id] = len(ordinal)
		}
		if set.Has(n.entry.Seq) {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(a, b *afNote) int { return ordinal[a.group.id] - ordinal[b.group.id] })
	return out
}

// runs returns the groups of the list as the vectors write them.
func (l *afList) runs() []any {
	out := []any{}
	for i := 0; i < len(l.notes); {
		g, first := l.notes[i].group, i
		for i < len(l.notes) && l.notes[i].group.id == g.id {
			i++
		}
		x := map[string]any{"kind": g.kind, "start": first, "end": i - 1}
		if g.index != len(out) {
			x["index"] = g.index
		}
		if g.reasoning {
			x["reasoning"] = true
		}
		if g.id != "group_"+l.notes[first].id {
			x["id"] = g.id
		}
		out = append(out, x)
	}
	return out
}

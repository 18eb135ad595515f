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
		if l.notes[from-1].group == nil {
			from--
		} else {
			from = l.runStart(from - 1)
		}
	}
	if call := l.openCallBefore(from); call < from {
		from = l.runStart(call)
	}
	l.name(from)
	offset := 0
	for _, n := range l.notes[:from] {
		if n.group != nil {
			offset = max(offset, n.group.index+1)
		}
	}
	l.group(from, offset)
	l.equalize(from)
}

// runStart returns the start of the run of adjacent messages with the group of a message.
func (l *afList) runStart(i int) int {
	g := l.notes[i].group
	for g != nil && i > 0 && l.notes[i-1].group != nil && l.notes[i-1].group.id == g.id {
		i--
	}
	return i
}

// group groups the messages from an index on. Groups of a call and of a later result that
// answers it are one, that of the call, wherever they stand.
func (l *afList) group(from, offset int) {
	notes := l.notes[from:]
	metas := make([]chat.Meta, len(notes))
	for i, n := range notes {
		metas[i] = n.entry.Meta
	}
	spans := chat.Groups(metas)
	of := make([]int, len(notes)) // the span of each message
	first := make([]int, len(spans))
	for k, g := range spans {
		first[k] = k
		for i := g.Start; i < g.End; i++ {
			of[i] = k
		}
	}
	var root func(k int) int
	root = func(k int) int {
		if first[k] != k {
			first[k] = root(first[k])
		}
		return first[k]
	}
	eachResult(notes, func(i int, calls []int) {
		if len(calls) == 1 && of[calls[0]] < of[i] {
			a, b := root(of[calls[0]]), root(of[i])
			first[max(a, b)] = min(a, b)
		}
	})
	reasoning := make([]bool, len(spans))
	for k, g := range spans {
		reasoning[root(k)] = reasoning[root(k)] || g.HasReasoning
	}
	index := map[string]int{}
	for k, g := range spans {
		id := "group_" + notes[spans[root(k)].Start].id
		if _, ok := index[id]; !ok {
			index[id] = offset + len(index)
		}
		made := &afGroup{id, g.Kind, index[id], reasoning[root(k)]}
		for _, n := range notes[g.Start:g.End] {
			n.group = made
		}
	}
}

// eachResult calls f with the index of every result and those of the messages that made the
// calls of its id which are open there. One call is closed by its result; where there are
// several, none is.
func eachResult(notes []*afNote, f func(result int, calls []int)) {
	open := map[string][]int{}
	for i, n := range notes {
		if n.entry.Role != chat.RoleAssistant && n.entry.Role != chat.RoleTool {
			continue
		}
		for _, c := range n.contents {
			c := c.(pyObject)
			id := c.text("call_id")
			switch kind := c.text("type"); {
			case id == "":
			case kind == "function_call" && n.entry.Role == chat.RoleAssistant:
				open[id] = append(open[id], i)
			case kind == "function_result":
				f(i, open[id])
				if len(open[id]) == 1 {
					delete(open, id)
				}
			}
		}
	}
}

// openCallBefore returns the first message before from with a call that is open at a result
// from there on, or from.
func (l *afList) openCallBefore(from int) int {
	first := from
	eachResult(l.notes, func(i int, calls []int) {
		if i >= from && len(calls) > 0 {
			first = min(first, calls[0])
		}
	})
	return first
}

// equalize includes all messages of a group of several spans of which one is included. Their
// reasons stay.
func (l *afList) equalize(from int) {
	spans := map[string]map[*afGroup]bool{}
	included := map[string]bool{}
	for _, n := range l.notes[from:] {
		if spans[n.group.id] == nil {
			spans[n.group.id] = map[*afGroup]bool{}
		}
		spans[n.group.id][n.group] = true
		included[n.group.id] = included[n.group.id] || *l.included(n)
	}
	for _, n := range l.notes[from:] {
		if included[n.group.id] && len(spans[n.group.id]) > 1 {
			*l.included(n) = true
		}
	}
}

// included returns whether a message is included: in the draft, once it is there.
func (l *afList) included(n *afNote) *bool {
	if l.draft != nil && int(n.entry.Seq) <= len(l.draft.Entries()) {
		return &l.draft.Entries()[n.entry.Seq-1].Included
	}
	return &n.entry.Included
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
		text := pySorted.write(pyObject{{"contents", n.contents}, {"message_id", id}, {"role", string(n.entry.Role)}})
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
		entry: plan.Entry{Included: true, Meta: chat.Meta{
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

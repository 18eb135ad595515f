package builtin

import (
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// The states of an entry.
const (
	stateOut       = iota // excluded, or not in the view before
	stateIn               // stays in the view
	stateCovered          // covered by an addition elsewhere
	stateRewritten        // replaced in its place
)

// window describes which entries of a view stay. Calls without results and results without
// calls are orphaned and do not stay.
type window struct {
	t      *plan.Transcript
	reason string
	states []uint8
	adds   []chat.Addition

	// of holds, by entry, the index of the call message that it belongs to: the entry
	// itself, results that answer it and the reasoning around it. It is -1 for all others,
	// including results without a call.
	of []int
	// calls holds the entries with calls, oldest first.
	calls []int
	// first and last hold the bounds of the group of each batch of calls, need the number of
	// its calls, by the first entry of the batch, which stands for it in of.
	first, last, need []int
}

// newWindow returns a window without entries.
func newWindow(t *plan.Transcript, reason string) *window {
	n := len(t.Entries)
	w := &window{
		t: t, reason: reason, states: make([]uint8, n),
		of: slices.Repeat([]int{-1}, n), first: make([]int, n), last: make([]int, n), need: make([]int, n),
	}
	groups, at := t.ViewGroups()
	for _, g := range groups {
		if g.Call < 0 {
			continue
		}
		call := int(at[g.Call])
		w.first[call], w.need[call] = int(at[g.Start]), g.Calls
		for _, k := range at[g.Start:g.End] {
			i := int(k)
			if g.Member(&t.Entries[i].Meta) {
				w.of[i], w.last[call] = call, i
			}
			if plan.MakesCalls(&t.Entries[i]) {
				w.calls = append(w.calls, i)
			}
		}
	}
	return w
}

// keepFrom keeps everything from the entry with index i on.
func (w *window) keepFrom(i int) {
	for ; i < len(w.states); i++ {
		if w.t.Entries[i].Included {
			w.states[i] = stateIn
		}
	}
}

// keepPinned keeps pinned entries: a result with its call, a call with its results.
func (w *window) keepPinned() {
	whole := map[int]bool{} // by call, whether its results stay too
	for i, e := range w.t.Entries {
		if !e.Included || !e.Pinned {
			continue
		}
		w.states[i] = stateIn
		if c := w.of[i]; c >= 0 {
			whole[c] = whole[c] || e.Role != chat.RoleTool
		}
	}
	for i, c := range w.of {
		if all, pinned := whole[c]; pinned && (all || w.t.Entries[i].Role != chat.RoleTool) {
			w.states[i] = stateIn
		}
	}
}

// answers counts the results in the window, by their call.
func (w *window) answers() []int {
	out := make([]int, len(w.of))
	for i, c := range w.of {
		if c >= 0 && w.states[i] == stateIn && w.t.Entries[i].Role == chat.RoleTool {
			out[c]++
		}
	}
	return out
}

// orphans returns the calls in the window whose results are incomplete, and the results of
// those calls and without a call.
func (w *window) orphans() (calls, results []int) {
	answers := w.answers()
	for _, c := range w.calls {
		if w.states[c] == stateIn && answers[w.of[c]] != w.need[w.of[c]] {
			calls = append(calls, c)
		}
	}
	for i, c := range w.of {
		if w.states[i] != stateIn || w.t.Entries[i].Role != chat.RoleTool {
			continue
		}
		if c < 0 || w.states[c] != stateIn || answers[c] != w.need[c] {
			results = append(results, i)
		}
	}
	return calls, results
}

// reads returns the messages that dropOrphans reads: none if all calls are complete, since then
// every orphaned result is without its call.
func (w *window) reads() []chat.Seq {
	calls, results := w.orphans()
	if len(calls) == 0 {
		return nil
	}
	return seqsOf(w.t, slices.Concat(calls, results))
}

// dropOrphans removes calls without a result and results without a call from the window.
func (w *window) dropOrphans() error {
	calls, results := w.orphans()
	if len(calls) == 0 {
		for _, i := range results {
			w.states[i] = stateOut
		}
		return nil
	}
	asked, answered := map[string]bool{}, map[string]bool{}
	for _, i := range calls {
		m, err := w.t.Read(i)
		if err != nil {
			return err
		}
		for _, c := range m.ToolCalls {
			asked[c.ID] = true
		}
	}
	for _, i := range results {
		m, err := w.t.Read(i)
		if err != nil {
			return err
		}
		if asked[m.ToolCallID] {
			answered[m.ToolCallID] = true
		} else {
			w.states[i] = stateOut
		}
	}
	for _, i := range calls {
		if err := w.shrink(i, func(id string) bool { return answered[id] }); err != nil {
			return err
		}
	}
	return nil
}

// shrink removes the calls of entry i for which stays returns false. A message without
// calls left is removed with its group, except for its text.
func (w *window) shrink(i int, stays func(id string) bool) error {
	m, err := w.t.Read(i)
	if err != nil {
		return err
	}
	n := 0
	for _, c := range m.ToolCalls {
		if stays(c.ID) {
			n++
		}
	}
	switch {
	case n == len(m.ToolCalls):
		return nil
	case n == 0:
		w.dropCall(i, m)
		return nil
	}
	short := *m
	short.ID = ""
	short.ToolCalls = slices.DeleteFunc(slices.Clone(m.ToolCalls), func(c chat.ToolCall) bool { return !stays(c.ID) })
	w.replace(i, short)
	return nil
}

// dropCall removes entry i, whose calls are all removed, with the reasoning and the results
// that belong to it. Text beside the calls stays as a message that covers all of them.
func (w *window) dropCall(i int, m *chat.Message) {
	entries := w.t.Entries
	w.states[i] = stateOut
	hasText := chat.HasContent(m.Content)
	var covers plan.SeqSet
	first, last := w.first[i], w.last[i]
	if w.need[i] != entries[i].Calls {
		first, last = i, i // others of the batch stay
	}
	for k := first; k <= last; k++ {
		stays := w.states[k] == stateIn && entries[k].Role == chat.RoleTool
		if w.of[k] != w.of[i] || stays || w.states[k] == stateCovered {
			continue
		}
		if w.states[k] = stateOut; hasText {
			w.states[k] = stateCovered
			covers.Add(entries[k].Seq)
		}
	}
	if !hasText {
		return
	}
	w.states[i] = stateRewritten
	text := *m
	text.ID, text.ToolCalls, text.Reasoning = "", nil, ""
	w.adds = append(w.adds, chat.Addition{
		Kind: chat.KindSummary, Reason: w.reason, Covers: covers.Ranges(), Position: entries[i].Position, Message: text,
	})
}

// replace replaces entry i with m.
func (w *window) replace(i int, m chat.Message) {
	w.states[i] = stateRewritten
	w.adds = append(w.adds, replacement(&w.t.Entries[i], m, w.reason))
}

// plan returns the plan whose result is the window.
func (w *window) plan() chat.Plan {
	var out plan.SeqSet
	for i := range w.t.Entries {
		if e := &w.t.Entries[i]; e.Included && w.states[i] == stateOut {
			out.Add(e.Seq)
		}
	}
	p := out.Exclude(w.reason)
	p.Additions = w.adds
	return p
}

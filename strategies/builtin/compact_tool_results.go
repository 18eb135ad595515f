package builtin

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// CompactToolResults drops or replaces the results of all but the newest tool calls;
// it is what the registry makes under the name compact_tool_results. The zero value
// drops them all. It is immutable, and safe for concurrent use if Replace is.
type CompactToolResults struct {
	// KeepLastN is how many of the newest messages with calls stay as they are, all
	// their results with them.
	KeepLastN int64
	// Threshold is how many messages a view may have before anything is done.
	Threshold int64
	// Replace returns what takes the place of a result; the tool is "unknown" where
	// the result has no call. Without Replace older results go, and their calls with
	// them, while what the assistant said beside the calls stays.
	Replace func(tool, callID, result string) string
	// CompactOffloaded: results that an application keeps elsewhere (a tool message
	// with an offload_handle) go like others, though they are small and lead to the
	// whole one.
	CompactOffloaded bool
}

func newCompactToolResults(a *plan.Args) (plan.Strategy, error) {
	s := CompactToolResults{
		KeepLastN: a.Int(plan.Int{
			Name: "keep_last_n", Min: 0, Doc: "how many of the newest messages with tool calls keep their results",
		}),
		Threshold: a.Int(plan.Int{
			Name: "threshold", Min: 0, Doc: "how many messages a view may have before anything is done",
		}),
	}
	v, ok := a.Value(plan.Param{
		Name: "replacement", Type: "string", Default: "null",
		Doc: "what takes the place of a result, with {tool_name}, {call_id} and {result_length} (in characters); without it results and their calls are dropped",
	})
	if text, isText := v.(string); isText {
		t, err := parseTemplate(text)
		if err != nil {
			a.Fault("replacement", text, "text with placeholders such as {tool_name}, other braces doubled; it has %v", err)
		}
		s.Replace = func(tool, callID, result string) string {
			return t.fill(func(placeholder string) string {
				switch placeholder {
				case "tool_name":
					return tool
				case "call_id":
					return callID
				case "result_length":
					return strconv.Itoa(utf8.RuneCountInString(result))
				}
				return ""
			})
		}
	} else if ok && v != nil {
		a.Fault("replacement", v, "a string or null")
	}
	s.CompactOffloaded = !a.Bool("keep_offloaded", true, "leave results with an offload_handle as they are")
	return s, nil
}

// Name implements Strategy.
func (CompactToolResults) Name() string { return "compact_tool_results" }

// older returns the window of the newest calls with what is pinned, and what there is
// beside it: the calls, and the results, those without a call last.
func (s CompactToolResults) older(t *plan.Transcript) (w *window, calls, results []int32) {
	if n, _ := t.Included(); int64(n) <= s.Threshold {
		return nil, nil, nil
	}
	w = newWindow(t, s.Name())
	w.keepFrom(0)
	calls = w.calls[:max(0, int64(len(w.calls))-s.KeepLastN)]
	old := make([]bool, len(t.Entries))
	for _, c := range calls {
		old[c] = true
	}
	var loose []int32
	for i := range t.Entries {
		switch c := w.of[i]; {
		case !t.Entries[i].Included || t.Entries[i].Role != chat.RoleTool:
		case c < 0:
			loose = append(loose, int32(i))
		case old[c]:
			results = append(results, int32(i))
		}
	}
	return w, calls, append(results, loose...)
}

// Reads implements Reader: the calls that are not kept, their results, and where a
// result has no call, the calls that it may be meant for.
func (s CompactToolResults) Reads(t *plan.Transcript) []chat.Seq {
	w, calls, results := s.older(t)
	if w == nil {
		return nil
	}
	var out []chat.Seq
	for _, i := range slices.Concat(calls, results, w.waiting(calls, results)) {
		out = append(out, t.Entries[i].Seq)
	}
	return out
}

// waiting returns the newer calls that lack a result, where there is one without a call.
func (w *window) waiting(older, results []int32) []int32 {
	if len(results) == 0 || w.of[results[len(results)-1]] >= 0 {
		return nil
	}
	answers := make([]int, len(w.of))
	for i, c := range w.of {
		if c >= 0 && w.t.Entries[i].Role == chat.RoleTool {
			answers[c]++
		}
	}
	var out []int32
	for _, c := range w.calls[len(older):] {
		if answers[c] < w.t.Entries[c].Calls {
			out = append(out, c)
		}
	}
	return out
}

// Plan implements Strategy.
func (s CompactToolResults) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	w, calls, results := s.older(t)
	if w == nil || len(calls)+len(results) == 0 {
		return chat.Plan{}, nil
	}
	names, late := map[callID]string{}, map[string]bool{}
	note := func(calls []int32, late map[string]bool) error {
		for _, i := range calls {
			m, err := t.Read(int(i))
			if err != nil {
				return err
			}
			for _, c := range m.ToolCalls {
				names[callID{i, c.ID}], names[callID{-1, c.ID}] = c.Name, c.Name
				late[c.ID] = true
			}
		}
		return nil
	}
	if err := errors.Join(note(calls, map[string]bool{}), note(w.waiting(calls, results), late)); err != nil {
		return chat.Plan{}, err
	}
	stays := map[callID]bool{}
	for _, i := range results {
		m, err := t.Read(int(i))
		if err != nil {
			return chat.Plan{}, err
		}
		id := callID{w.of[i], m.ToolCallID}
		switch {
		case s.kept(w, i, m), id.call < 0 && late[id.id]:
			stays[id] = true
		case s.Replace == nil:
			w.states[i] = stateOut
		default:
			s.replace(w, i, m, names[id])
		}
	}
	for _, c := range calls {
		if s.Replace != nil || t.Entries[c].Pinned {
			continue
		}
		if err := w.shrink(c, func(id string) bool { return stays[callID{c, id}] || stays[callID{-1, id}] }); err != nil {
			return chat.Plan{}, err
		}
	}
	return w.plan(), nil
}

// callID identifies a call by the index of its entry, or -1 if unknown, and its id, which
// may repeat.
type callID struct {
	call int32
	id   string
}

// kept reports whether a result is never dropped or replaced.
func (s CompactToolResults) kept(w *window, i int32, m *chat.Message) bool {
	e := &w.t.Entries[i]
	if e.Pinned || w.of[i] >= 0 && w.t.Entries[w.of[i]].Pinned {
		return true
	}
	handle := string(m.Extra["offload_handle"])
	return !s.CompactOffloaded && handle != "" && handle != `""` && handle != "null"
}

// replace replaces a result with a text, unless it has that text already.
func (s CompactToolResults) replace(w *window, i int32, m *chat.Message, tool string) {
	if tool == "" {
		tool = "unknown"
	}
	old := m.Content.String()
	text := s.Replace(tool, m.ToolCallID, old)
	if text == old && m.Content.Parts == nil {
		return
	}
	stub := *m
	stub.ID, stub.Content = "", chat.TextContent(text)
	w.replace(i, stub)
}

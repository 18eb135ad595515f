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

// compactToolResults drops or replaces the results of all but the newest tool calls.
type compactToolResults struct {
	// keepLastN is the number of the newest messages with calls that keep their results.
	keepLastN int64
	// threshold is the number of messages that a view may have without a compaction.
	threshold int64
	// replace returns the replacement of a result; the tool is "unknown" if the result has
	// no call. If it is nil, older results are dropped with their calls, but not the text
	// beside the calls.
	replace func(tool, callID, result string) string
	// compactOffloaded includes results whose content an application stores elsewhere, that
	// is, tool messages with an offload_handle.
	compactOffloaded bool
}

func newCompactToolResults(a *plan.Args) (plan.Strategy, error) {
	s := compactToolResults{
		keepLastN: a.Int(plan.Int{
			Name: "keep_last_n", Min: 0, Doc: "how many of the newest messages with tool calls keep their results",
		}),
		threshold: a.Int(plan.Int{
			Name: "threshold", Min: 0, Doc: "how many messages a view may have without a compaction",
		}),
	}
	v, ok := a.Value(plan.Param{
		Name: "replacement", Type: "string", Default: "null",
		Doc: "text that replaces a result, with {tool_name}, {call_id} and {result_length} (in characters); without it results and their calls are dropped",
	})
	if text, isText := v.(string); isText {
		t, err := parseTemplate(text)
		if err != nil {
			a.Fault("replacement", text, "text with placeholders such as {tool_name}, other braces doubled; it has %v", err)
		}
		s.replace = func(tool, callID, result string) string {
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
	s.compactOffloaded = !a.Bool("keep_offloaded", true, "keep results with an offload_handle as they are")
	return s, nil
}

// Name implements plan.Strategy.
func (compactToolResults) Name() string { return "compact_tool_results" }

// older returns a window of the whole view, the calls outside the newest ones, and their
// results, followed by the results without a call. The window is nil below the threshold.
func (s compactToolResults) older(t *plan.Transcript) (w *window, calls, results []int32) {
	if n, _ := t.Included(); int64(n) <= s.threshold {
		return nil, nil, nil
	}
	w = newWindow(t, s.Name())
	w.keepFrom(0)
	n := max(0, int64(len(w.calls))-s.keepLastN)
	for n > 0 && n < int64(len(w.calls)) && w.of[w.calls[n]] == w.of[w.calls[n-1]] {
		n-- // parallel calls stay together
	}
	calls = w.calls[:n]
	old := make([]bool, len(t.Entries))
	for _, c := range calls {
		old[c] = true
	}
	var uncalled []int32
	for i := range t.Entries {
		switch c := w.of[i]; {
		case !t.Entries[i].Included || t.Entries[i].Role != chat.RoleTool:
		case c < 0:
			uncalled = append(uncalled, int32(i))
		case old[c]:
			results = append(results, int32(i))
		}
	}
	return w, calls, append(results, uncalled...)
}

// Reads implements plan.Reader. It names the older calls, their results, and if a result has
// no call, the calls that it may answer.
func (s compactToolResults) Reads(t *plan.Transcript) []chat.Seq {
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

// waiting returns the newer calls that lack a result, if there is a result without a call.
func (w *window) waiting(older, results []int32) []int32 {
	if len(results) == 0 || w.of[results[len(results)-1]] >= 0 {
		return nil
	}
	answers := make([]int32, len(w.of))
	for i, c := range w.of {
		if c >= 0 && w.t.Entries[i].Role == chat.RoleTool {
			answers[c]++
		}
	}
	var out []int32
	for _, c := range w.calls[len(older):] {
		if answers[w.of[c]] < w.need[w.of[c]] {
			out = append(out, c)
		}
	}
	return out
}

// Plan implements plan.Strategy.
func (s compactToolResults) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
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
				names[callID{w.of[i], c.ID}], names[callID{-1, c.ID}] = c.Name, c.Name
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
		case s.replace == nil:
			w.states[i] = stateOut
		default:
			s.replaceResult(w, i, m, names[id])
		}
	}
	for _, c := range calls {
		if s.replace != nil || t.Entries[c].Pinned {
			continue
		}
		if err := w.shrink(c, func(id string) bool { return stays[callID{w.of[c], id}] || stays[callID{-1, id}] }); err != nil {
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
func (s compactToolResults) kept(w *window, i int32, m *chat.Message) bool {
	e := &w.t.Entries[i]
	if e.Pinned || w.of[i] >= 0 && w.t.Entries[w.of[i]].Pinned {
		return true
	}
	handle := string(m.Extra["offload_handle"])
	return !s.compactOffloaded && handle != "" && handle != `""` && handle != "null"
}

// replaceResult replaces a result with a text, unless it has that text already.
func (s compactToolResults) replaceResult(w *window, i int32, m *chat.Message, tool string) {
	if tool == "" {
		tool = "unknown"
	}
	old := m.Content.String()
	text := s.replace(tool, m.ToolCallID, old)
	if text == old && m.Content.Parts == nil {
		return
	}
	stub := *m
	stub.ID, stub.Content = "", chat.TextContent(text)
	w.replace(i, stub)
}

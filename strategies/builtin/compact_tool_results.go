package builtin

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// compactToolResults drops or replaces the results of all but the newest tool calls.
type compactToolResults struct {
	// keepLastN is the number of the newest messages with calls that keep their results,
	// threshold that of the messages that a view may have without a compaction.
	keepLastN, threshold int64
	// replacement is the text in place of a result. If it is nil, older results are dropped
	// with their calls, but not the text beside the calls.
	replacement *template
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
		s.replacement = &t
	} else if ok && v != nil {
		a.Fault("replacement", v, "a string or null")
	}
	s.compactOffloaded = !a.Bool("keep_offloaded", true, "keep results with an offload_handle as they are")
	return s, nil
}

func (compactToolResults) Name() string { return "compact_tool_results" }

// older returns a window of the whole view, the calls outside the newest ones, and their
// results, followed by the results without a call. There are none below the threshold.
func (s compactToolResults) older(t *plan.Transcript) (w *window, calls, results []int) {
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
	var uncalled []int
	for _, i := range included(t, func(_ int, e *plan.Entry) bool { return e.Role == chat.RoleTool }) {
		if c := w.of[i]; c < 0 {
			uncalled = append(uncalled, i)
		} else if _, old := slices.BinarySearch(calls, c); old {
			results = append(results, i)
		}
	}
	return w, calls, append(results, uncalled...)
}

// reads returns the older calls and, if there is a result without a call, the newer calls
// that lack a result, which it may answer.
func (s compactToolResults) reads(w *window, calls, results []int) []int {
	if len(results) == 0 || w.of[results[len(results)-1]] >= 0 {
		return calls
	}
	answers := w.answers()
	newer := slices.Clone(w.calls[len(calls):])
	return slices.Concat(calls, slices.DeleteFunc(newer, func(c int) bool { return answers[w.of[c]] >= w.need[w.of[c]] }))
}

// Reads implements plan.Reader. It names the calls of reads and the older results.
func (s compactToolResults) Reads(t *plan.Transcript) []chat.Seq {
	w, calls, results := s.older(t)
	return seqsOf(t, append(slices.Clone(results), s.reads(w, calls, results)...))
}

func (s compactToolResults) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	w, calls, results := s.older(t)
	if len(calls)+len(results) == 0 {
		return chat.Plan{}, nil
	}
	names, late := map[callID]string{}, map[string]bool{}
	for n, i := range s.reads(w, calls, results) {
		m, err := t.Read(i)
		if err != nil {
			return chat.Plan{}, err
		}
		for _, c := range m.ToolCalls {
			names[callID{w.of[i], c.ID}], names[callID{-1, c.ID}] = c.Name, c.Name
			late[c.ID] = late[c.ID] || n >= len(calls)
		}
	}
	stays := map[callID]bool{}
	for _, i := range results {
		m, err := t.Read(i)
		if err != nil {
			return chat.Plan{}, err
		}
		id := callID{w.of[i], m.ToolCallID}
		switch {
		case s.kept(w, i, m), id.call < 0 && late[id.id]:
			stays[id] = true
		case s.replacement == nil:
			w.states[i] = stateOut
		default:
			old := m.Content.String()
			text := s.replacement.fill(map[string]string{
				"tool_name": cmp.Or(names[id], "unknown"), "call_id": m.ToolCallID, "result_length": strconv.Itoa(utf8.RuneCountInString(old)),
			})
			if text != old || m.Content.Parts != nil {
				stub := *m
				stub.ID, stub.Content = "", chat.TextContent(text)
				w.replace(i, stub)
			}
		}
	}
	for _, c := range calls {
		if s.replacement != nil || t.Entries[c].Pinned {
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
	call int
	id   string
}

// kept reports whether a result is never dropped or replaced.
func (s compactToolResults) kept(w *window, i int, m *chat.Message) bool {
	e := &w.t.Entries[i]
	if e.Pinned || w.of[i] >= 0 && w.t.Entries[w.of[i]].Pinned {
		return true
	}
	handle := string(m.Extra["offload_handle"])
	return !s.compactOffloaded && handle != "" && handle != `""` && handle != "null"
}

// template is text with placeholders in braces; literal braces are doubled.
type template string

var templateMark = regexp.MustCompile(`\{\{|\}\}|\{[A-Za-z_][A-Za-z0-9_]*\}|[{}]`)

// parseTemplate checks a template. It accepts any placeholder name.
func parseTemplate(s string) (template, error) {
	for _, at := range templateMark.FindAllStringIndex(s, -1) {
		if at[1] == at[0]+1 {
			return "", fmt.Errorf("a single %q that is no placeholder at %q", s[at[0]], s[at[0]:])
		}
	}
	return template(s), nil
}

// fill returns the text with each placeholder replaced by its value, unknown ones by nothing.
func (t template) fill(values map[string]string) string {
	return templateMark.ReplaceAllStringFunc(string(t), func(mark string) string {
		if mark == "{{" || mark == "}}" {
			return mark[:1]
		}
		return values[strings.Trim(mark, "{}")]
	})
}

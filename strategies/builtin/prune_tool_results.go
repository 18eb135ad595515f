package builtin

import (
	"context"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/stub"
)

// pruneToolResults shortens tool calls and results without a model: repeated outputs except
// the last, and outputs and long arguments of all but the newest messages. Every message
// keeps its place.
type pruneToolResults struct {
	protect int64
	budget  int64
}

func newPruneToolResults(a *plan.Args) (plan.Strategy, error) {
	return &pruneToolResults{
		protect: a.Int(plan.Int{
			Name: "protect_last_n", Doc: "how many of the newest messages are not rewritten, except repeated outputs",
			Default: 20,
		}),
		budget: a.Int(plan.Int{
			Name: "protect_tail_tokens",
			Doc:  "any value above 0 means that the oldest message is never protected",
		}),
	}, nil
}

// Name implements plan.Strategy.
func (*pruneToolResults) Name() string { return "prune_tool_results" }

// Reads implements plan.Reader.
func (*pruneToolResults) Reads(t *plan.Transcript) []chat.Seq {
	return seqsOf(t, included(t, func(_ int, e *plan.Entry) bool { return isToolTraffic(e) }))
}

func isToolTraffic(e *plan.Entry) bool { return e.Role == chat.RoleTool || e.Calls > 0 }

// Plan implements plan.Strategy.
func (s *pruneToolResults) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	verbatim := pinnedEntries(t)
	at := make([]int, 0, len(t.Entries))
	view := make([]*chat.Message, 0, len(t.Entries))
	for k := range t.Entries {
		if !t.Entries[k].Included {
			continue
		}
		var m *chat.Message
		if isToolTraffic(&t.Entries[k]) {
			var err error
			if m, err = t.Read(k); err != nil {
				return chat.Plan{}, err
			}
		}
		verbatim[len(at)] = verbatim[k] // never behind k
		at, view = append(at, k), append(view, m)
	}
	var plan chat.Plan
	for _, p := range pruneView(view, verbatim, pruneBoundary(len(view), int(s.protect), s.budget > 0)) {
		plan.Additions = append(plan.Additions, replacement(&t.Entries[at[p.at]], p.message, p.reason))
	}
	return plan, nil
}

// The reasons of replacements.
const (
	reasonDuplicate = "duplicate_tool_result"
	reasonStubbed   = "old_tool_result"
	reasonShrunk    = "long_tool_arguments"
)

// duplicateOutput replaces an output that occurs again. Outputs that begin with
// duplicateStart are not shortened.
const (
	duplicateStart  = "[Duplicate tool output"
	duplicateOutput = duplicateStart + " — same content as a more recent call]"
)

// Lengths in characters: outputs of at least dedupeFrom are compared, and those longer than
// stubAbove become stubs. In arguments longer than shrinkAbove, strings are cut to shrinkTo.
const (
	dedupeFrom  = 200
	stubAbove   = 200
	shrinkAbove = 500
	shrinkTo    = 200
)

// pruneBoundary returns how many of the n messages of a view may be rewritten if the newest
// protect may not. With a budget the oldest always may.
func pruneBoundary(n, protect int, budget bool) int {
	if budget {
		protect = min(protect, n-1)
	}
	return max(0, n-protect)
}

// pruned is the new form of a message.
type pruned struct {
	at      int // index in the view
	message chat.Message
	reason  string
}

// pruneView rewrites the tool messages of a view: outputs that occur again anywhere, all
// others before the boundary. It does not change verbatim messages, and is idempotent.
// Other messages are not read and may be nil.
func pruneView(view []*chat.Message, verbatim []bool, boundary int) []pruned {
	calls := pruneCalls(view)
	again := pruneRepeats(view, verbatim, calls)
	var out []pruned
	for i, m := range view {
		if m == nil || verbatim[i] {
			continue
		}
		switch {
		case again[i]:
			out = append(out, pruned{i, prunedText(m, duplicateOutput), reasonDuplicate})
		case i >= boundary:
		case m.Role == chat.RoleTool:
			if line, ok := stubFor(m, calls); ok {
				out = append(out, pruned{i, prunedText(m, line), reasonStubbed})
			}
		case len(m.ToolCalls) > 0:
			short, ok := shortenArguments(m, func(c chat.ToolCall) (string, bool) { return stub.Arguments(c.Arguments, shrinkAbove, shrinkTo) })
			if ok {
				out = append(out, pruned{i, short, reasonShrunk})
			}
		}
	}
	return out
}

// pruneCalls returns the calls of a view by id; the last one counts if ids repeat.
func pruneCalls(view []*chat.Message) map[string]*chat.ToolCall {
	calls := map[string]*chat.ToolCall{}
	for _, m := range view {
		if m != nil && m.Role == chat.RoleAssistant {
			for i := range m.ToolCalls {
				calls[m.ToolCalls[i].ID] = &m.ToolCalls[i]
			}
		}
	}
	return calls
}

// pruneRepeats marks the outputs that occur again later, even if of another tool.
func pruneRepeats(view []*chat.Message, verbatim []bool, calls map[string]*chat.ToolCall) []bool {
	again := make([]bool, len(view))
	seen := map[string]bool{}
	for i := len(view) - 1; i >= 0; i-- {
		result, ok := plainResult(view[i])
		if !ok || !text.Longer(result, dedupeFrom-1) {
			continue
		}
		if seen[result] && !verbatim[i] && !isStubbed(view[i], calls) {
			again[i] = true
		}
		seen[result] = true
	}
	return again
}

// plainResult returns the text of a tool result if it is plain text.
func plainResult(m *chat.Message) (string, bool) {
	if m == nil || m.Role != chat.RoleTool || m.Content.Parts != nil {
		return "", false
	}
	return m.Content.Text, true
}

// stubFor returns the line that replaces a result, if the result is long enough.
func stubFor(m *chat.Message, calls map[string]*chat.ToolCall) (string, bool) {
	result, ok := plainResult(m)
	if !ok || !text.Longer(result, stubAbove) || strings.HasPrefix(result, duplicateStart) || isStubbed(m, calls) {
		return "", false
	}
	return stubLine(m, calls), true
}

func stubLine(m *chat.Message, calls map[string]*chat.ToolCall) string {
	tool, arguments := calledTool(m, calls)
	return stub.Line(tool, arguments, m.Content.Text)
}

func calledTool(m *chat.Message, calls map[string]*chat.ToolCall) (tool, arguments string) {
	c := calls[m.ToolCallID]
	switch {
	case c == nil:
		return "unknown", ""
	case c.Name == "":
		return "unknown", c.Arguments
	}
	return c.Name, c.Arguments
}

// isStubbed reports whether a result is a stub already. It then equals its own stub except
// for numbers and for arguments that were cut since.
func isStubbed(m *chat.Message, calls map[string]*chat.ToolCall) bool {
	tool, _ := calledTool(m, calls)
	rest := m.Content.Text
	if !strings.HasPrefix(rest, "["+tool+"]") {
		return false
	}
	rest = withoutNumbers(rest)
	pieces := strings.Split(withoutNumbers(stubLine(m, calls)), stub.Truncated)
	if !strings.HasPrefix(rest, pieces[0]) {
		return false
	}
	for _, p := range pieces {
		i := strings.Index(rest, p)
		if i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return rest == ""
}

func withoutNumbers(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == ',' || r == '?' {
			return -1
		}
		return r
	}, s)
}

func prunedText(m *chat.Message, text string) chat.Message {
	out := *m
	out.Content = chat.TextContent(text)
	return out
}

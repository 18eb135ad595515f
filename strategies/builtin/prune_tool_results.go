package builtin

import (
	"cmp"
	"context"
	"slices"
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

func (*pruneToolResults) Name() string { return "prune_tool_results" }

func (*pruneToolResults) Reads(t *plan.Transcript) []chat.Seq {
	return seqsOf(t, included(t, func(_ int, e *plan.Entry) bool { return isToolTraffic(e) }))
}

func isToolTraffic(e *plan.Entry) bool { return e.Role == chat.RoleTool || e.Calls > 0 }

// Plan implements plan.Strategy. It rewrites outputs that occur again anywhere, and all
// others before the newest messages.
func (s *pruneToolResults) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
	view := included(t, anyEntry)
	messages := make([]*chat.Message, len(view)) // nil for those that are not read
	calls := map[string]*chat.ToolCall{}         // by id; the last one counts if ids repeat
	for n, i := range view {
		if !isToolTraffic(&t.Entries[i]) {
			continue
		}
		m, err := t.Read(i)
		if err != nil {
			return chat.Plan{}, err
		}
		messages[n] = m
		for k := range m.ToolCalls {
			if m.Role == chat.RoleAssistant {
				calls[m.ToolCalls[k].ID] = &m.ToolCalls[k]
			}
		}
	}
	protect := int(s.protect)
	if s.budget > 0 {
		protect = min(protect, len(view)-1)
	}
	pinned := pinnedEntries(t)
	stays := func(n int) bool { return pinned[view[n]] }
	again := pruneRepeats(messages, stays, calls)
	var out chat.Plan
	for n, m := range messages {
		if m == nil || stays(n) {
			continue
		}
		short, reason := *m, ""
		switch {
		case again[n]:
			short.Content, reason = chat.TextContent(duplicateOutput), reasonDuplicate
		case n >= len(view)-protect:
		case m.Role == chat.RoleTool:
			if line, ok := stubFor(m, calls); ok {
				short.Content, reason = chat.TextContent(line), reasonStubbed
			}
		default:
			cut, ok := shortenArguments(m, func(c chat.ToolCall) (string, bool) { return stub.Arguments(c.Arguments, shrinkAbove, shrinkTo) })
			if ok {
				short, reason = cut, reasonShrunk
			}
		}
		if reason != "" {
			out.Additions = append(out.Additions, replacement(&t.Entries[view[n]], short, reason))
		}
	}
	return out, nil
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

// pruneRepeats marks the outputs that occur again later, even if of another tool.
func pruneRepeats(view []*chat.Message, stays func(n int) bool, calls map[string]*chat.ToolCall) []bool {
	again := make([]bool, len(view))
	seen := map[string]bool{}
	for n, m := range slices.Backward(view) {
		result, ok := plainResult(m)
		if !ok || !text.Longer(result, dedupeFrom-1) {
			continue
		}
		again[n] = seen[result] && !stays(n) && !isStubbed(m, calls)
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
	tool, arguments := calledTool(m, calls)
	return stub.Line(tool, arguments, result), true
}

func calledTool(m *chat.Message, calls map[string]*chat.ToolCall) (tool, arguments string) {
	if c := calls[m.ToolCallID]; c != nil {
		tool, arguments = c.Name, c.Arguments
	}
	return cmp.Or(tool, "unknown"), arguments
}

// isStubbed reports whether a result is a stub already. It then equals its own stub except
// for numbers and for arguments that were cut since.
func isStubbed(m *chat.Message, calls map[string]*chat.ToolCall) bool {
	tool, arguments := calledTool(m, calls)
	rest := m.Content.Text
	if !strings.HasPrefix(rest, "["+tool+"]") {
		return false
	}
	rest = withoutNumbers(rest)
	pieces := strings.Split(withoutNumbers(stub.Line(tool, arguments, m.Content.Text)), stub.Truncated)
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

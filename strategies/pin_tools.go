package strategies

import (
	"context"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
)

// pinTools pins the groups that call one of some tools. It has no name in a
// Registry: Pipeline.PinTools asks for it.
type pinTools struct{ names []string }

// Name implements Strategy.
func (pinTools) Name() string { return "pin_tools" }

// Plan implements Strategy.
func (pinTools) Plan(context.Context, *Transcript) (chat.Plan, error) { return chat.Plan{}, nil }

// Reads implements Reader: what makes calls.
func (pinTools) Reads(t *Transcript) []chat.Seq {
	var out []chat.Seq
	for i := range t.Entries {
		if makesCalls(&t.Entries[i]) {
			out = append(out, t.Entries[i].Seq)
		}
	}
	return out
}

// Pins implements Pinner. It goes by places, not by groups: where the whole log is
// visible, a call and its stand-in stand beside each other and are two groups.
func (p pinTools) Pins(t *Transcript) ([]chat.Seq, error) {
	var out []chat.Seq
	for i := 0; i < len(t.Entries); i++ {
		e := &t.Entries[i]
		if !makesCalls(e) {
			continue
		}
		m, err := t.Read(i)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(m.ToolCalls, func(c chat.ToolCall) bool { return slices.Contains(p.names, c.Name) }) {
			continue
		}
		for k := i - 1; k >= 0 && t.Entries[k].ReasoningOnly(); k-- {
			out = append(out, t.Entries[k].Seq)
		}
		out = append(out, e.Seq)
		for i+1 < len(t.Entries) && belongs(&t.Entries[i+1], e) {
			i++
			out = append(out, t.Entries[i].Seq)
		}
	}
	return out, nil
}

// belongs reports whether what stands behind a call is its stand-in, its reasoning
// or a result.
func belongs(e, call *Entry) bool {
	return e.Kind != chat.KindSummary && (e.Position == call.Position || e.ReasoningOnly() || e.Role == chat.RoleTool)
}

func makesCalls(e *Entry) bool { return e.Role == chat.RoleAssistant && e.Calls > 0 }

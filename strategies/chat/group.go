package chat

// GroupKind is the kind of an atomic group.
type GroupKind string

// The kinds of group.
const (
	GroupSystem        GroupKind = "system"
	GroupUser          GroupKind = "user"
	GroupAssistantText GroupKind = "assistant_text"
	GroupToolCall      GroupKind = "tool_call"
)

// Group is a run of messages that stay or go together: the entries with index
// Start to End-1 of the list it was made from.
type Group struct {
	Kind         GroupKind
	Start, End   int
	HasReasoning bool
}

// Groups splits metadata in view order into atomic groups, in one pass. Every
// entry is in exactly one group.
//
// A tool call takes the reasoning-only assistant messages directly before it,
// those directly behind it, and then the tool messages that follow; call ids do
// not matter for grouping, only adjacency. Tool messages without a call before
// them are a tool_call group of their own. Developer and unknown roles count as
// assistant text.
func Groups(ms []Meta) []Group {
	groups := make([]Group, 0, len(ms)/2+1)
	for i := 0; i < len(ms); {
		if end := skip(ms, i, (*Meta).reasoningOnly); end > i && (end == len(ms) || !isCall(&ms[end])) {
			for ; i < end; i++ { // all at once: looking ahead from each would be quadratic
				groups = append(groups, Group{Kind: GroupAssistantText, Start: i, End: i + 1, HasReasoning: true})
			}
			continue
		}
		g := nextGroup(ms, i)
		groups = append(groups, g)
		i = g.End
	}
	return groups
}

// nextGroup is the group at i, where reasoning is that of a call.
func nextGroup(ms []Meta, i int) Group {
	m := &ms[i]
	one := Group{Start: i, End: i + 1, HasReasoning: m.Has(HasReasoning)}
	switch {
	case m.Role == RoleSystem:
		one.Kind = GroupSystem
		one.HasReasoning = false
	case m.Role == RoleUser:
		one.Kind = GroupUser
		one.HasReasoning = false
	case m.reasoningOnly():
		g := callGroup(ms, skip(ms, i, (*Meta).reasoningOnly))
		g.Start, g.HasReasoning = i, true
		return g
	case isCall(m):
		return callGroup(ms, i)
	case m.Role == RoleTool:
		return Group{Kind: GroupToolCall, Start: i, End: skip(ms, i, isResult)}
	default:
		one.Kind = GroupAssistantText
	}
	return one
}

// callGroup is the group of the call message at i: itself, reasoning, results.
func callGroup(ms []Meta, i int) Group {
	reasoning := skip(ms, i+1, (*Meta).reasoningOnly)
	return Group{
		Kind: GroupToolCall, Start: i, End: skip(ms, reasoning, isResult),
		HasReasoning: ms[i].Has(HasReasoning) || reasoning > i+1,
	}
}

func skip(ms []Meta, i int, is func(*Meta) bool) int {
	for i < len(ms) && is(&ms[i]) {
		i++
	}
	return i
}

func isCall(m *Meta) bool   { return m.Role == RoleAssistant && m.Calls > 0 }
func isResult(m *Meta) bool { return m.Role == RoleTool }

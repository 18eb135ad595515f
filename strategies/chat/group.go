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
	// Call is the index of the message that makes the calls, -1 for a group
	// without one.
	Call int
	// Answers counts the results in the group that answer its call. A result
	// that is not Paired stands in the group but answers nothing.
	Answers int
}

// Member reports whether m, a message of the group, belongs to its call: the call
// itself, its reasoning, or a result that answers it.
func (g *Group) Member(m *Meta) bool {
	return m.Role != RoleTool || g.Call >= 0 && m.Has(Paired)
}

// OpenFrom returns the index of the first message that is not complete yet: the
// start of the first group that waits for results, or reasoning at the end that
// may be that of a call to come. A user message ends the waiting, so only what
// stands behind the position user counts. at returns the messages that groups was
// made from. OpenFrom returns -1 where nothing is open.
func OpenFrom(groups []Group, user Seq, at func(i int) *Meta) int {
	first, tail := -1, true
	for k := len(groups) - 1; k >= 0; k-- {
		g := &groups[k]
		start := g.Start
		for start < g.Call && at(start).Position <= user {
			start++ // reasoning that the user message cuts off from the call
		}
		if at(start).Position <= user {
			break
		}
		tail = tail && g.Call < 0 && at(g.End-1).reasoningOnly()
		if tail || g.Call >= 0 && at(g.Call).Calls > g.Answers {
			first = start
		}
	}
	return first
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
	g := Grouper{groups: make([]Group, 0, len(ms)/2+1)}
	for i := range ms {
		g.Add(&ms[i])
	}
	return g.groups
}

// Grouper groups messages as they come: after each of them its groups are those
// that Groups finds in all there were. The zero value is ready. A Grouper is for
// one goroutine.
type Grouper struct {
	groups   []Group
	messages int
	tail     tail
	// thoughts is how many groups at the end are reasoning that waits for its call.
	thoughts int
}

// tail is what the last group may still take.
type tail uint8

const (
	tailClosed  tail = iota
	tailCall         // a call without results: reasoning and results
	tailResults      // results
)

// Groups returns the groups so far. The slice is the Grouper's: Add may change its
// last elements.
func (g *Grouper) Groups() []Group { return g.groups }

// Add takes the next message, in constant time over all calls.
func (g *Grouper) Add(m *Meta) {
	i := g.messages
	g.messages++
	one := Group{Kind: GroupAssistantText, Start: i, End: i + 1, HasReasoning: m.Has(HasReasoning), Call: -1}
	next, thoughts := tailClosed, 0
	switch {
	case m.Role == RoleSystem:
		one.Kind, one.HasReasoning = GroupSystem, false
	case m.Role == RoleUser:
		one.Kind, one.HasReasoning = GroupUser, false
	case m.Role == RoleTool:
		if g.tail != tailClosed {
			last := &g.groups[len(g.groups)-1]
			last.End = g.messages
			if last.Call >= 0 && m.Flags&Paired != 0 {
				last.Answers++
			}
			g.tail = tailResults
			return
		}
		one.Kind, one.HasReasoning, next = GroupToolCall, false, tailResults
	case isCall(m):
		one.Kind, one.Call, next = GroupToolCall, i, tailCall
		if g.thoughts > 0 {
			first := len(g.groups) - g.thoughts
			one.Start, one.HasReasoning = g.groups[first].Start, true
			g.groups = g.groups[:first]
		}
	case m.reasoningOnly():
		if g.tail == tailCall {
			last := &g.groups[len(g.groups)-1]
			last.End, last.HasReasoning = g.messages, true
			return
		}
		thoughts = g.thoughts + 1
	}
	g.groups = append(g.groups, one)
	g.tail, g.thoughts = next, thoughts
}

func isCall(m *Meta) bool { return m.Role == RoleAssistant && m.Calls > 0 }

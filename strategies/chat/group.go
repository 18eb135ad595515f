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

// Group is an atomic group: the entries Start to End-1 of the list it was made from, which
// are included or excluded together.
type Group struct {
	Kind         GroupKind
	Start, End   int
	HasReasoning bool
	// Call is the index of the first message that makes calls, -1 if there is none; Calls
	// counts the calls of all of them.
	Call, Calls int
	// Answers counts the results that answer the calls. A result that is not Paired is in
	// the group but answers nothing.
	Answers int
}

// Waits reports whether calls of the group have no result.
func (g *Group) Waits() bool { return g.Calls > g.Answers }

// Member reports whether m, a message of the group, belongs to its calls: a call itself,
// its reasoning, or a result that answers it.
func (g *Group) Member(m *Meta) bool {
	return m.Role != RoleTool || g.Call >= 0 && m.Has(Paired)
}

// OpenFrom returns the index of the first incomplete message: the start of the last group if
// it waits for results, or reasoning at the end that may precede a call. A group before others
// waits no more: its calls are unanswered. Neither does one before the position passed, at
// which a message stands that is not among the groups. at returns the messages that groups was
// made from. OpenFrom returns -1 if everything is complete.
func OpenFrom(groups []Group, passed Seq, at func(i int) *Meta) int {
	first := -1
	for k := len(groups) - 1; k >= 0; k-- {
		g := &groups[k]
		start := g.Start
		for start < g.Call && at(start).Position <= passed {
			start++ // a message separates the reasoning from the call
		}
		switch {
		case at(start).Position <= passed:
			return first
		case g.Call < 0 && at(g.End-1).reasoningOnly():
			first = start
		case first < 0 && g.Waits():
			return start
		default:
			return first
		}
	}
	return first
}

// Groups splits metadata in view order into atomic groups, in one pass. Every entry is in
// exactly one group.
//
// A tool call includes the reasoning-only assistant messages directly before and after it, the
// Parallel calls behind it, and the tool messages that follow. Grouping depends on adjacency alone, not on call ids.
// Tool messages without a preceding call form a tool_call group of their own. Developer and
// unknown roles count as assistant text. Groups of the other kinds have one message each.
func Groups(ms []Meta) []Group {
	return GroupsOf(len(ms), func(i int) *Meta { return &ms[i] })
}

// GroupsOf is Groups of the n messages that at returns.
func GroupsOf(n int, at func(i int) *Meta) []Group {
	g := Grouper{groups: make([]Group, 0, n)}
	for i := range n {
		g.Add(at(i))
	}
	return g.groups
}

// Grouper computes Groups incrementally. The zero value is ready to use. It is not safe for
// concurrent use.
type Grouper struct {
	groups   []Group
	messages int
	tail     tail
	// thoughts is the number of groups at the end that are reasoning without a call so far.
	thoughts int
}

// tail is the kind of message that may still join the last group.
type tail uint8

const (
	tailClosed  tail = iota
	tailCall         // a call without results: reasoning and results
	tailResults      // results
)

// Groups returns the groups so far. Add may change the last elements of the slice.
func (g *Grouper) Groups() []Group { return g.groups }

// Add adds the next message in amortized constant time.
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
	case isCall(m) && m.Flags&Parallel != 0 && g.tail == tailCall:
		last := &g.groups[len(g.groups)-1]
		last.End, last.Calls, last.HasReasoning = g.messages, last.Calls+m.Calls, last.HasReasoning || one.HasReasoning
		return
	case isCall(m):
		one.Kind, one.Call, one.Calls, next = GroupToolCall, i, m.Calls, tailCall
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

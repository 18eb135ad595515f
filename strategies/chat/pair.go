package chat

import "slices"

// Pairer finds which tool results answer a call, by their ids, and marks them
// Paired. Feed it the source messages of a session in log order; the zero value
// is the start of a session. Everything else goes by that mark: see Groups.
//
// A result pairs when it stands in the run of results directly behind a tool
// call message (reasoning-only messages may stand between the call and its first
// result) and one of that message's calls of that id has no result yet. Ids
// repeat in real logs, so only that message's own calls are considered: these
// are the nearest. The SQL function append does the same; a test holds the two
// against each other.
type Pairer struct {
	open     []string // ids of the current call message without a result
	answered bool     // a result has come since the call message
	pending  bool     // an earlier call message was left behind with open calls
}

// Describe takes the next message, as the source message with number seq, and
// returns its metadata with Paired set where it answers a call.
func (p *Pairer) Describe(m *Message, seq Seq) Meta {
	meta := m.Meta(seq)
	if paired, _ := p.Next(m.Role, m.CallIDs(), m.ToolCallID, meta.ReasoningOnly()); paired {
		meta.Flags |= Paired
	}
	return meta
}

// Next takes the next message and reports whether it is a paired result, and
// whether it makes the log one that needs a repair: a result without its call,
// or a user message behind calls that were never answered.
func (p *Pairer) Next(role Role, callIDs []string, toolCallID string, reasoningOnly bool) (paired, fault bool) {
	switch {
	case role == RoleTool:
		p.answered = true
		i := slices.Index(p.open, toolCallID)
		if i < 0 {
			return false, true
		}
		p.open = slices.Delete(slices.Clone(p.open), i, i+1)
		return true, false
	case reasoningOnly && !p.answered && len(p.open) > 0:
		return false, false
	}
	if len(p.open) > 0 {
		p.pending = true
	}
	if role != RoleAssistant {
		callIDs = nil // Groups takes no other role for a call either
	}
	p.open, p.answered = callIDs, false
	if role == RoleUser && p.pending {
		p.pending = false
		return false, true
	}
	return false, false
}

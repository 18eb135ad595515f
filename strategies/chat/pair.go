package chat

import "slices"

// Pairer finds by their ids the tool results that answer a call and marks them Paired. Pass
// it the source messages of a session in log order; the zero value is the start of a
// session. All other code relies on the flag: see Groups.
//
// A result is paired if it is in the run of results directly after a call message
// (reasoning-only messages may precede the first result) and a call with its id in that
// message has no result yet. Ids repeat in real logs, so calls of earlier messages are not
// considered. The SQL function append does the same; a test compares the two.
type Pairer struct {
	open     []string // ids of the current call message without a result
	answered bool     // a result has come since the call message
	pending  bool     // an earlier call message has open calls
}

// Describe adds the next message, as the source with number seq, and returns its metadata
// with Paired set if it answers a call.
func (p *Pairer) Describe(m *Message, seq Seq) Meta {
	meta := m.Meta(seq)
	if paired, _ := p.Next(m.Role, m.CallIDs(), m.ToolCallID, meta.ReasoningOnly()); paired {
		meta.Flags |= Paired
	}
	return meta
}

// Next adds the next message and reports whether it is a paired result, and whether it
// makes the log need a repair: a result without its call, or a user message after
// unanswered calls.
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
		callIDs = nil // as in Groups, other roles make no calls
	}
	p.open, p.answered = callIDs, false
	if role == RoleUser && p.pending {
		p.pending = false
		return false, true
	}
	return false, false
}

package chat

import "slices"

// Pairer finds by their ids the tool results that answer a call and marks them Paired, and
// the call messages that continue the batch of the one before and marks them Parallel. Pass
// it the source messages of a session in log order; the zero value is the start of a
// session. All other code relies on the flags: see Groups.
//
// Call messages with only reasoning between them are one batch (parallel calls that were
// stored one by one), unless a result has come between, an id repeats, which is a call made
// again, or one is from before tools and has no id. A result is paired if it is in the run of
// results directly after a batch (reasoning-only messages may precede the first result) and a
// call of the batch with its id has no result yet. Ids repeat in real logs, so calls of earlier
// batches are not considered. The SQL function append does the same; a test compares the two.
type Pairer struct {
	open     []string // ids of the current batch without a result
	answered bool     // a result has come since the batch
}

// Describe adds the next message, as the source with number seq, and returns its metadata
// with Paired and Parallel set as they apply.
func (p *Pairer) Describe(m *Message, seq Seq) Meta {
	meta := m.Meta(seq)
	flags, _ := p.Next(m.Role, m.CallIDs(), m.ToolCallID, meta.ReasoningOnly())
	meta.Flags |= flags
	return meta
}

// Next adds the next message and returns its flags Paired and Parallel, and whether it makes
// the log need a repair: a result without its call, or anything but results after calls that
// have none.
func (p *Pairer) Next(role Role, callIDs []string, toolCallID string, reasoningOnly bool) (flags Flags, fault bool) {
	if role != RoleAssistant {
		callIDs = nil // as in Groups, other roles make no calls
	}
	waits := len(p.open) > 0 && !p.answered
	again := func() bool {
		return slices.Contains(p.open, "") ||
			slices.ContainsFunc(callIDs, func(id string) bool { return id == "" || slices.Contains(p.open, id) })
	}
	switch {
	case role == RoleTool:
		p.answered = true
		i := slices.Index(p.open, toolCallID)
		if i < 0 {
			return 0, true
		}
		p.open = slices.Delete(slices.Clone(p.open), i, i+1)
		return Paired, false
	case waits && reasoningOnly:
		return 0, false
	case waits && len(callIDs) > 0 && !again():
		p.open = slices.Concat(p.open, callIDs)
		return Parallel, false
	}
	fault = len(p.open) > 0
	p.open, p.answered = callIDs, false
	return 0, fault
}

package chat

import (
	"errors"
	"fmt"
	"strings"
)

// usable returns what keeps a provider from taking the message: a role that the format does not
// have, a result that names no call, a call without an id or a function. What is stored already
// may have them (see ViolationForeignRole). The SQL function of this name, "unusable", returns
// the same.
func (m *Message) usable() error {
	switch {
	case !m.Role.Known():
		role := []rune(m.Role)
		hint := ""
		if r := m.Role.Canonical(); r != "" {
			hint = "; this one is " + string(r)
		}
		return fmt.Errorf("role %q: want system, developer, user, assistant, tool or function%s", string(role[:min(len(role), 40)]), hint)
	case m.Legacy:
		return nil // neither calls nor results had ids
	case m.Role == RoleTool && m.ToolCallID == "":
		return errors.New("tool_call_id: missing; a tool message names the call that it answers")
	}
	for _, c := range m.ToolCalls {
		switch {
		case c.ID == "":
			return errors.New("tool_calls: a call has no id; its result could not name it")
		case c.Name == "":
			return errors.New("tool_calls: a call has no function with a name")
		}
	}
	return nil
}

// Adopt gives the results of a history that name no call one, as other programs mean them: the
// call of the batch before them if that is the only one without a result. Others get an id that
// no call has: their call is missing. It changes messages in place.
func Adopt(messages []Message) {
	var p Pairer
	for i := range messages {
		m := &messages[i]
		if m.Role == RoleTool && m.ToolCallID == "" && !m.Legacy {
			m.ToolCallID = "missing"
			if len(p.open) == 1 {
				m.ToolCallID = p.open[0]
			}
		}
		p.Describe(m, 1)
	}
}

// Canonical returns the role of the format that a foreign name stands for, "" if that is not
// certain.
func (r Role) Canonical() Role {
	switch lower := Role(strings.ToLower(string(r))); lower {
	case "ai", "bot", "model", "agent":
		return RoleAssistant
	case "human":
		return RoleUser
	default:
		if lower.Known() {
			return lower
		}
		return ""
	}
}

package formats

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// prompt returns the messages in a form that providers take, and counts the changes:
// roles are those that an API has, and the calls of a message have different ids. Outside
// chat-completions the calls of the whole session have, and there are no legacy calls; in the formats
// of OpenAI's Responses and of Anthropic, and of their agents, ids have the characters that these take.
// ms is not changed.
func (e *encoder) prompt(ms []chat.Message, f Format) []chat.Message {
	out := slices.Clone(ms)
	ids := newCallIDs(out, f.encode != nil)
	ids.strict = slices.Contains([]string{"anthropic", "claude-code", "responses", "codex"}, f.Name)
	for i := range out {
		m := &out[i]
		if role := apiRole(m.Role); role != m.Role {
			e.lose("role")
			m.Role = role
			// Written as a user's it would be a result.
			if kept := slices.DeleteFunc(slices.Clone(m.Content.Parts), isToolResult); len(kept) < len(m.Content.Parts) {
				e.loseN("part tool_result", len(m.Content.Parts)-len(kept))
				if m.Content.Parts = kept; len(kept) == 0 {
					m.Content = chat.Content{Null: true}
				}
			}
		}
		if m.Legacy && f.encode != nil {
			e.lose("legacy call")
			m.Legacy = false
			if m.Role == chat.RoleAssistant {
				c := m.ToolCalls[0]
				m.ToolCalls = []chat.ToolCall{{Type: "function", Name: c.Name, Arguments: c.Arguments}}
			}
		}
		e.loseN("call id", ids.next(m))
	}
	return out
}

func isToolResult(p chat.Part) bool { return p.Type == "tool_result" }

// apiRole returns the role of an API for one as another program writes it. A role that no API
// has, or a function's that is not read as a result (see chat.Message.Legacy), becomes that of the
// user: a text from outside the model.
func apiRole(r chat.Role) chat.Role {
	if role := r.Canonical(); role != "" && role != chat.RoleFunction {
		return role
	}
	return chat.RoleUser
}

// notInIDs matches a character that Anthropic and OpenAI refuse in the id of a call.
var notInIDs = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// callIDs gives the calls of a session different ids, and their results the same.
type callIDs struct {
	taken map[string]bool // ids that the session has
	last  map[string]int  // the last number after an id
	used  map[string]bool // ids written so far
	whole bool            // used is of the session, not of a batch of calls
	// strict reports that ids with characters of notInIDs are changed.
	strict bool
	open   map[string][]string
	// answered reports that a result has come since the last calls. Calls before it are one
	// batch, even if they are in several messages.
	answered bool
}

func newCallIDs(ms []chat.Message, whole bool) *callIDs {
	c := &callIDs{taken: map[string]bool{}, last: map[string]int{}, used: map[string]bool{}, whole: whole, answered: true}
	for i := range ms {
		for _, id := range ms[i].CallIDs() {
			c.taken[id] = true
		}
	}
	return c
}

// next changes the ids of the next message and returns how many it changed. It does not write
// to the slices of m. A result has the id of the first call before it, with the id that it
// answers, that has none yet.
func (c *callIDs) next(m *chat.Message) (changed int) {
	if m.Role == chat.RoleTool {
		c.answered = true
		if ids := c.open[m.ToolCallID]; len(ids) > 0 {
			c.open[m.ToolCallID] = ids[1:]
			m.ToolCallID = ids[0]
		}
		return 0
	}
	if m.Role != chat.RoleAssistant || len(m.ToolCalls) == 0 || m.Legacy {
		return 0
	}
	if c.answered {
		if !c.whole {
			clear(c.used)
		}
		c.open, c.answered = map[string][]string{}, false
	}
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		call := &m.ToolCalls[i]
		id := call.ID
		if id == "" || c.used[id] || c.strict && notInIDs.MatchString(id) {
			*call = renamed(*call, c.fresh(id))
			changed++
		}
		c.used[call.ID] = true
		c.open[id] = append(c.open[id], call.ID)
	}
	return changed
}

// renamed returns a call with another id. Its other fields stay.
func renamed(c chat.ToolCall, id string) chat.ToolCall {
	c.ID = id
	if o, err := rawjson.ParseObject(c.Raw); err == nil {
		o["id"] = rawjson.Quote(id)
		c.Raw = rawjson.Quote(map[string]json.RawMessage(o))
	}
	return c
}

// fresh returns an id that the session does not have.
func (c *callIDs) fresh(id string) string {
	if id == "" {
		id = "call"
	}
	if c.strict {
		id = notInIDs.ReplaceAllString(id, "_")
	}
	for n := max(c.last[id], 1) + 1; ; n++ {
		if next := fmt.Sprintf("%s_%d", id, n); !c.taken[next] {
			c.taken[next], c.last[id] = true, n
			return next
		}
	}
}

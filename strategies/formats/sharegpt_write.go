package formats

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// encodeShareGPT writes {"conversations": …}.
func encodeShareGPT(e *encoder, s chat.Session) error {
	var doc builder
	doc.strIf("session_id", s.ID)
	doc.strIf("model", s.Model)
	var turns []json.RawMessage
	calls := 0
	for i := 0; i < len(s.Messages); i++ {
		m := &s.Messages[i]
		from := e.from(m)
		var b builder
		b.str("from", from)
		if m.Role == chat.RoleTool {
			end := i + 1
			for end < len(s.Messages) && s.Messages[end].Role == chat.RoleTool && object(s.Messages[end].Extra).object("sharegpt") == nil {
				end++
			}
			b.str("value", e.shareResults(s.Messages[i:end]))
			i = end - 1
		} else {
			e.envelope(m, "sharegpt")
			text := e.shareText(m)
			if m.Role == chat.RoleAssistant {
				text = e.shareCallText(text, m, s.Messages[i+1:], calls)
				calls += len(m.ToolCalls)
			}
			b.str("value", text)
		}
		b.rest(e.besides(object(m.Extra).object("sharegpt"), "from", "value"))
		turns = append(turns, b.done())
	}
	doc.raw("conversations", list(turns))
	e.documentExtra(&doc, s, "conversations", "conversation", "system")
	return e.line(doc.done())
}

func (e *encoder) from(m *chat.Message) string {
	switch m.Role {
	case chat.RoleSystem, chat.RoleTool:
		return string(m.Role)
	case chat.RoleUser:
		return "human"
	case chat.RoleAssistant:
		return "gpt"
	case chat.RoleDeveloper:
		e.lose("role")
		return "system"
	}
	if _, taken := shareRoles[string(m.Role)]; taken {
		e.lose("role")
	}
	return string(m.Role)
}

// shareText is the text of a message; all that is no text is lost.
func (e *encoder) shareText(m *chat.Message) string {
	parts := m.Content.Parts
	for _, p := range parts {
		switch {
		case p.IsReasoning():
			e.lose("reasoning")
		case p.IsMedia():
			e.lose("part " + p.Type)
		}
	}
	if len(parts) > 1 || len(parts) == 1 && !isPlain(parts[0]) && !p0IsLost(parts[0]) {
		e.lose("parts")
	}
	text := m.Content.String()
	if m.Role == chat.RoleAssistant && strings.Contains(text, "<tool_call>") {
		e.lose("text")
	}
	return text
}

// p0IsLost: the only part has been counted by itself.
func p0IsLost(p chat.Part) bool { return p.IsReasoning() || p.IsMedia() }

// shareCallText adds the calls of m to its text. An id goes along where reading
// would not find it: by default a call has that of the result in its place.
func (e *encoder) shareCallText(text string, m *chat.Message, behind []chat.Message, before int) string {
	var b bytes.Buffer
	b.WriteString(text)
	for i, c := range m.ToolCalls {
		own, more := callExtra(c, "sharegpt")
		if more {
			e.lose("call extra")
		}
		if c.Type == "custom" {
			e.lose("custom call")
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		var o builder
		if c.ID != readID(i, behind, before) {
			o.str("id", c.ID)
		}
		o.str("name", c.Name)
		if raw, ok := arguments(c.Arguments); ok {
			o.raw("arguments", raw)
		} else {
			o.str("arguments", c.Arguments)
		}
		o.rest(e.besides(own, "id", "name", "arguments"))
		b.WriteString("<tool_call>\n")
		b.Write(o.done())
		b.WriteString("\n</tool_call>")
	}
	return b.String()
}

// readID is the id that reading gives the call at index i of a message.
func readID(i int, behind []chat.Message, before int) string {
	if i < len(behind) {
		for k := range i + 1 {
			if behind[k].Role != chat.RoleTool {
				return "call_" + strconv.Itoa(before+i+1)
			}
		}
		if behind[i].ToolCallID != "" {
			return behind[i].ToolCallID
		}
	}
	return "call_" + strconv.Itoa(before+i+1)
}

// shareResults is the value of a turn with the results of a call.
func (e *encoder) shareResults(ms []chat.Message) string {
	var b bytes.Buffer
	for i := range ms {
		m := &ms[i]
		e.envelope(m, "name", "sharegpt")
		if m.ToolCallID == "" {
			e.lose("tool_call_id")
		}
		var o builder
		o.strIf("tool_call_id", m.ToolCallID)
		o.strIf("name", m.Name)
		o.str("content", e.shareText(m))
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("<tool_response>\n")
		b.Write(o.done())
		b.WriteString("\n</tool_response>")
	}
	return b.String()
}

package formats

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// encodeShareGPT writes {"conversations": …}.
func encodeShareGPT(e *encoder, s chat.Session) {
	doc := buildDocument(s)
	var turns []json.RawMessage
	calls := 0
	for i := 0; i < len(s.Messages); i++ {
		m := &s.Messages[i]
		from := e.from(m)
		b := rawjson.Build("from", from)
		if m.Role == chat.RoleTool {
			end := i + 1
			for end < len(s.Messages) && s.Messages[end].Role == chat.RoleTool && object(s.Messages[end].Extra).Object("sharegpt") == nil {
				end++
			}
			b.Add("value", rawjson.Quote(e.shareResults(s.Messages[i:end])))
			i = end - 1
		} else {
			e.envelope(m, "sharegpt")
			text := e.shareText(m)
			if m.Role == chat.RoleAssistant {
				text = e.shareCallText(text, m, s.Messages[i+1:], calls)
				calls += len(m.ToolCalls)
			}
			b.Add("value", rawjson.Quote(text))
		}
		b.Rest(e.excluding(object(m.Extra).Object("sharegpt"), "from", "value"))
		turns = append(turns, b.JSON())
	}
	doc.Add("conversations", rawjson.List(turns))
	e.document(doc, s, "conversations", "conversation", "system")
}

func (e *encoder) from(m *chat.Message) string {
	switch m.Role {
	case chat.RoleUser:
		return "human"
	case chat.RoleAssistant:
		return "gpt"
	case chat.RoleDeveloper:
		e.lose("role")
		return "system"
	default:
		return string(m.Role)
	}
}

// shareText returns the text of a message; other parts are lost.
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
	counted := len(parts) == 1 && (parts[0].IsReasoning() || parts[0].IsMedia())
	if len(parts) > 1 || len(parts) == 1 && !isPlain(parts[0]) && !counted {
		e.lose("parts")
	}
	text := m.Content.String()
	if m.Role == chat.RoleAssistant && strings.Contains(text, "<tool_call>") {
		e.lose("text")
	}
	return text
}

// shareCallText adds the calls of m to its text, with an id where reading would assign another
// one (see readID).
func (e *encoder) shareCallText(text string, m *chat.Message, following []chat.Message, before int) string {
	var b bytes.Buffer
	b.WriteString(text)
	for i, c := range m.ToolCalls {
		own := e.ownCall(c, "sharegpt")
		id := rawjson.Quote(c.ID)
		if c.ID == readID(i, following, before) {
			id = nil
		}
		args, ok := arguments(c.Arguments)
		if !ok {
			args = rawjson.Quote(c.Arguments)
		}
		o := rawjson.Build("id", id, "name", c.Name, "arguments", args).Rest(e.excluding(own, "id", "name", "arguments"))
		writeBlock(&b, "tool_call", o.JSON())
	}
	return b.String()
}

// writeBlock writes <tag> JSON </tag> on lines of their own.
func writeBlock(b *bytes.Buffer, tag string, body json.RawMessage) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("<" + tag + ">\n")
	b.Write(body)
	b.WriteString("\n</" + tag + ">")
}

// readID returns the id that reading gives the call at index i of a message.
func readID(i int, following []chat.Message, before int) string {
	other := func(m chat.Message) bool { return m.Role != chat.RoleTool }
	if i < len(following) && !slices.ContainsFunc(following[:i+1], other) && following[i].ToolCallID != "" {
		return following[i].ToolCallID
	}
	return "call_" + strconv.Itoa(before+i+1)
}

// shareResults returns the value of a turn with the results of a call.
func (e *encoder) shareResults(ms []chat.Message) string {
	var b bytes.Buffer
	for i := range ms {
		m := &ms[i]
		e.envelope(m, "name", "sharegpt")
		if m.ToolCallID == "" {
			e.lose("tool_call_id")
		}
		o := rawjson.Build("tool_call_id", quoteIf(m.ToolCallID), "name", quoteIf(m.Name), "content", e.shareText(m))
		writeBlock(&b, "tool_response", o.JSON())
	}
	return b.String()
}

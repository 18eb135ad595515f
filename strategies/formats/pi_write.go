package formats

import (
	"encoding/json"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// encodePi writes the header and an entry per message, each a child of the one
// before.
func encodePi(e *encoder, s chat.Session) {
	system := func(m chat.Message) bool { return m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper }
	if !slices.ContainsFunc(s.Messages, func(m chat.Message) bool { return !system(m) }) {
		e.loseN("system message", len(s.Messages))
		return // a header alone is no session
	}
	header := own(s.Extra, "pi")
	e.sessionExtra(s, "pi", "title")
	delete(header, "id")
	delete(header, "modelId")
	header.Set("type", "session", "id", quoteIf(s.ID), "modelId", quoteIf(s.Model))
	e.line(header.JSON())
	parent := ""
	chained := true
	for i := range s.Messages {
		chained = chained && s.Messages[i].ID != ""
	}
	for i := range s.Messages {
		m := &s.Messages[i]
		if system(*m) {
			e.lose("system message")
			continue
		}
		entry := e.piEntry(m, s.Model)
		entry.Set("id", quoteIf(m.ID))
		if chained { // a tree with gaps is not one
			entry.Set("parentId", rawjson.OrNull(quoteIf(parent)))
		}
		parent = m.ID
		e.line(entry.JSON())
	}
	if title := e.title(s); title != nil {
		info := object{"type": rawjson.Quote("session_info"), "name": title}
		if chained && parent != "" {
			info.Set("id", parent+"#title", "parentId", parent)
		}
		e.line(info.JSON())
	}
}

func (e *encoder) piEntry(m *chat.Message, model string) object {
	entry := own(m.Extra, "pi")
	entry.Set("timestamp", timestamp(m.CreatedAt))
	holds := []string{"id", "created_at", "pi"}
	body := own(entry, "message")
	role := body.String("role") // of the messages that only pi has
	switch {
	case m.Role == chat.RoleUser && flagged(m, "is_compact_summary") && m.Content.Parts == nil && m.Content.Text != "":
		e.envelope(m, append(holds, "is_compact_summary")...)
		if role == "compactionSummary" || role == "branchSummary" {
			body.Set("summary", m.Content.Text)
			entry.Set("type", "message", "message", body.JSON())
			return entry
		}
		if entry.String("type") == "" {
			entry.Set("type", "compaction")
		}
		entry.Set("summary", m.Content.Text)
		return entry
	case m.Role == chat.RoleUser && flagged(m, "is_meta"):
		e.envelope(m, append(holds, "is_meta")...)
		if role == "custom" || role == "hookMessage" {
			body.Set("content", e.piContent(m))
			entry.Set("type", "message", "message", body.JSON())
			return entry
		}
		entry.Set("type", "custom_message", "content", e.piContent(m))
		return entry
	case m.Role == chat.RoleAssistant:
		blocks := e.piParts(m)
		for _, c := range m.ToolCalls {
			blocks = append(blocks, e.callBlock(c, "pi", "toolCall", "arguments"))
		}
		body.Set("role", "assistant", "content", rawjson.List(blocks))
		if body["model"] == nil {
			body.Set("model", quoteIf(model))
		}
	case m.Role == chat.RoleTool:
		holds = append(holds, "name", "is_error")
		body.Set("role", "toolResult", "toolCallId", m.ToolCallID, "toolName", m.Name, "content", e.piContent(m),
			"isError", boolean(e.flag(m, "is_error")))
	default:
		body.Set("role", "user", "content", e.piContent(m))
	}
	e.envelope(m, holds...)
	entry.Set("type", "message", "message", body.JSON())
	return entry
}

// piContent returns a content as a string, or as a list if it has parts.
func (e *encoder) piContent(m *chat.Message) json.RawMessage {
	if m.Content.Parts == nil && m.Role != chat.RoleTool {
		return rawjson.Quote(m.Content.Text)
	}
	return rawjson.List(e.piParts(m))
}

func (e *encoder) piParts(m *chat.Message) []json.RawMessage {
	var parts []json.RawMessage
	for _, p := range partsOf(m.Content) {
		if raw := e.piPart(p, m.Role == chat.RoleAssistant); raw != nil {
			parts = append(parts, raw)
		}
	}
	return parts
}

// piPart returns a part of a message, nil if pi has no equivalent.
func (e *encoder) piPart(p part, assistant bool) json.RawMessage {
	switch {
	case p.isText():
		return p.asText()
	case p.Type == "thinking" && assistant:
		if p.object["signature"] == nil {
			return p.Raw
		}
		return retyped(p.object, "thinking", object{"thinkingSignature": p.object["signature"], "signature": nil})
	case p.IsReasoning():
		e.lose("reasoning")
		return nil
	case p.Type == "image_url":
		url, rest := p.url()
		if mime, data, ok := dataURL(url); ok {
			if len(rest) > 0 {
				e.lose("image detail")
			}
			return retyped(p.object, "image", object{"image_url": nil, "mimeType": rawjson.Quote(mime), "data": rawjson.Quote(data)})
		}
	}
	e.lose("part " + p.Type)
	return nil
}

package formats

import (
	"encoding/json"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// encodePi writes the header and an entry per message, each a child of the one
// before.
func encodePi(e *encoder, s chat.Session) error {
	header := object(s.Extra).own("pi")
	e.sessionExtra(s, "pi", "title")
	header["type"] = rawjson.Quote("session")
	delete(header, "id")
	delete(header, "modelId")
	if s.ID != "" {
		header["id"] = rawjson.Quote(s.ID)
	}
	if s.Model != "" {
		header["modelId"] = rawjson.Quote(s.Model)
	}
	if err := e.line(header.raw()); err != nil {
		return err
	}
	parent := ""
	chained := true
	for i := range s.Messages {
		chained = chained && s.Messages[i].ID != ""
	}
	for i := range s.Messages {
		m := &s.Messages[i]
		if m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper {
			e.lose("system message")
			continue
		}
		entry := e.piEntry(m, s.Model)
		if m.ID != "" {
			entry["id"] = rawjson.Quote(m.ID)
		}
		if chained { // a tree with holes is none
			entry["parentId"] = orNull(quoteIf(parent))
		}
		parent = m.ID
		if err := e.line(entry.raw()); err != nil {
			return err
		}
	}
	return e.piTitle(s, parent, chained)
}

func (e *encoder) piTitle(s chat.Session, parent string, chained bool) error {
	title := e.title(s)
	if title == nil {
		return nil
	}
	info := object{"type": rawjson.Quote("session_info"), "name": title}
	if chained && parent != "" {
		info["id"], info["parentId"] = rawjson.Quote(parent+"#title"), rawjson.Quote(parent)
	}
	return e.line(info.raw())
}

func (e *encoder) piEntry(m *chat.Message, model string) object {
	entry := object(m.Extra).own("pi")
	if at := timestamp(m.CreatedAt); at != nil {
		entry["timestamp"] = at
	}
	holds := []string{"id", "created_at", "pi"}
	body := entry.own("message")
	role := body.string("role") // of the messages that only pi has
	switch {
	case m.Role == chat.RoleUser && flagged(m, "is_compact_summary") && m.Content.Parts == nil && m.Content.Text != "":
		e.envelope(m, append(holds, "is_compact_summary")...)
		if role == "compactionSummary" || role == "branchSummary" {
			body["summary"] = rawjson.Quote(m.Content.Text)
			entry["type"], entry["message"] = rawjson.Quote("message"), body.raw()
			return entry
		}
		if entry.string("type") == "" {
			entry["type"] = rawjson.Quote("compaction")
		}
		entry["summary"] = rawjson.Quote(m.Content.Text)
		return entry
	case m.Role == chat.RoleUser && flagged(m, "is_meta"):
		e.envelope(m, append(holds, "is_meta")...)
		if role == "custom" || role == "hookMessage" {
			body["content"] = e.piContent(m)
			entry["type"], entry["message"] = rawjson.Quote("message"), body.raw()
			return entry
		}
		entry["type"], entry["content"] = rawjson.Quote("custom_message"), e.piContent(m)
		return entry
	case m.Role == chat.RoleAssistant:
		body["role"] = rawjson.Quote("assistant")
		blocks := e.piParts(m)
		for _, c := range m.ToolCalls {
			blocks = append(blocks, e.callBlock(c, "pi", "toolCall", "arguments"))
		}
		body["content"] = list(blocks)
		if body["model"] == nil && model != "" {
			body["model"] = rawjson.Quote(model)
		}
	case m.Role == chat.RoleTool:
		holds = append(holds, "name", "is_error")
		body["role"], body["toolCallId"] = rawjson.Quote("toolResult"), rawjson.Quote(m.ToolCallID)
		body["toolName"], body["content"] = rawjson.Quote(m.Name), e.piContent(m)
		body["isError"] = boolean(e.flag(m, "is_error"))
	default:
		if m.Role != chat.RoleUser {
			e.lose("role")
		}
		body["role"], body["content"] = rawjson.Quote("user"), e.piContent(m)
	}
	e.envelope(m, holds...)
	entry["type"], entry["message"] = rawjson.Quote("message"), body.raw()
	return entry
}

// piContent returns a string, or a list where there is more than a text.
func (e *encoder) piContent(m *chat.Message) json.RawMessage {
	if m.Content.Parts == nil && m.Role != chat.RoleTool {
		return rawjson.Quote(m.Content.Text)
	}
	return list(e.piParts(m))
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

// piPart returns a part of a message, nil where pi has nothing for it.
func (e *encoder) piPart(p part, assistant bool) json.RawMessage {
	switch {
	case p.isText():
		return p.asText()
	case p.typ == "thinking" && assistant:
		if p.object["signature"] == nil {
			return p.raw
		}
		return p.retyped("thinking", object{"thinkingSignature": p.object["signature"], "signature": nil})
	case p.isReasoning():
		e.lose("reasoning")
		return nil
	case p.typ == "image_url":
		url, rest := p.url()
		if mime, data, ok := dataURL(url); ok {
			if len(rest) > 0 {
				e.lose("image detail")
			}
			return p.retyped("image", object{"image_url": nil, "mimeType": rawjson.Quote(mime), "data": rawjson.Quote(data)})
		}
	}
	e.lose("part " + p.typ)
	return nil
}

package formats

import (
	"encoding/json"
	"maps"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// encodeClaudeCode writes a line per message, each a child of the one before.
func encodeClaudeCode(e *encoder, s chat.Session) error {
	common := object(s.Extra).object("claude_code")
	id := s.ID
	if sub := common.string("sessionId"); common["sessionId"] != nil && sub+"/"+common.string("agentId") == id {
		id = sub
	}
	delete(common, "sessionId")
	side := common.takeTrue("isSidechain")
	e.sessionExtra(s, "claude_code", "title")
	if s.Model != "" && !modelHeld(s) {
		e.lose("model")
	}
	parent := ""
	for i := range s.Messages {
		m := &s.Messages[i]
		line, boundary, ok := e.claudeLine(m, s.Model, parent)
		if !ok {
			continue
		}
		if boundary != nil {
			if err := e.line(boundary); err != nil {
				return err
			}
		}
		rest := object{"isSidechain": boolean(side)}
		if id != "" {
			rest["sessionId"] = rawjson.Quote(id)
		}
		maps.Copy(rest, common)
		maps.Copy(rest, line)
		if err := e.line(rest.raw()); err != nil {
			return err
		}
		parent = m.ID
	}
	if title := e.title(s); title != nil {
		return e.line(build("type", "summary", "summary", title, "leafUuid", parent).done())
	}
	return nil
}

// modelHeld reports whether a message will carry the session's model.
func modelHeld(s chat.Session) bool {
	for i := len(s.Messages) - 1; i >= 0; i-- {
		m := &s.Messages[i]
		if m.Role == chat.RoleAssistant {
			model := object(m.Extra).object("claude_code").object("message").string("model")
			if model != "<synthetic>" {
				return model == "" || model == s.Model
			}
		}
	}
	return false
}

// claudeLine returns the line of a message, and the line that has to stand before it.
func (e *encoder) claudeLine(m *chat.Message, model, parent string) (line object, boundary []byte, ok bool) {
	typ := "user"
	var content json.RawMessage
	holds := []string{"id", "created_at", "claude_code", "anthropic", "parent_id", "is_meta", "is_compact_summary"}
	switch m.Role {
	case chat.RoleSystem, chat.RoleDeveloper:
		e.lose("system message")
		return nil, nil, false
	case chat.RoleAssistant:
		typ = "assistant"
		content = plainContent(e.blocks(m, false))
	case chat.RoleTool:
		holds = append(holds, "is_error")
		content = list([]json.RawMessage{e.toolResult(m, false)})
	default:
		if m.Role != chat.RoleUser {
			e.lose("role")
		}
		content = plainContent(e.blocks(m, false))
	}
	e.envelope(m, holds...)
	line = object(m.Extra).own("claude_code")
	if compact := line.take("compactMetadata"); compact != nil {
		boundary = build("compactMetadata", compact, "subtype", "compact_boundary", "type", "system").done()
	}
	api := line.own("message")
	e.put(api, "role", rawjson.Quote(typ))
	e.put(api, "content", content)
	if typ == "assistant" {
		e.put(api, "type", rawjson.Quote("message"))
		if api["model"] == nil && model != "" {
			api["model"] = rawjson.Quote(model)
		}
	}
	line["type"], line["message"] = rawjson.Quote(typ), api.raw()
	if m.ID != "" {
		e.put(line, "uuid", rawjson.Quote(m.ID))
	}
	line["parentUuid"] = orNull(quoteIf(parent))
	if id := m.Extra["parent_id"]; rawjson.Kind(id) == '"' {
		line["parentUuid"] = id
	}
	if at := timestamp(m.CreatedAt); at != nil {
		e.put(line, "timestamp", at)
	}
	if e.flag(m, "is_meta") {
		line["isMeta"] = isTrue
	}
	if e.flag(m, "is_compact_summary") {
		line["isCompactSummary"] = isTrue
	}
	return line, boundary, true
}

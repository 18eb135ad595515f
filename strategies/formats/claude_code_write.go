package formats

import (
	"maps"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// encodeClaudeCode writes a line per message, each a child of the one before.
func encodeClaudeCode(e *encoder, s chat.Session) {
	common := object(s.Extra).Object("claude_code")
	id := s.ID
	if sub := common.String("sessionId"); common["sessionId"] != nil && sub+"/"+common.String("agentId") == id {
		id = sub
	}
	delete(common, "sessionId")
	side := common.TakeTrue("isSidechain")
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
			e.line(boundary)
		}
		rest := object{"isSidechain": boolean(side)}
		rest.Set("sessionId", quoteIf(id))
		maps.Copy(rest, common)
		maps.Copy(rest, line)
		e.line(rest.JSON())
		parent = m.ID
	}
	if title := e.title(s); title != nil {
		e.line(rawjson.Build("type", "summary", "summary", title, "leafUuid", parent).JSON())
	}
}

// modelHeld reports whether a message is written with the session's model.
func modelHeld(s chat.Session) bool {
	for i := len(s.Messages) - 1; i >= 0; i-- {
		m := &s.Messages[i]
		if m.Role == chat.RoleAssistant {
			model := object(m.Extra).Object("claude_code").Object("message").String("model")
			if model != "<synthetic>" {
				return model == "" || model == s.Model
			}
		}
	}
	return false
}

// claudeLine returns the line of a message, and the boundary to write before it, if any. It
// reports false for a message that the format cannot hold.
func (e *encoder) claudeLine(m *chat.Message, model, parent string) (line object, boundary []byte, ok bool) {
	typ := "user"
	holds := []string{"id", "created_at", "claude_code", "anthropic", "parent_id", "is_meta", "is_compact_summary"}
	switch m.Role {
	case chat.RoleSystem, chat.RoleDeveloper:
		e.lose("system message")
		return nil, nil, false
	case chat.RoleAssistant:
		typ = "assistant"
	case chat.RoleTool:
		holds = append(holds, "is_error")
	default: // the user's
	}
	content := plainContent(e.blocks(m, false))
	e.envelope(m, holds...)
	line = own(m.Extra, "claude_code")
	if compact := line.Take("compactMetadata"); compact != nil {
		boundary = rawjson.Build("compactMetadata", compact, "subtype", "compact_boundary", "type", "system").JSON()
	}
	api := own(line, "message")
	e.put(api, "role", rawjson.Quote(typ))
	e.put(api, "content", content)
	if typ == "assistant" {
		e.put(api, "type", rawjson.Quote("message"))
		if api["model"] == nil && model != "" {
			api["model"] = rawjson.Quote(model)
		}
	}
	line.Set("type", typ, "message", api.JSON())
	e.put(line, "uuid", quoteIf(m.ID))
	line["parentUuid"] = rawjson.OrNull(quoteIf(parent))
	if id := m.Extra["parent_id"]; rawjson.Kind(id) == '"' {
		line["parentUuid"] = id
	}
	e.put(line, "timestamp", timestamp(m.CreatedAt))
	if e.flag(m, "is_meta") {
		line["isMeta"] = isTrue
	}
	if e.flag(m, "is_compact_summary") {
		line["isCompactSummary"] = isTrue
	}
	return line, boundary, true
}

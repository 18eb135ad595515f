package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// anthropic reads Anthropic messages: a document {"system", "messages", …} is a
// session, and so is a list of messages; messages on lines are one session.
type anthropic struct{ lines Session }

func newAnthropic() decoder { return &anthropic{} }

func (d *anthropic) add(value []byte) (*Session, error) {
	if rawjson.Kind(value) == '[' {
		ms, err := anthropicMessages(value)
		return documentOf(chat.Session{Messages: ms}), err
	}
	o, err := parseObject(value)
	if err != nil {
		return nil, err
	}
	if _, ok := o["messages"]; ok {
		return anthropicSession(o)
	}
	ms, err := anthropicMessage(o)
	if err != nil {
		return nil, err
	}
	d.lines.Messages = append(d.lines.Messages, ms...)
	d.lines.Report.Values++
	d.lines.Report.Messages++
	return nil, nil
}

func (d *anthropic) end() []Session { return d.lines.ended() }

func anthropicSession(o object) (*Session, error) {
	var s chat.Session
	if raw := o.take("system"); raw != nil {
		c, err := readContent(raw, fromAnthropicPart)
		if err != nil {
			return nil, fmt.Errorf("system: %w", err)
		}
		s.Messages = append(s.Messages, chat.Message{Role: chat.RoleSystem, Content: c})
	}
	ms, err := anthropicMessages(o.take("messages"))
	if err != nil {
		return nil, err
	}
	s.Messages = append(s.Messages, ms...)
	o.session(&s)
	return documentOf(s), nil
}

// session takes what a document says of its session; the rest is its Extra.
func (o object) session(s *chat.Session) {
	for _, key := range []string{"session_id", "id"} {
		if s.ID == "" {
			s.ID = o.takeString(key)
		}
		if s.ID == "" && rawjson.Kind(o[key]) == '0' {
			s.ID = string(o.take(key))
		}
	}
	s.Model = o.takeString("model")
	if len(o) > 0 {
		s.Extra = o
	}
}

func anthropicMessages(raw json.RawMessage) (out []chat.Message, err error) {
	err = objects(raw, "messages", func(o object, _ json.RawMessage) error {
		ms, err := anthropicMessage(o)
		out = append(out, ms...)
		return err
	})
	return out, err
}

// anthropicMessage reads a message; one of the user can hold several results.
func anthropicMessage(o object) ([]chat.Message, error) {
	role := o.takeString("role")
	if role == "" {
		return nil, errors.New("role: missing; want user or assistant")
	}
	ms, err := fromBlocks(chat.Role(role), o.take("content"))
	if err != nil {
		return nil, err
	}
	m := &ms[0]
	m.ID = o.takeString("id")
	m.CreatedAt = o.takeTime("created_at")
	if m.Role == chat.RoleTool && len(o) > 0 { // beside what its block holds
		o = object{"message": o.raw()}
	}
	mergeExtra(m, "anthropic", o)
	return ms, nil
}

// mergeExtra adds keys to what the message keeps for a format.
func mergeExtra(m *chat.Message, format string, more object) {
	if len(more) == 0 {
		return
	}
	all := object(m.Extra).own(format)
	maps.Copy(all, more)
	setExtra(&m.Extra, format, all.raw())
}

// fromBlocks makes messages of the content of an Anthropic message: at least one.
// Results come before what the user says, as the API wants it.
func fromBlocks(role chat.Role, content json.RawMessage) ([]chat.Message, error) {
	if rawjson.Kind(content) != '[' {
		c, err := readContent(content, nil)
		return []chat.Message{{Role: role, Content: c}}, err
	}
	blocks, err := array(content)
	if err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	m := chat.Message{Role: role}
	var results []chat.Message
	var parts, at []json.RawMessage
	trailing := true
	for i, raw := range blocks {
		if rawjson.Kind(raw) == '"' {
			parts = append(parts, raw)
			trailing = trailing && len(m.ToolCalls) == 0
			continue
		}
		b, err := parseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("content[%d]: %w", i, err)
		}
		switch typ := b.string("type"); {
		case typ == "tool_use" && role == chat.RoleAssistant:
			m.ToolCalls = append(m.ToolCalls, fromToolUse(b))
			at = append(at, fmt.Append(nil, i))
		case typ == "tool_result" && role == chat.RoleUser:
			r, err := fromToolResult(b)
			if err != nil {
				return nil, fmt.Errorf("content[%d]: %w", i, err)
			}
			results = append(results, r)
		default:
			parts = append(parts, fromAnthropicPart(b, raw))
			trailing = trailing && len(m.ToolCalls) == 0
		}
	}
	if m.Content, err = contentOf(parts); err != nil {
		return nil, err
	}
	if !trailing {
		setExtra(&m.Extra, "anthropic", object{"tool_use_at": list(at)}.raw())
	}
	if len(results) > 0 && len(parts) == 0 {
		return results, nil
	}
	return append(results, m), nil
}

func fromToolUse(b object) chat.ToolCall {
	delete(b, "type")
	return call(b.takeString("id"), "function", b.takeString("name"), string(b.take("input")), "anthropic", b)
}

func fromToolResult(b object) (chat.Message, error) {
	delete(b, "type")
	m := chat.Message{Role: chat.RoleTool, ToolCallID: b.takeString("tool_use_id")}
	var err error
	if m.Content, err = readContent(b.take("content"), fromAnthropicPart); err != nil {
		return m, err
	}
	if b.takeTrue("is_error") {
		setExtra(&m.Extra, "is_error", isTrue)
	}
	mergeExtra(&m, "anthropic", b)
	return m, nil
}

// fromAnthropicPart turns an image into an image_url; all else stays.
func fromAnthropicPart(b object, raw json.RawMessage) json.RawMessage {
	if b.string("type") != "image" {
		return raw
	}
	source := b.object("source")
	switch {
	case source.string("type") == "base64" && len(source) == 3 && source.string("media_type") != "":
		return imageURL(b, "data:"+source.string("media_type")+";base64,"+source.string("data"), "source")
	case source.string("type") == "url" && len(source) == 2:
		return imageURL(b, source.string("url"), "source")
	}
	return raw
}

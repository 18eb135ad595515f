package formats

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// anthropicDocuments are {"system", "messages", …}; the entries are messages.
var anthropicDocuments = documentFormat{
	entries: func() entries { return &anthropicEntries{} },
	lists: func(o object) []string {
		if _, ok := o["messages"]; ok {
			return []string{"messages"}
		}
		return nil
	},
	system:     "system",
	systemPart: fromAnthropicPart,
}

type anthropicEntries struct{ all []chat.Message }

func (d *anthropicEntries) messages() []chat.Message { return d.all }

// add reads a message; one of the user can hold several results.
func (d *anthropicEntries) add(o object, _ json.RawMessage) (bool, error) {
	role := o.TakeString("role")
	if role == "" {
		return false, errors.New("role: missing; want user or assistant")
	}
	if k := rawjson.Kind(o["content"]); k != '"' && k != '[' {
		return false, fmt.Errorf("content: want a string or a list, got %s", rawjson.KindName(o["content"]))
	}
	ms, err := fromBlocks(chat.Role(role), o.Take("content"))
	if err != nil {
		return false, err
	}
	if err := (&chat.Message{Role: chat.RoleUser, Extra: o}).Validate(); err != nil {
		return false, err // keys of another format
	}
	m := &ms[0]
	m.ID = o.TakeString("id")
	m.CreatedAt = takeTime(o, "created_at")
	if m.Role == chat.RoleTool && len(o) > 0 { // beside the keys of its block
		o = object{"message": o.JSON()}
	}
	mergeExtra(m, "anthropic", o)
	d.all = append(d.all, ms...)
	return true, nil
}

// fromBlocks returns the messages for the content of an Anthropic message, at least one.
// Results come before the other blocks of the user, as the API requires.
func fromBlocks(role chat.Role, content json.RawMessage) ([]chat.Message, error) {
	m := chat.Message{Role: role}
	var results []chat.Message
	var at []json.RawMessage // indexes of the calls
	var invalid error
	parts, trailing := 0, true
	c, err := readContent(content, func(b object, raw json.RawMessage) json.RawMessage {
		i := parts + len(at) + len(results)
		switch typ := b.String("type"); {
		case typ == "tool_use" && role == chat.RoleAssistant:
			if rawjson.Kind(b["id"]) != '"' || rawjson.Kind(b["name"]) != '"' {
				invalid = errors.Join(invalid, fmt.Errorf("content[%d]: tool_use: want an id and a name that are strings", i))
			}
			delete(b, "type")
			m.ToolCalls = append(m.ToolCalls,
				newCall(b.TakeString("id"), "function", b.TakeString("name"), string(b.Take("input")), "anthropic", b))
			at = append(at, fmt.Append(nil, i))
			return nil
		case typ == "tool_result" && role == chat.RoleUser:
			r, err := fromToolResult(b)
			if err != nil && invalid == nil {
				invalid = fmt.Errorf("content[%d]: %w", i, err)
			}
			results = append(results, r)
			return nil
		}
		parts++
		trailing = trailing && len(at) == 0
		return fromAnthropicPart(b, raw)
	})
	if invalid != nil || err != nil {
		return nil, errors.Join(invalid, err)
	}
	m.Content = c
	if !trailing {
		setExtra(&m.Extra, "anthropic", object{"tool_use_at": rawjson.List(at)}.JSON())
	}
	if len(results) > 0 && parts == 0 {
		return results, nil
	}
	return append(results, m), nil
}

func fromToolResult(b object) (chat.Message, error) {
	if rawjson.Kind(b["tool_use_id"]) != '"' {
		return chat.Message{}, errors.New("tool_result: want a tool_use_id that is a string")
	}
	delete(b, "type")
	m := chat.Message{Role: chat.RoleTool, ToolCallID: b.TakeString("tool_use_id")}
	var err error
	if m.Content, err = readContent(b.Take("content"), fromAnthropicPart); err != nil {
		return m, err
	}
	takeFlag(b, "is_error", &m, "is_error")
	mergeExtra(&m, "anthropic", b)
	return m, nil
}

// fromAnthropicPart turns an image into an image_url and keeps other parts.
func fromAnthropicPart(b object, raw json.RawMessage) json.RawMessage {
	if b.String("type") != "image" {
		return raw
	}
	source := b.Object("source")
	switch {
	case source.String("type") == "base64" && len(source) == 3 && source.String("media_type") != "":
		return imageURL(b, "data:"+source.String("media_type")+";base64,"+source.String("data"), "source")
	case source.String("type") == "url" && len(source) == 2:
		return imageURL(b, source.String("url"), "source")
	}
	return raw
}

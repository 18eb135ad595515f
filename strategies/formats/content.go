package formats

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// contentOf returns the content with parts in chat-completions form. One plain text becomes
// a string.
func contentOf(parts []json.RawMessage) (chat.Content, error) {
	if len(parts) == 0 {
		return chat.Content{Null: true}, nil
	}
	var m chat.Message
	if err := json.Unmarshal(rawjson.Build("role", "user", "content", rawjson.List(parts)).JSON(), &m); err != nil {
		return chat.Content{}, err
	}
	if len(parts) == 1 && isPlain(m.Content.Parts[0]) {
		return chat.TextContent(m.Content.Parts[0].Text), nil
	}
	return m.Content, nil
}

// isPlain reports whether a part is a text and nothing else.
func isPlain(p chat.Part) bool {
	if p.Type != "text" {
		return false
	}
	if p.Raw == nil {
		return true
	}
	o, err := rawjson.ParseObject(p.Raw)
	return err == nil && len(o) == 2 && o["text"] != nil
}

// convertPart returns the chat-completions form of a part: an object, or a string, for
// which o is nil. It returns nil for a block that is not content, such as a call.
type convertPart func(o object, raw json.RawMessage) json.RawMessage

// readContent reads a string, a list of parts or null.
func readContent(raw json.RawMessage, convert convertPart) (chat.Content, error) {
	switch rawjson.Kind(raw) {
	case 0, 'n':
		return chat.Content{Null: true}, nil
	case '"':
		return chat.TextContent(rawjson.Text(raw)), nil
	}
	all, err := rawjson.ParseArray(raw)
	if err != nil {
		return chat.Content{}, fmt.Errorf("content: want a string, a list or null, got %s", rawjson.KindName(raw))
	}
	if len(all) == 0 {
		return chat.TextContent(""), nil // an empty text
	}
	var parts []json.RawMessage
	for i, part := range all {
		var o object
		if rawjson.Kind(part) != '"' {
			if o, err = rawjson.ParseObject(part); err != nil {
				return chat.Content{}, fmt.Errorf("content[%d]: %w", i, err)
			}
		}
		if part = convert(o, part); part != nil {
			parts = append(parts, part)
		}
	}
	return contentOf(parts)
}

// part is a content part to write, with its keys; object is nil for a part made in Go.
type part struct {
	chat.Part
	object
}

// partsOf returns the parts of a content; a string is one text.
func partsOf(c chat.Content) []part {
	out := make([]part, 0, len(c.Parts)+1)
	for _, p := range asParts(c) {
		x := part{Part: p}
		o, err := rawjson.ParseObject(p.Raw)
		if p.Type == "" && err != nil {
			x.Type = "text"
		}
		switch {
		case err == nil:
			x.object = o
		case x.Type == "refusal":
			x.Raw = rawjson.Build("type", x.Type, "refusal", p.Text).JSON()
		default:
			x.Raw = rawjson.Build("type", x.Type, "text", p.Text).JSON()
		}
		out = append(out, x)
	}
	return out
}

// asParts returns a content as parts; a string is one text.
func asParts(c chat.Content) []chat.Part {
	if c.Parts == nil && c.Text != "" {
		return []chat.Part{{Type: "text", Text: c.Text, Raw: textPart(c.Text)}}
	}
	return c.Parts
}

func textPart(s string) json.RawMessage { return rawjson.Build("type", "text", "text", s).JSON() }

// isText reports whether the part is a text, whatever it is called.
func (p part) isText() bool {
	return p.Type == "text" || p.Type == "input_text" || p.Type == "output_text"
}

// asText writes a part that is a text as a part of type text.
func (p part) asText() json.RawMessage {
	if p.Type == "text" {
		return p.Raw
	}
	if p.object == nil {
		return textPart(p.Text)
	}
	return retyped(p.object, "text", nil)
}

// retyped returns o with another type and other values for some keys; nil removes a key.
func retyped(o object, typ string, changes object) json.RawMessage {
	rest := object{}
	maps.Copy(rest, o)
	maps.Copy(rest, changes)
	maps.DeleteFunc(rest, func(key string, value json.RawMessage) bool { return key == "type" || value == nil })
	return rawjson.Build("type", typ).Rest(rest).JSON()
}

// dataURL splits a data URL with base64.
func dataURL(url string) (mime, data string, ok bool) {
	head, data, found := strings.Cut(url, ",")
	mime, isData := strings.CutPrefix(head, "data:")
	mime, is64 := strings.CutSuffix(mime, ";base64")
	return mime, data, found && isData && is64 && mime != ""
}

// imageURL returns the part for an image at a URL, with the keys of o except taken.
func imageURL(o object, url string, taken ...string) json.RawMessage {
	return retyped(o.Without(taken...), "image_url", object{"image_url": rawjson.Build("url", url).JSON()})
}

// url returns the URL of an image_url part and the other keys of its image_url.
func (p part) url() (url string, rest object) {
	if rawjson.Kind(p.object["image_url"]) == '"' {
		return p.String("image_url"), nil
	}
	rest = p.Object("image_url")
	return rest.TakeString("url"), rest
}

// newCall returns a tool call whose further keys are kept under the name of their format.
func newCall(id, typ, name, arguments, format string, rest object) chat.ToolCall {
	c := chat.ToolCall{ID: id, Type: typ, Name: name, Arguments: arguments}
	if len(rest) == 0 {
		return c
	}
	body, input := "function", "arguments"
	if typ == "custom" {
		body, input = "custom", "input"
	}
	c.Raw = rawjson.Build("id", id, "type", body, body, rawjson.Build("name", name, input, arguments).JSON(), format, rest.JSON()).JSON()
	return c
}

// callExtra returns the keys that a call keeps for a format, and whether it has others beyond
// the fields of chat.ToolCall.
func callExtra(c chat.ToolCall, format string) (own object, more bool) {
	o, err := rawjson.ParseObject(c.Raw)
	if err != nil {
		return nil, false
	}
	own = o.Object(format)
	for _, key := range []string{"id", "type", "function", "custom", format} {
		delete(o, key)
	}
	return own, len(o) > 0
}

// arguments returns the arguments of a call as an object. If they are not one, it returns
// them under the key "arguments", and false.
func arguments(s string) (raw json.RawMessage, ok bool) {
	if strings.TrimSpace(s) == "" {
		return json.RawMessage("{}"), true
	}
	if rawjson.Kind([]byte(s)) == '{' && json.Valid([]byte(s)) {
		clean, repairs := chat.SanitizeJSON([]byte(s))
		return rawjson.OneLine(clean), repairs == 0
	}
	return rawjson.Build("arguments", s).JSON(), false
}

// ownCall returns the keys that a call keeps for a format, and counts losses: keys of other
// formats, and that a custom call becomes a function call.
func (e *encoder) ownCall(c chat.ToolCall, format string) object {
	own, more := callExtra(c, format)
	if more {
		e.lose("call extra")
	}
	if c.Type == "custom" {
		e.lose("custom call")
	}
	return own
}

// callBlock returns a call as a block of a content, with its arguments under the key input.
func (e *encoder) callBlock(c chat.ToolCall, format, typ, input string) json.RawMessage {
	own := e.ownCall(c, format).Without("type")
	args, ok := arguments(c.Arguments)
	if !ok {
		e.lose("arguments")
	}
	return rawjson.Build("type", typ, "id", c.ID, "name", c.Name, input, args).Rest(e.excluding(own, "id", "name", input)).JSON()
}

// flag reports whether a key of Extra is true; any other value is lost.
func (e *encoder) flag(m *chat.Message, key string) bool {
	if m.Extra[key] != nil && !flagged(m, key) {
		e.lose("extra")
	}
	return flagged(m, key)
}

// sessionExtra counts the keys of a session that are not in holds.
func (e *encoder) sessionExtra(s chat.Session, holds ...string) {
	for key := range s.Extra {
		if !slices.Contains(holds, key) {
			e.lose("session extra")
		}
	}
}

// title returns the title of a session, nil where it is no string.
func (e *encoder) title(s chat.Session) json.RawMessage {
	title := s.Extra["title"]
	if title != nil && rawjson.Kind(title) != '"' {
		e.lose("session extra")
		return nil
	}
	return title
}

// envelope counts the losses of a message that are fields and keys of Extra: all
// that are not in holds.
func (e *encoder) envelope(m *chat.Message, holds ...string) {
	for name, set := range map[string]bool{
		"id": m.ID != "", "name": m.Name != "", "source_id": m.SourceID != "",
		"created_at": !m.CreatedAt.IsZero(), "reasoning": m.Reasoning != "",
	} {
		if set && !slices.Contains(holds, name) {
			e.lose(name)
		}
	}
	for key, raw := range m.Extra {
		switch {
		case slices.Contains(holds, key):
		case slices.Contains(chat.ReasoningKeys, key):
			if !blank(raw) {
				e.lose("reasoning")
			}
		default:
			e.lose("extra")
		}
	}
	if m.Role != chat.RoleAssistant && len(m.ToolCalls) > 0 {
		e.loseN("calls", len(m.ToolCalls))
	}
	if m.Role != chat.RoleTool && m.ToolCallID != "" {
		e.lose("tool_call_id")
	}
}

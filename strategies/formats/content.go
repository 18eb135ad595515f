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

// contentOf makes content of parts in the chat-completions form. One plain text
// becomes a string.
func contentOf(parts []json.RawMessage) (chat.Content, error) {
	if len(parts) == 0 {
		return chat.Content{Null: true}, nil
	}
	var m chat.Message
	if err := json.Unmarshal(build("role", "user", "content", list(parts)).done(), &m); err != nil {
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
	o, err := parseObject(p.Raw)
	return err == nil && len(o) == 2 && o["text"] != nil
}

// readContent reads a string, a list of parts or null; convert turns each part
// into its chat-completions form.
func readContent(raw json.RawMessage, convert func(object, json.RawMessage) json.RawMessage) (chat.Content, error) {
	switch rawjson.Kind(raw) {
	case 0, 'n':
		return chat.Content{Null: true}, nil
	case '"':
		return chat.TextContent(rawjson.Text(raw)), nil
	}
	parts, err := array(raw)
	if err != nil {
		return chat.Content{}, fmt.Errorf("content: want a string, a list or null, got %s", rawjson.KindName(raw))
	}
	for i, part := range parts {
		if rawjson.Kind(part) == '"' {
			continue
		}
		o, err := parseObject(part)
		if err != nil {
			return chat.Content{}, fmt.Errorf("content[%d]: %w", i, err)
		}
		parts[i] = convert(o, part)
	}
	return contentOf(parts)
}

// part is a content part on its way out: its type and its keys.
type part struct {
	object
	typ  string
	text string
	raw  json.RawMessage
}

// partsOf returns the parts of a content; a string is one text.
func partsOf(c chat.Content) []part {
	if c.Parts == nil {
		if c.Text == "" {
			return nil
		}
		return []part{{typ: "text", text: c.Text, raw: textPart(c.Text)}}
	}
	out := make([]part, 0, len(c.Parts))
	for _, p := range c.Parts {
		x := part{typ: p.Type, text: p.Text, raw: p.Raw}
		o, err := parseObject(p.Raw)
		if x.typ == "" && err != nil {
			x.typ = "text"
		}
		switch {
		case err == nil:
			x.object = o
		case x.typ == "refusal":
			x.raw = build("type", x.typ, "refusal", p.Text).done()
		default: // made in Go: a type and a text are all there is
			x.raw = build("type", x.typ, "text", p.Text).done()
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

func textPart(s string) json.RawMessage { return build("type", "text", "text", s).done() }

// isText reports whether the part is a text, whatever it is called.
func (p part) isText() bool {
	return p.typ == "text" || p.typ == "input_text" || p.typ == "output_text"
}

// asText writes a part that is a text as a part of type text.
func (p part) asText() json.RawMessage {
	if p.typ == "text" {
		return p.raw
	}
	if p.object == nil {
		return textPart(p.text)
	}
	return p.retyped("text", nil)
}

// isReasoning is that of chat.Part.
func (p part) isReasoning() bool { return chat.Part{Type: p.typ}.IsReasoning() }

// retyped returns the part with other values for some of its keys; nil removes.
func (o object) retyped(typ string, changes object) json.RawMessage {
	rest := object{}
	maps.Copy(rest, o)
	maps.Copy(rest, changes)
	maps.DeleteFunc(rest, func(key string, value json.RawMessage) bool { return key == "type" || value == nil })
	return build("type", typ).rest(rest).done()
}

// dataURL takes a data URL with base64 apart.
func dataURL(url string) (mime, data string, ok bool) {
	head, data, found := strings.Cut(url, ",")
	mime, isData := strings.CutPrefix(head, "data:")
	mime, is64 := strings.CutSuffix(mime, ";base64")
	return mime, data, found && isData && is64 && mime != ""
}

// imageURL returns the part for an image at a URL, with the other keys of o but taken.
func imageURL(o object, url string, taken ...string) json.RawMessage {
	return object(without(o, taken...)).retyped("image_url", object{"image_url": build("url", url).done()})
}

// url returns the URL of an image_url part and what else its image_url holds.
func (p part) url() (url string, rest object) {
	if rawjson.Kind(p.object["image_url"]) == '"' {
		return p.string("image_url"), nil
	}
	rest = p.object.object("image_url")
	return rest.takeString("url"), rest
}

// call returns the element of tool_calls with further keys, kept under their format.
func call(id, typ, name, arguments, format string, rest object) chat.ToolCall {
	c := chat.ToolCall{ID: id, Type: typ, Name: name, Arguments: arguments}
	if len(rest) == 0 {
		return c
	}
	body, input := "function", "arguments"
	if typ == "custom" {
		body, input = "custom", "input"
	}
	c.Raw = build("id", id, "type", body, body, build("name", name, input, arguments).done(), format, rest.raw()).done()
	return c
}

// callExtra returns what a format keeps on a call, and whether the call holds
// anything else beyond the fields of chat.ToolCall.
func callExtra(c chat.ToolCall, format string) (own object, more bool) {
	o, err := parseObject(c.Raw)
	if err != nil {
		return nil, false
	}
	own = o.object(format)
	for _, key := range []string{"id", "type", "function", "custom", format} {
		delete(o, key)
	}
	return own, len(o) > 0
}

// arguments returns the arguments of a call as an object, and false where they are
// none; what they are then stands under "arguments".
func arguments(s string) (raw json.RawMessage, ok bool) {
	if strings.TrimSpace(s) == "" {
		return json.RawMessage("{}"), true
	}
	if rawjson.Kind([]byte(s)) == '{' && json.Valid([]byte(s)) {
		clean, repairs := chat.SanitizeJSON([]byte(s))
		return oneLine(clean), repairs == 0
	}
	return build("arguments", s).done(), false
}

// ownCall returns what a format keeps on a call and counts what the format has no place
// for.
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

// callBlock writes a call as a block of a content, with its arguments under input.
func (e *encoder) callBlock(c chat.ToolCall, format, typ, input string) json.RawMessage {
	own := without(e.ownCall(c, format), "type")
	args, ok := arguments(c.Arguments)
	if !ok {
		e.lose("arguments")
	}
	return build("type", typ, "id", c.ID, "name", c.Name, input, args).rest(e.excluding(own, "id", "name", input)).done()
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
		case slices.Contains(reasoningKeys, key):
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

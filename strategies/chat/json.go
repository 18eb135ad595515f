package chat

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// UnmarshalJSON reads one chat-completions message.
//
// It reads id, created_at, source_id, role, name, content, reasoning_content or reasoning,
// tool_calls and tool_call_id. All other keys are kept in Extra byte for byte, and so are
// known keys with values of an unsupported type. Null equals absent. A numeric id becomes
// its digits.
//
// It fails on a missing or invalid role, and on a content, tool_calls or tool_call_id of
// the wrong type. The error names the field and the allowed values, and never quotes
// content.
//
// encoding/json silently turns lone surrogate escapes and invalid UTF-8 into U+FFFD; call
// SanitizeJSON first to count them.
func (m *Message) UnmarshalJSON(data []byte) error {
	if rawjson.Kind(data) != '{' {
		return fmt.Errorf("message: want an object, got %s", rawjson.KindName(data))
	}
	var f fields
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	out, err := f.message()
	if err != nil {
		return err
	}
	*m = out
	return nil
}

// fields is a JSON object from which keys are removed as they are read; the rest becomes
// Extra.
type fields map[string]json.RawMessage

func (f fields) message() (Message, error) {
	var m Message
	role, ok := f["role"]
	delete(f, "role")
	switch {
	case !ok:
		return m, errors.New("role: missing; want a string: system, developer, user, assistant or tool")
	case rawjson.Kind(role) != '"':
		return m, fmt.Errorf("role: want a string, got %s", rawjson.KindName(role))
	}
	m.Role = Role(rawjson.Text(role))
	if m.Role == "" {
		return m, errors.New("role: empty; want system, developer, user, assistant or tool")
	}
	var err error
	if m.Content, err = readContent(f.take("content")); err != nil {
		return m, err
	}
	if m.ToolCalls, err = readToolCalls(f.take("tool_calls")); err != nil {
		return m, err
	}
	if raw := f.take("tool_call_id"); raw != nil {
		if rawjson.Kind(raw) != '"' {
			return m, fmt.Errorf("tool_call_id: want a string, got %s", rawjson.KindName(raw))
		}
		m.ToolCallID = rawjson.Text(raw)
	}
	m.ID = f.takeID("id")
	m.SourceID = f.takeString("source_id")
	m.Name = f.takeString("name")
	m.Reasoning, m.ReasoningKey = f.takeReasoning()
	if at, ok := parseTime(f["created_at"]); ok {
		m.CreatedAt = at
		delete(f, "created_at")
	}
	if len(f) > 0 {
		m.Extra = f
	}
	return m, nil
}

// take removes key and returns its value, nil if it is absent or null.
func (f fields) take(key string) json.RawMessage { return rawjson.Take(f, key) }

// takeString removes key if it is a string, and returns "" if it is not.
func (f fields) takeString(key string) string {
	raw, ok := f[key]
	if !ok || rawjson.Kind(raw) != '"' {
		return ""
	}
	delete(f, key)
	return rawjson.Text(raw)
}

// takeID removes key if it is a string, or a number, which is taken as written.
func (f fields) takeID(key string) string {
	if raw := f[key]; rawjson.Kind(raw) == '0' {
		delete(f, key)
		return string(raw)
	}
	return f.takeString(key)
}

// takeReasoning removes and returns the first non-empty of the two keys, or the first that
// is a string.
func (f fields) takeReasoning() (reasoning, key string) {
	for _, k := range []string{"reasoning_content", "reasoning"} {
		if rawjson.Kind(f[k]) != '"' {
			continue
		}
		if s := rawjson.Text(f[k]); key == "" || reasoning == "" && s != "" {
			reasoning, key = s, k
		}
	}
	delete(f, key)
	return reasoning, key
}

func readContent(raw json.RawMessage) (Content, error) {
	switch rawjson.Kind(raw) {
	case 'n', 0:
		return Content{Null: true}, nil
	case '"':
		return Content{Text: rawjson.Text(raw)}, nil
	case '[':
	default:
		return Content{}, fmt.Errorf("content: want a string, an array of parts or null, got %s", rawjson.KindName(raw))
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err != nil {
		return Content{}, fmt.Errorf("content: %w", err)
	}
	parts := make([]Part, len(raws))
	for i, raw := range raws {
		p, err := readPart(raw)
		if err != nil {
			return Content{}, fmt.Errorf("content[%d]: %w", i, err)
		}
		parts[i] = p
	}
	return Content{Parts: parts}, nil
}

func readPart(raw json.RawMessage) (Part, error) {
	p := Part{Raw: raw}
	switch rawjson.Kind(raw) {
	case '"':
		p.Text = rawjson.Text(raw)
		return p, nil
	case '{':
	default:
		return p, fmt.Errorf("want an object or a string, got %s", rawjson.KindName(raw))
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return p, err
	}
	if t := f.take("type"); t != nil {
		if rawjson.Kind(t) != '"' {
			return p, fmt.Errorf("type: want a string, got %s", rawjson.KindName(t))
		}
		p.Type = rawjson.Text(t)
	}
	switch p.Type {
	case "text", "input_text", "output_text", "":
		p.Text = f.takeString("text")
	case "refusal":
		p.Text = f.takeString("refusal")
	}
	return p, nil
}

func readToolCalls(raw json.RawMessage) ([]ToolCall, error) {
	if raw == nil {
		return nil, nil
	}
	if rawjson.Kind(raw) != '[' {
		return nil, fmt.Errorf("tool_calls: want an array, got %s", rawjson.KindName(raw))
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err != nil {
		return nil, fmt.Errorf("tool_calls: %w", err)
	}
	var calls []ToolCall
	for i, raw := range raws {
		c, err := readToolCall(raw)
		if err != nil {
			return nil, fmt.Errorf("tool_calls[%d]%w", i, err)
		}
		calls = append(calls, c)
	}
	return calls, nil
}

func readToolCall(raw json.RawMessage) (ToolCall, error) {
	c := ToolCall{Raw: raw}
	if rawjson.Kind(raw) != '{' {
		return c, fmt.Errorf(": want an object, got %s", rawjson.KindName(raw))
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return c, fmt.Errorf(": %w", err)
	}
	if id := f.take("id"); id != nil {
		if rawjson.Kind(id) != '"' {
			return c, fmt.Errorf(".id: want a string, got %s", rawjson.KindName(id))
		}
		c.ID = rawjson.Text(id)
	}
	c.Type = f.takeString("type")
	// A function call holds its input in function.arguments, a custom call in
	// custom.input.
	body, input := f.take("function"), "arguments"
	if body == nil {
		body, input = f.take("custom"), "input"
	}
	if rawjson.Kind(body) != '{' {
		return c, nil
	}
	var fn fields
	if err := json.Unmarshal(body, &fn); err != nil {
		return c, fmt.Errorf(".function: %w", err)
	}
	c.Name = fn.takeString("name")
	if args := fn.take(input); rawjson.Kind(args) == '"' {
		c.Arguments = rawjson.Text(args)
	} else {
		c.Arguments = string(args) // some servers send the object itself
	}
	return c, nil
}

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
// tool_calls, function_call and tool_call_id. All other keys are kept in Extra byte for byte, and so are
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
	f, err := rawjson.ParseObject(data)
	if err != nil {
		return fmt.Errorf("message: %w", err)
	}
	out, err := readMessage(f)
	if err != nil {
		return err
	}
	*m = out
	return nil
}

// readMessage takes the fields of a message; the rest becomes Extra.
func readMessage(f rawjson.Object) (Message, error) {
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
	_, present := f["content"]
	if m.Content, err = readContent(f.Take("content")); err != nil {
		return m, err
	}
	if m.ToolCalls, err = readToolCalls(f.Take("tool_calls")); err != nil {
		return m, err
	}
	m.readLegacy(f)
	if raw := f.Take("tool_call_id"); raw != nil {
		if rawjson.Kind(raw) != '"' {
			return m, fmt.Errorf("tool_call_id: want a string, got %s", rawjson.KindName(raw))
		}
		m.ToolCallID = rawjson.Text(raw)
	}
	m.ID = takeID(f, "id")
	m.SourceID = takeString(f, "source_id")
	m.Name = takeString(f, "name")
	m.Reasoning, m.ReasoningKey = takeReasoning(f)
	if at, ok := ParseTime(f["created_at"]); ok {
		m.CreatedAt = at
		delete(f, "created_at")
	}
	if len(f) > 0 {
		m.Extra = f
	}
	m.Content.Absent = !present && m.holdsNothing()
	return m, nil
}

// readLegacy takes the fields of a message from before tools (see Message.Legacy).
func (m *Message) readLegacy(f rawjson.Object) {
	switch {
	case m.Role == RoleFunction:
		m.Role, m.Legacy = RoleTool, true
	case m.Role == RoleAssistant && len(m.ToolCalls) == 0 && rawjson.Kind(f["function_call"]) == '{':
		c := ToolCall{Type: "function", Raw: f.Take("function_call")}
		c.readBody(c.Raw, "arguments")
		m.ToolCalls, m.Legacy = []ToolCall{c}, true
	}
}

// takeString removes key if it is a string. Null stays, so that Extra keeps it.
func takeString(f rawjson.Object, key string) string {
	if rawjson.Kind(f[key]) != '"' {
		return ""
	}
	return rawjson.Text(f.Take(key))
}

// takeID removes key if it is a string, or a number, which is taken as written.
func takeID(f rawjson.Object, key string) string {
	if rawjson.Kind(f[key]) == '0' {
		return string(f.Take(key))
	}
	return takeString(f, key)
}

// takeReasoning removes and returns the first non-empty of the two keys, or the first that
// is a string.
func takeReasoning(f rawjson.Object) (reasoning, key string) {
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
	raws, err := rawjson.InnerArray(raw)
	if err != nil {
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
	f, err := rawjson.InnerObject(raw)
	if err != nil {
		return p, err
	}
	if t := f.Take("type"); t != nil {
		if rawjson.Kind(t) != '"' {
			return p, fmt.Errorf("type: want a string, got %s", rawjson.KindName(t))
		}
		p.Type = rawjson.Text(t)
	}
	switch p.Type {
	case "text", "input_text", "output_text", "":
		p.Text = takeString(f, "text")
	case "refusal":
		p.Text = takeString(f, "refusal")
	}
	return p, nil
}

func readToolCalls(raw json.RawMessage) ([]ToolCall, error) {
	if raw == nil {
		return nil, nil
	}
	raws, err := rawjson.InnerArray(raw)
	if err != nil {
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
	f, err := rawjson.InnerObject(raw)
	if err != nil {
		return c, fmt.Errorf(": %w", err)
	}
	if id := f.Take("id"); id != nil {
		if rawjson.Kind(id) != '"' {
			return c, fmt.Errorf(".id: want a string, got %s", rawjson.KindName(id))
		}
		c.ID = rawjson.Text(id)
	}
	c.Type = takeString(f, "type")
	// A function call holds its input in function.arguments, a custom call in
	// custom.input.
	body, input := f.Take("function"), "arguments"
	if body == nil {
		body, input = f.Take("custom"), "input"
	}
	c.readBody(body, input)
	return c, nil
}

// readBody reads the name and the input of a call. Raw keeps a body of another type.
func (c *ToolCall) readBody(body json.RawMessage, input string) {
	fn, err := rawjson.InnerObject(body)
	if err != nil {
		return
	}
	c.Name = takeString(fn, "name")
	if args := fn.Take(input); rawjson.Kind(args) == '"' {
		c.Arguments = rawjson.Text(args)
	} else {
		c.Arguments = string(args) // some servers send the object itself
	}
}

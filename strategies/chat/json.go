package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// UnmarshalJSON reads one chat-completions message.
//
// It knows id, created_at, source_id, role, name, content, reasoning_content or
// reasoning, tool_calls and tool_call_id; every other key goes to Extra byte for
// byte, and so does a known key whose value has a type this package has no use
// for. Null and absent mean the same. An id that is a number becomes its digits.
//
// It fails on what cannot be a message: a role that is missing or no string, and
// a content, tool_calls or tool_call_id of a wrong type. The error names the
// field and what is allowed there, and never quotes what was said.
//
// encoding/json turns lone surrogate escapes and invalid UTF-8 into U+FFFD
// without a word; where that has to be counted, call SanitizeJSON first.
func (m *Message) UnmarshalJSON(data []byte) error {
	if k := jsonKind(data); k != "an object" {
		return fmt.Errorf("message: want an object, got %s", k)
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

// fields is a JSON object whose keys are taken one by one; what is left over
// becomes Extra.
type fields map[string]json.RawMessage

func (f fields) message() (Message, error) {
	var m Message
	role, ok := f["role"]
	delete(f, "role")
	switch {
	case !ok:
		return m, errors.New("role: missing; want a string: system, developer, user, assistant or tool")
	case jsonKind(role) != "a string":
		return m, fmt.Errorf("role: want a string, got %s", jsonKind(role))
	}
	m.Role = Role(text(role))
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
		if jsonKind(raw) != "a string" {
			return m, fmt.Errorf("tool_call_id: want a string, got %s", jsonKind(raw))
		}
		m.ToolCallID = text(raw)
	}
	m.ID = f.takeID("id")
	m.SourceID, _ = f.takeString("source_id")
	m.Name, _ = f.takeString("name")
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

// take removes key and returns its value, nil where it is absent or null.
func (f fields) take(key string) json.RawMessage {
	raw := f[key]
	delete(f, key)
	if jsonKind(raw) == "null" {
		return nil
	}
	return raw
}

// takeString removes key if it is a string.
func (f fields) takeString(key string) (string, bool) {
	raw, ok := f[key]
	if !ok || jsonKind(raw) != "a string" {
		return "", false
	}
	delete(f, key)
	return text(raw), true
}

// takeID removes key if it is a string, or a number, which is taken as written.
func (f fields) takeID(key string) string {
	if raw := f[key]; jsonKind(raw) == "a number" {
		delete(f, key)
		return string(raw)
	}
	s, _ := f.takeString(key)
	return s
}

// takeReasoning takes the first of the two keys that says something, or the
// first that is a string at all.
func (f fields) takeReasoning() (reasoning, key string) {
	for _, k := range []string{"reasoning_content", "reasoning"} {
		if jsonKind(f[k]) != "a string" {
			continue
		}
		if s := text(f[k]); key == "" || reasoning == "" && s != "" {
			reasoning, key = s, k
		}
	}
	delete(f, key)
	return reasoning, key
}

func readContent(raw json.RawMessage) (Content, error) {
	switch jsonKind(raw) {
	case "null", "nothing":
		return Content{Null: true}, nil
	case "a string":
		return Content{Text: text(raw)}, nil
	case "an array":
	default:
		return Content{}, fmt.Errorf("content: want a string, an array of parts or null, got %s", jsonKind(raw))
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
	switch jsonKind(raw) {
	case "a string":
		p.Text = text(raw)
		return p, nil
	case "an object":
	default:
		return p, fmt.Errorf("want an object or a string, got %s", jsonKind(raw))
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return p, err
	}
	if t := f.take("type"); t != nil {
		if jsonKind(t) != "a string" {
			return p, fmt.Errorf("type: want a string, got %s", jsonKind(t))
		}
		p.Type = text(t)
	}
	switch p.Type {
	case "text", "input_text", "output_text", "":
		p.Text, _ = f.takeString("text")
	case "refusal":
		p.Text, _ = f.takeString("refusal")
	}
	return p, nil
}

func readToolCalls(raw json.RawMessage) ([]ToolCall, error) {
	if raw == nil {
		return nil, nil
	}
	if jsonKind(raw) != "an array" {
		return nil, fmt.Errorf("tool_calls: want an array, got %s", jsonKind(raw))
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
	if jsonKind(raw) != "an object" {
		return c, fmt.Errorf(": want an object, got %s", jsonKind(raw))
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return c, fmt.Errorf(": %w", err)
	}
	if id := f.take("id"); id != nil {
		if jsonKind(id) != "a string" {
			return c, fmt.Errorf(".id: want a string, got %s", jsonKind(id))
		}
		c.ID = text(id)
	}
	c.Type, _ = f.takeString("type")
	// A function call holds its input in function.arguments, a custom call in
	// custom.input.
	body, input := f.take("function"), "arguments"
	if body == nil {
		body, input = f.take("custom"), "input"
	}
	if jsonKind(body) != "an object" {
		return c, nil
	}
	var fn fields
	if err := json.Unmarshal(body, &fn); err != nil {
		return c, fmt.Errorf(".function: %w", err)
	}
	c.Name, _ = fn.takeString("name")
	if args := fn.take(input); jsonKind(args) == "a string" {
		c.Arguments = text(args)
	} else {
		c.Arguments = string(args) // some servers send the object itself
	}
	return c, nil
}

// text decodes a raw JSON string that is known to be valid.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // valid: it was cut out by a decoder
	return s
}

// jsonKind names the type of a JSON value by its first byte, for errors.
func jsonKind(raw []byte) string {
	for _, b := range raw {
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		case '{':
			return "an object"
		case '[':
			return "an array"
		case '"':
			return "a string"
		case 't', 'f':
			return "a boolean"
		case 'n':
			return "null"
		}
		return "a number"
	}
	return "nothing"
}

// MarshalJSON writes the message as UnmarshalJSON reads it: reading what was
// written gives an equal Message, for every Message that was read from JSON.
// Raw values are written byte for byte and nothing is HTML-escaped. Note that
// json.Marshal compacts and HTML-escapes what any MarshalJSON returns; call
// AppendJSON where that matters.
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// AppendJSON appends the message to dst, like MarshalJSON. Strings that are no
// valid UTF-8 are written with U+FFFD in place of what is wrong. The Raw and
// Extra values of the message must be valid JSON.
func (m Message) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	if m.ID != "" {
		dst = appendField(dst, "id", m.ID)
		dst = append(dst, ',')
	}
	dst = appendField(dst, "role", string(m.Role))
	if m.Name != "" {
		dst = appendField(append(dst, ','), "name", m.Name)
	}
	dst = append(dst, `,"content":`...)
	dst = m.Content.appendJSON(dst)
	if m.Reasoning != "" || m.ReasoningKey != "" {
		dst = appendField(append(dst, ','), m.reasoningKey(), m.Reasoning)
	}
	if len(m.ToolCalls) > 0 {
		dst = append(dst, `,"tool_calls":[`...)
		for i, c := range m.ToolCalls {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = c.appendJSON(dst)
		}
		dst = append(dst, ']')
	}
	if m.ToolCallID != "" {
		dst = appendField(append(dst, ','), "tool_call_id", m.ToolCallID)
	}
	if m.SourceID != "" {
		dst = appendField(append(dst, ','), "source_id", m.SourceID)
	}
	if !m.CreatedAt.IsZero() {
		dst = appendField(append(dst, ','), "created_at", m.CreatedAt.UTC().Format(time.RFC3339Nano))
	}
	dst = appendExtra(dst, m.Extra, m.writes)
	return append(dst, '}')
}

// writes reports whether AppendJSON writes key from a field, so that a value of
// that name in Extra has to stay out.
func (m Message) writes(key string) bool {
	switch key {
	case "role", "content":
		return true
	case "id":
		return m.ID != ""
	case "name":
		return m.Name != ""
	case "tool_calls":
		return len(m.ToolCalls) > 0
	case "tool_call_id":
		return m.ToolCallID != ""
	case "source_id":
		return m.SourceID != ""
	case "created_at":
		return !m.CreatedAt.IsZero()
	}
	return (m.Reasoning != "" || m.ReasoningKey != "") && key == m.reasoningKey()
}

func (m Message) reasoningKey() string {
	if m.ReasoningKey == "" {
		return "reasoning_content"
	}
	return m.ReasoningKey
}

func (c Content) appendJSON(dst []byte) []byte {
	switch {
	case c.Parts != nil:
	case c.Null:
		return append(dst, "null"...)
	default:
		return appendString(dst, c.Text)
	}
	dst = append(dst, '[')
	for i, p := range c.Parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		if p.Raw != nil {
			dst = append(dst, p.Raw...)
			continue
		}
		kind, key := p.Type, "text"
		switch kind {
		case "":
			kind = "text"
		case "refusal":
			key = "refusal"
		}
		dst = appendField(append(dst, '{'), "type", kind)
		dst = append(appendField(append(dst, ','), key, p.Text), '}')
	}
	return append(dst, ']')
}

func (c ToolCall) appendJSON(dst []byte) []byte {
	if c.Raw != nil {
		return append(dst, c.Raw...)
	}
	body, input := "function", "arguments"
	if c.Type == "custom" {
		body, input = "custom", "input"
	}
	dst = appendField(append(dst, '{'), "id", c.ID)
	dst = appendField(append(dst, ','), "type", body)
	dst = append(dst, `,"`+body+`":{`...)
	dst = appendField(dst, "name", c.Name)
	dst = appendField(append(dst, ','), input, c.Arguments)
	return append(dst, "}}"...)
}

// appendExtra appends the values of extra that nothing else has written, in the
// order of their keys, each with a comma before it.
func appendExtra(dst []byte, extra map[string]json.RawMessage, written func(string) bool) []byte {
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		if written(key) {
			continue
		}
		dst = append(appendString(append(dst, ','), key), ':')
		if len(extra[key]) == 0 {
			dst = append(dst, "null"...)
		}
		dst = append(dst, extra[key]...)
	}
	return dst
}

func appendField(dst []byte, key, value string) []byte {
	return appendString(append(appendString(dst, key), ':'), value)
}

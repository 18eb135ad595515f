package chat

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"
)

// WriteSession writes s as one line of JSONL, in one call of w.Write. Reading it returns an
// equal session, except that raw values with line breaks lose the white space between their
// tokens.
func WriteSession(w io.Writer, s Session) error {
	line := append(appendField([]byte{'{'}, "session_id", s.ID), ',')
	if s.Model != "" {
		line = append(appendField(line, "model", s.Model), ',')
	}
	line = append(line, `"messages":[`...)
	for i, m := range s.Messages {
		if i > 0 {
			line = append(line, ',')
		}
		line = m.AppendJSON(line)
	}
	line = appendExtra(append(line, ']'), s.Extra, func(key string) bool {
		return key == "session_id" || key == "messages" || key == "model" && s.Model != ""
	})
	line = append(line, '}')
	// A line break in JSON is white space between tokens: it is escaped in strings.
	if bytes.IndexByte(line, '\n') >= 0 {
		var b bytes.Buffer
		if err := json.Compact(&b, line); err != nil {
			return err
		}
		line = b.Bytes()
	}
	_, err := w.Write(append(line, '\n'))
	return err
}

// MarshalJSON writes the message so that UnmarshalJSON returns an equal one, for every
// message that was read from JSON. Raw values are written byte for byte, without HTML
// escaping; since json.Marshal compacts and escapes the output of MarshalJSON, use
// AppendJSON where that matters.
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// AppendJSON appends the JSON of the message to dst (see MarshalJSON). Invalid UTF-8 is
// written as U+FFFD. The Raw and Extra values must be valid JSON.
func (m Message) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	if m.ID != "" {
		dst = appendField(dst, "id", m.ID)
		dst = append(dst, ',')
	}
	role := m.Role
	if m.Legacy && role == RoleTool {
		role = RoleFunction
	}
	dst = appendField(dst, "role", string(role))
	if m.Name != "" {
		dst = appendField(append(dst, ','), "name", m.Name)
	}
	if !m.Content.Absent {
		dst = append(dst, `,"content":`...)
		dst = m.Content.appendJSON(dst)
	}
	if m.Reasoning != "" || m.ReasoningKey != "" {
		dst = appendField(append(dst, ','), m.reasoningKey(), m.Reasoning)
	}
	switch {
	case m.Legacy && len(m.ToolCalls) == 1:
		dst = m.ToolCalls[0].appendBody(append(dst, `,"function_call":`...), "arguments")
	case len(m.ToolCalls) > 0:
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

// writes reports whether AppendJSON writes key from a field, in which case Extra must not
// repeat it.
func (m Message) writes(key string) bool {
	switch key {
	case "role", "content":
		return true
	case "id":
		return m.ID != ""
	case "name":
		return m.Name != ""
	case "tool_calls":
		return len(m.ToolCalls) > 0 && !m.Legacy
	case "function_call":
		return len(m.ToolCalls) > 0 && m.Legacy
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
	return append(c.appendBody(append(dst, `,"`+body+`":`...), input), '}')
}

// appendBody appends the name and the input of a call, or Raw.
func (c ToolCall) appendBody(dst []byte, input string) []byte {
	if c.Raw != nil {
		return append(dst, c.Raw...)
	}
	dst = appendField(append(dst, '{'), "name", c.Name)
	return append(appendField(append(dst, ','), input, c.Arguments), '}')
}

// appendExtra appends the values of extra whose keys are not written yet, sorted by key,
// each preceded by a comma.
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

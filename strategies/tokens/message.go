package tokens

import (
	"encoding/json"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Overheads in tokens. PerMessage and PerName are from the OpenAI cookbook, "How to count
// tokens with tiktoken" (num_tokens_from_messages, valid from gpt-3.5-turbo-0613 on), which
// adds 3 per request for the answer; PerCall and PerMedia are this project's.
const (
	// PerMessage covers the delimiters of a message: <|start|>, the separator after
	// the role, <|end|>.
	PerMessage chat.Tokens = 3
	// PerName covers the separator before a name.
	PerName chat.Tokens = 1
	// PerCall covers the JSON of a tool call around its id, name and arguments.
	PerCall chat.Tokens = 8
	// PerMedia is the flat estimate for an image, audio or file of any size: a 1024 × 1024 image
	// costs 765 tokens at OpenAI (high detail) and about 1,400 at Anthropic. Its base64 text is
	// never counted.
	PerMedia chat.Tokens = 1000
)

// message returns the sum of the counts of a message's fields: role, name, content,
// reasoning, calls and the id of the call that it answers.
func message(c Counter, m *chat.Message) chat.Tokens {
	n := PerMessage + c.Text(string(m.Role))
	if m.Name != "" {
		n += PerName + c.Text(m.Name)
	}
	n += content(c, m.Content) + c.Text(m.Reasoning) + c.Text(m.ToolCallID)
	for _, call := range m.ToolCalls {
		n += PerCall + c.Text(call.ID) + c.Text(call.Name) + c.Text(call.Arguments)
	}
	for _, key := range chat.ReasoningKeys { // structured reasoning is sent verbatim
		if raw := m.Extra[key]; len(raw) > 0 && string(raw) != "null" {
			n += c.Text(string(raw))
		}
	}
	return n
}

func content(c Counter, content chat.Content) chat.Tokens {
	if content.Parts == nil {
		return c.Text(content.Text)
	}
	var n chat.Tokens
	for _, p := range content.Parts {
		switch {
		case p.IsMedia():
			n += PerMedia
		case p.Text != "":
			n += c.Text(p.Text)
		case p.Type == "tool_result":
			n += toolResult(c, p.Raw)
		case slices.Contains([]string{"text", "input_text", "output_text", "refusal"}, p.Type): // without text
		case p.Raw != nil:
			n += c.Text(string(p.Raw)) // JSON of reasoning or a tool block
		}
	}
	return n
}

// toolResult counts a tool_result part, whose content may hold media.
func toolResult(c Counter, raw json.RawMessage) chat.Tokens {
	var part struct {
		ID      string          `json:"tool_use_id"`
		Content json.RawMessage `json:"content"`
	}
	var inner chat.Message
	if json.Unmarshal(raw, &part) != nil || part.Content == nil ||
		inner.UnmarshalJSON([]byte(`{"role":"tool","content":`+string(part.Content)+`}`)) != nil {
		return c.Text(string(raw))
	}
	return PerCall + c.Text(part.ID) + content(c, inner.Content)
}

package tokens

import (
	"encoding/json"

	"github.com/sessionstore/compactor/strategies/chat"
)

// What a request costs besides its texts. The first three are from the OpenAI
// cookbook, "How to count tokens with tiktoken" (num_tokens_from_messages, valid
// from gpt-3.5-turbo-0613 on); PerCall and PerMedia are this project's.
const (
	// PerMessage is the frame of a message: <|start|>, the separator behind the
	// role, <|end|>.
	PerMessage chat.Tokens = 3
	// PerName is the separator in front of a name.
	PerName chat.Tokens = 1
	// PerReply primes the answer. It is due once a request, so no count of a
	// message holds it.
	PerReply chat.Tokens = 3
	// PerCall is the frame of a tool call beside its id, name and arguments:
	// the JSON around them, about what "type" and the four keys come to.
	PerCall chat.Tokens = 8
	// PerMedia is the price of an image, a sound or a file, whatever it weighs: a
	// 1024 × 1024 image costs 765 tokens at OpenAI (high detail) and about
	// 1,400 at Anthropic. Its base64 text is never counted.
	PerMedia chat.Tokens = 1000
)

// message adds up a message: role, name, content, reasoning, calls and the id of
// the call it answers, each counted by itself.
func message(c Counter, m *chat.Message) chat.Tokens {
	n := PerMessage + c.Text(string(m.Role))
	if m.Name != "" {
		n += PerName + c.Text(m.Name)
	}
	n += content(c, m.Content) + c.Text(m.Reasoning) + c.Text(m.ToolCallID)
	for _, call := range m.ToolCalls {
		n += PerCall + c.Text(call.ID) + c.Text(call.Name) + c.Text(call.Arguments)
	}
	// Calls of the old kind and structured reasoning are sent as they are.
	for _, key := range []string{"function_call", "reasoning_details"} {
		if raw := m.Extra[key]; string(raw) != "null" {
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
			n += block(c, p.Raw)
		case p.Raw != nil && !said(p.Type):
			n += c.Text(string(p.Raw)) // reasoning, a tool block: its JSON
		}
	}
	return n
}

// block counts the content of a tool_result part, which may hold media.
func block(c Counter, raw json.RawMessage) chat.Tokens {
	var part struct {
		ID      string          `json:"tool_use_id"`
		Content json.RawMessage `json:"content"`
	}
	var inner chat.Message
	if json.Unmarshal(raw, &part) != nil || part.Content == nil {
		return c.Text(string(raw))
	}
	if inner.UnmarshalJSON([]byte(`{"role":"tool","content":`+string(part.Content)+`}`)) != nil {
		return c.Text(string(raw))
	}
	return PerCall + c.Text(part.ID) + content(c, inner.Content)
}

// said reports whether a part of that type is text that happens to be empty.
func said(kind string) bool {
	switch kind {
	case "text", "input_text", "output_text", "refusal":
		return true
	}
	return false
}

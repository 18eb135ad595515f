package chat

import (
	"encoding/json"
	"strings"
	"time"
)

// Role is the speaker of a message. Roles outside the constants below are kept
// exactly as they came and are grouped like assistant text.
type Role string

// The roles of the chat-completions format.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Kind says who wrote a row of the log.
type Kind string

const (
	// KindSource is what the application appended.
	KindSource Kind = "source"
	// KindSummary is one message that stands for several.
	KindSummary Kind = "summary"
	// KindStandIn is one message rewritten for the view: a stub, a clamped
	// output, an orphaned result turned into text.
	KindReplacement Kind = "replacement"
)

// Message is one chat-completions message together with the envelope the store
// keeps beside it (ID, SourceID, CreatedAt). Fields this package does not know
// are kept in Extra, so that reading and writing lose nothing.
type Message struct {
	ID        string
	Role      Role
	Name      string
	Content   Content
	ToolCalls []ToolCall
	// ToolCallID is the call a tool message answers.
	ToolCallID string
	// Reasoning is the model's own reasoning text, from the key named by
	// ReasoningKey ("reasoning_content" or "reasoning").
	Reasoning    string
	ReasoningKey string
	// SourceID attributes the message to the part of the application that
	// produced it (a memory provider, a retriever, …).
	SourceID string
	// CreatedAt is the zero time where the message carries none.
	CreatedAt time.Time
	Extra     map[string]json.RawMessage
}

// Content is a string, a list of parts, or null.
type Content struct {
	Text  string // the content, when it was a string
	Parts []Part // the content, when it was an array (possibly empty, then non-nil)
	Null  bool   // the content was null or absent
}

// Part is one element of an array content. Raw is the element as received.
type Part struct {
	Type string
	Text string // set for text parts and refusals
	Raw  json.RawMessage
}

// ToolCall is one call of an assistant message. Arguments is the raw string the
// model produced; it need not be valid JSON. Raw is the element as received, nil
// when the call was made in Go; writing prefers it.
type ToolCall struct {
	ID        string
	Type      string
	Name      string
	Arguments string
	Raw       json.RawMessage
}

// TextContent is string content.
func TextContent(s string) Content { return Content{Text: s} }

// String joins the text of the content: the string itself, or its text parts
// with a newline between them.
func (c Content) String() string {
	if c.Parts == nil {
		return c.Text
	}
	texts := make([]string, 0, len(c.Parts))
	for _, p := range c.Parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Media reports how many parts are media: images, audio, files.
func (c Content) Media() int {
	n := 0
	for _, p := range c.Parts {
		if p.IsMedia() {
			n++
		}
	}
	return n
}

// IsMedia reports whether the part is an image, audio or a file, which costs a
// flat number of tokens whatever its encoded length. A type this package does
// not know counts as media; text, refusals, reasoning and tool blocks do not.
func (p Part) IsMedia() bool {
	switch p.Type {
	case "text", "input_text", "output_text", "refusal", "tool_use", "tool_result", "":
		return false
	}
	return !p.IsReasoning()
}

// IsReasoning reports whether the part is the model's reasoning rather than
// something it said.
func (p Part) IsReasoning() bool {
	switch p.Type {
	case "thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text":
		return true
	}
	return false
}

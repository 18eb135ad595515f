package chat

import (
	"encoding/json"
	"strings"
	"time"
)

// Role is the author of a message. Unknown roles are grouped like assistant text; Validate
// refuses them.
type Role string

// The roles of the chat-completions format.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"

	// RoleFunction is RoleTool of a legacy message (see Message.Legacy) as it is written and stored.
	RoleFunction Role = "function"
)

// Known reports whether r is one of the roles of the format.
func (r Role) Known() bool {
	switch r {
	case RoleSystem, RoleDeveloper, RoleUser, RoleAssistant, RoleTool, RoleFunction:
		return true
	}
	return false
}

// Kind is the origin of a row of the log.
type Kind string

const (
	// KindSource is a message that the application appended.
	KindSource Kind = "source"
	// KindSummary is one message that covers several.
	KindSummary Kind = "summary"
	// KindReplacement is one message rewritten for the view: a stub, a clamped output, an
	// orphaned result turned into text.
	KindReplacement Kind = "replacement"
)

// SkillPrefix begins a message of the user in which Claude Code passes on the text of a skill; the
// skill's folder follows it.
const SkillPrefix = "Base directory for this skill: "

// Message is a chat-completions message with the store's envelope (ID, SourceID,
// CreatedAt). Unknown fields are kept in Extra, so that reading and writing lose nothing.
type Message struct {
	ID        string
	Role      Role
	Name      string
	Content   Content
	ToolCalls []ToolCall
	// ToolCallID is the call that a tool message answers.
	ToolCallID string
	// Reasoning is the model's reasoning text, from the key ReasoningKey
	// ("reasoning_content" or "reasoning").
	Reasoning    string
	ReasoningKey string
	// Legacy reports the form from before tools: a function_call, which is the one element of
	// ToolCalls and has no id, or the role function of its result, which is RoleTool here.
	Legacy bool
	// SourceID names the part of the application that produced the message (a memory
	// provider, a retriever, …).
	SourceID string
	// CreatedAt is the zero time if the message has none.
	CreatedAt time.Time
	Extra     map[string]json.RawMessage
}

// Original is a message of the application with its seq in the log of its session, 0 if that is
// unknown.
type Original struct {
	*Message
	Seq Seq
}

// Body returns m without the store's envelope: what the store keeps as its body, and
// what a provider is sent, as strict ones refuse id and created_at.
func (m Message) Body() Message {
	m.ID, m.SourceID, m.CreatedAt = "", "", time.Time{}
	return m
}

// Content is a string, a list of parts, or null.
type Content struct {
	Text  string // the content, when it was a string
	Parts []Part // the content, when it was an array (possibly empty, then non-nil)
	Null  bool   // the content was null or absent
	// Absent reports that there was no content and nothing else that the message could hold.
	Absent bool
}

// Part is an element of array content. Raw is the element as received.
type Part struct {
	Type string
	Text string // set for text parts and refusals
	Raw  json.RawMessage
}

// ToolCall is one call of an assistant message. Arguments is the raw string of the model
// and need not be valid JSON. Raw is the element as received, nil for a call made in Go; it
// is written in preference to the other fields.
type ToolCall struct {
	ID        string
	Type      string
	Name      string
	Arguments string
	Raw       json.RawMessage
}

// TextContent returns string content.
func TextContent(s string) Content { return Content{Text: s} }

// String returns the string content, or the text parts joined with newlines.
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

// Media returns the number of parts that are images, audio or files.
func (c Content) Media() int {
	n := 0
	for _, p := range c.Parts {
		if p.IsMedia() {
			n++
		}
	}
	return n
}

// IsMedia reports whether the part is an image, audio or a file, which has a flat token
// cost whatever its encoded length. Unknown types count as media; text, refusals, reasoning
// and tool blocks do not.
func (p Part) IsMedia() bool {
	switch p.Type {
	case "text", "input_text", "output_text", "refusal", "tool_use", "tool_result", "":
		return false
	}
	return !p.IsReasoning()
}

// IsReasoning reports whether the part is the model's reasoning.
func (p Part) IsReasoning() bool {
	switch p.Type {
	case "thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text":
		return true
	}
	return false
}

// HasContent reports whether content has text or media.
func HasContent(c Content) bool {
	for _, p := range c.Parts {
		if p.Text != "" || p.IsMedia() {
			return true
		}
	}
	return c.Text != ""
}

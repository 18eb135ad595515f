package formats

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// encodeAnthropic writes {"system", "messages"} with roles that alternate, the
// results of a call at the beginning of the message after it.
func encodeAnthropic(e *encoder, s chat.Session) {
	doc := buildDocument(s)
	var system, messages []json.RawMessage
	var turn anthropicTurn
	begun := false
	for i := range s.Messages {
		m := &s.Messages[i]
		holds := []string{"anthropic"}
		if m.Role == chat.RoleTool {
			holds = append(holds, "is_error")
		}
		e.envelope(m, holds...)
		isSystem := m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper
		begun = begun || !isSystem
		blocks := e.blocks(m, true)
		if len(blocks) == 0 {
			e.lose("empty message")
			continue
		}
		if m.Role == chat.RoleDeveloper {
			e.lose("role")
		}
		if isSystem {
			if begun {
				e.lose("system message moved")
			} else if len(system) > 0 {
				e.lose("joined")
			}
			system = append(system, blocks...)
			continue
		}
		role := "user"
		if m.Role == chat.RoleAssistant {
			role = "assistant"
		}
		if turn.role == "" && role == "assistant" { // an API wants a message of the user first
			e.lose("first message added")
			messages = append(messages, rawjson.Build("role", "user", "content", firstMessage).JSON())
		}
		if role != turn.role {
			messages = append(messages, turn.json()...)
			turn = anthropicTurn{role: role, extra: object{}}
		}
		e.addTurn(&turn, m, blocks)
	}
	messages = append(messages, turn.json()...)
	if len(system) > 0 {
		doc.Add("system", plainContent(system))
	}
	doc.Add("messages", rawjson.List(messages))
	e.document(doc, s, "system")
}

// firstMessage stands for the messages of the user before the first one of the assistant.
const firstMessage = "[Earlier messages are not shown.]"

// anthropicTurn collects messages that are written as one.
type anthropicTurn struct {
	role            string
	results, blocks []json.RawMessage
	extra           object
	messages        int // source messages that are not results
}

func (t *anthropicTurn) json() []json.RawMessage {
	if len(t.results)+len(t.blocks) == 0 {
		return nil
	}
	b := rawjson.Build("role", t.role, "content", plainContent(slices.Concat(t.results, t.blocks)))
	return []json.RawMessage{b.Rest(t.extra.Without("role", "content")).JSON()}
}

func (e *encoder) addTurn(t *anthropicTurn, m *chat.Message, blocks []json.RawMessage) {
	extra := object(m.Extra).Object("anthropic")
	if m.Role == chat.RoleTool {
		if t.messages > 0 {
			e.lose("order")
		}
		t.results = append(t.results, blocks...)
		extra = extra.Object("message")
	} else {
		if t.messages++; t.messages > 1 {
			e.lose("joined")
		}
		t.blocks = append(t.blocks, blocks...)
		delete(extra, "tool_use_at")
	}
	for key, raw := range extra {
		if _, twice := t.extra[key]; twice {
			e.lose("extra")
		}
		t.extra[key] = raw
	}
}

// plainContent returns the text of a single plain text block, otherwise the list.
func plainContent(blocks []json.RawMessage) json.RawMessage {
	if len(blocks) == 1 {
		if o, err := rawjson.ParseObject(blocks[0]); err == nil && len(o) == 2 && o.String("type") == "text" && o["text"] != nil {
			return o["text"]
		}
	}
	return rawjson.List(blocks)
}

// blocks returns the blocks of a message. An API rejects texts of white space alone and thinking
// without a signature; a log may hold them.
func (e *encoder) blocks(m *chat.Message, api bool) []json.RawMessage {
	if m.Role == chat.RoleTool {
		return []json.RawMessage{e.toolResult(m, api)}
	}
	var out []json.RawMessage
	for _, p := range partsOf(m.Content) {
		if raw := e.anthropicPart(p, api, m.Role == chat.RoleAssistant); raw != nil {
			out = append(out, raw)
		}
	}
	if m.Role != chat.RoleAssistant {
		return out
	}
	calls := make([]json.RawMessage, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		calls[i] = e.callBlock(c, "anthropic", "tool_use", "input")
	}
	extra := object(m.Extra).Object("anthropic")
	if extra["tool_use_at"] == nil {
		return append(out, calls...)
	}
	var at []int
	if json.Unmarshal(extra["tool_use_at"], &at) != nil || len(at) != len(calls) || !slices.IsSorted(at) ||
		len(at) > 0 && (at[0] < 0 || at[len(at)-1] >= len(at)+len(out)) {
		return append(out, calls...) // the message has changed since
	}
	for i, call := range calls {
		out = slices.Insert(out, min(at[i], len(out)), call)
	}
	return out
}

// isBlank reports whether an API rejects the text of a block as empty.
func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// notInAnthropic lists the types of parts that Anthropic has no equivalent for.
var notInAnthropic = []string{"input_audio", "audio", "file", "input_file", "input_image", "video_url", "video"}

func (e *encoder) anthropicPart(p part, api, assistant bool) json.RawMessage {
	switch {
	case p.isText():
		if api && isBlank(p.Text) {
			e.lose("empty text")
			return nil
		}
		return p.asText()
	case p.Type == "refusal":
		e.lose("refusal")
		if api && isBlank(p.Text) {
			return nil
		}
		return textPart(p.Text)
	case p.Type == "thinking" || p.Type == "redacted_thinking":
		if !assistant || api && p.Type == "thinking" && p.String("signature") == "" || api && p.Type == "redacted_thinking" && p.String("data") == "" {
			e.lose("reasoning")
			return nil
		}
		return p.Raw
	case p.IsReasoning():
		e.lose("reasoning")
		return nil
	case p.Type == "image_url":
		return e.anthropicImage(p)
	case slices.Contains(notInAnthropic, p.Type):
		e.lose("part " + p.Type)
		return nil
	}
	return p.Raw
}

func (e *encoder) anthropicImage(p part) json.RawMessage {
	url, rest := p.url()
	if len(rest) > 0 {
		e.lose("image detail")
	}
	source := rawjson.Build("type", "url", "url", url)
	if mime, data, ok := dataURL(url); ok {
		source = rawjson.Build("type", "base64", "media_type", mime, "data", data)
	}
	return retyped(p.object, "image", object{"image_url": nil, "source": source.JSON()})
}

// withoutMessage is the text of a failed result that has none, which an API rejects.
const withoutMessage = "[The call failed without a message.]"

func (e *encoder) toolResult(m *chat.Message, api bool) json.RawMessage {
	b := rawjson.Build("type", "tool_result", "tool_use_id", m.ToolCallID)
	failed := e.flag(m, "is_error")
	given := partsOf(m.Content)
	var parts []json.RawMessage
	for _, p := range given {
		if raw := e.anthropicPart(p, api || failed, false); raw != nil {
			parts = append(parts, raw)
		}
	}
	switch {
	case failed && len(parts) == 0:
		if len(given) == 0 {
			e.lose("empty text")
		}
		b.Add("content", rawjson.Quote(withoutMessage))
	case m.Content.Parts != nil:
		b.Add("content", rawjson.List(parts))
	case !m.Content.Null && len(parts) == len(given):
		b.Add("content", rawjson.Quote(m.Content.Text))
	}
	if failed {
		b.Add("is_error", isTrue)
	}
	own := object(m.Extra).Object("anthropic").Without("type", "tool_use_at", "message")
	return b.Rest(e.excluding(own, "tool_use_id", "content", "is_error")).JSON()
}

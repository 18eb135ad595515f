package formats

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// WriteModelMessages writes {"messages"} with the ModelMessages of the Vercel AI SDK, from its version
// 6 on, and returns the losses. This is no Format: the SDK's hosts keep other messages than these. s is
// not changed.
func WriteModelMessages(w io.Writer, s chat.Session) (Losses, error) {
	e := &encoder{losses: Losses{}}
	names := map[string]string{} // of calls, by id
	messages := []json.RawMessage{}
	for _, m := range e.prompt(s.Messages, Format{encode: encodeAnthropic}) { // with the calls of now, and different ids
		if raw := e.modelMessage(&m, names); raw != nil {
			messages = append(messages, raw)
		} else {
			e.lose("empty message")
		}
	}
	e.line(rawjson.Build("messages", rawjson.List(messages)).JSON())
	_, err := w.Write(e.out.Bytes())
	return e.losses, err
}

// modelMessage returns a message, nil if all of it is lost.
func (e *encoder) modelMessage(m *chat.Message, names map[string]string) json.RawMessage {
	e.envelope(m, "id", "created_at", "reasoning", "is_error")
	var parts []json.RawMessage
	switch m.Role {
	case chat.RoleSystem, chat.RoleDeveloper:
		var text strings.Builder
		for _, p := range partsOf(m.Content) {
			if p.isText() {
				text.WriteString(p.Text)
			} else {
				e.lose("part " + p.Type)
			}
		}
		return rawjson.Build("role", "system", "content", rawjson.Quote(text.String())).JSON()
	case chat.RoleTool:
		output := e.resultOutput(m)
		name := names[m.ToolCallID]
		if name == "" {
			name = m.Name
		}
		parts = append(parts, rawjson.Build("type", "tool-result", "toolCallId", rawjson.Quote(m.ToolCallID), "toolName", rawjson.Quote(name), "output", output).JSON())
	case chat.RoleAssistant:
		if m.Reasoning != "" {
			parts = append(parts, rawjson.Build("type", "reasoning", "text", rawjson.Quote(m.Reasoning)).JSON())
		}
		parts = append(parts, e.modelParts(m)...)
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Name
			e.ownCall(c, "")
			input, ok := arguments(c.Arguments)
			if !ok {
				e.lose("arguments")
			}
			parts = append(parts, rawjson.Build("type", "tool-call", "toolCallId", rawjson.Quote(c.ID), "toolName", rawjson.Quote(c.Name), "input", input).JSON())
		}
	default:
		parts = e.modelParts(m)
	}
	if len(parts) == 0 {
		return nil
	}
	return rawjson.Build("role", string(m.Role), "content", rawjson.List(parts)).JSON()
}

// modelParts returns the parts of a message of the user or the assistant.
func (e *encoder) modelParts(m *chat.Message) (out []json.RawMessage) {
	for _, p := range partsOf(m.Content) {
		url, _ := p.url()
		switch {
		case p.isText(), p.Type == "refusal":
			out = append(out, textPart(p.Text))
		case p.Type == "image_url" && m.Role == chat.RoleUser:
			out = append(out, rawjson.Build("type", "image", "image", rawjson.Quote(url)).JSON())
		case p.Type == "thinking" && m.Role == chat.RoleAssistant:
			b := rawjson.Build("type", "reasoning", "text", rawjson.Quote(p.String("thinking")))
			if signature := p.String("signature"); signature != "" {
				b.Add("providerOptions", rawjson.Build("anthropic", rawjson.Build("signature", rawjson.Quote(signature)).JSON()).JSON())
			}
			out = append(out, b.JSON())
		case p.Type == "redacted_thinking" && m.Role == chat.RoleAssistant:
			data := rawjson.Build("redactedData", rawjson.Quote(p.String("data"))).JSON()
			out = append(out, rawjson.Build("type", "reasoning", "text", rawjson.Quote(""), "providerOptions", rawjson.Build("anthropic", data).JSON()).JSON())
		case p.IsReasoning():
			e.lose("reasoning")
		default:
			e.lose("part " + p.Type)
		}
	}
	return out
}

// resultOutput returns the output of a tool result.
func (e *encoder) resultOutput(m *chat.Message) json.RawMessage {
	var parts []json.RawMessage
	var text strings.Builder
	plain := true
	for _, p := range partsOf(m.Content) {
		url, _ := p.url()
		switch mime, data, inline := dataURL(url); {
		case p.isText():
			text.WriteString(p.Text)
			parts = append(parts, textPart(p.Text))
		case p.Type != "image_url":
			e.lose("part " + p.Type)
		case inline:
			plain = false
			parts = append(parts, rawjson.Build("type", "image-data", "data", rawjson.Quote(data), "mediaType", rawjson.Quote(mime)).JSON())
		default:
			plain = false
			parts = append(parts, rawjson.Build("type", "image-url", "url", rawjson.Quote(url)).JSON())
		}
	}
	kind := "text"
	if e.flag(m, "is_error") {
		kind = "error-text"
	}
	if !plain && kind == "text" {
		return rawjson.Build("type", "content", "value", rawjson.List(parts)).JSON()
	} else if !plain {
		e.lose("part image_url")
	}
	return rawjson.Build("type", kind, "value", rawjson.Quote(text.String())).JSON()
}

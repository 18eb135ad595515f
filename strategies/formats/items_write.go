package formats

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// encodeResponses writes {"instructions", "input": items}.
func encodeResponses(e *encoder, s chat.Session) { e.responses(s) }

// WriteItems writes a session in the format responses as Write does, and also returns the indexes of the messages
// that the instructions, if there are any, and each item of input are of.
func WriteItems(w io.Writer, s chat.Session) (of []int, losses Losses, err error) {
	e := &encoder{losses: Losses{}}
	s.Messages = e.prompt(s.Messages, Format{Name: "responses", encode: encodeResponses})
	of = e.responses(s)
	_, err = w.Write(e.out.Bytes())
	return of, e.losses, err
}

// responses writes a document and returns what WriteItems does.
func (e *encoder) responses(s chat.Session) (of []int) {
	doc := buildDocument(s)
	ms := s.Messages
	if len(ms) > 0 && isInstructions(ms[0]) {
		e.envelope(&ms[0])
		doc.Add("instructions", rawjson.Quote(ms[0].Content.String()))
		ms = ms[1:]
	}
	var items []object
	var from []int // the message of each
	at, before := 0, len(s.Messages)-len(ms)
	e.encodeItems(ms, nil, func(item object, m *chat.Message) {
		for &ms[at] != m {
			at++
		}
		items, from = append(items, item), append(from, before+at)
	})
	// An API rejects reasoning that nothing of its response follows.
	var all []json.RawMessage
	follows := false
	for i, item := range slices.Backward(items) {
		switch typ := item.String("type"); {
		case typ != "reasoning":
			follows = !strings.HasSuffix(typ, "_output") && cmp.Or(item.String("role"), "assistant") == "assistant"
		case !follows:
			e.lose("reasoning")
			continue
		}
		all, of = append(all, item.JSON()), append(of, from[i])
	}
	slices.Reverse(all)
	for range before {
		of = append(of, 0)
	}
	slices.Reverse(of)
	doc.Add("input", rawjson.List(all))
	e.document(doc, s, "input", "output", "instructions")
	return of
}

// isInstructions reports whether a message can be the instructions of a request:
// a system message of one text.
func isInstructions(m chat.Message) bool {
	parts := m.Content.Parts
	return m.Role == chat.RoleSystem && (parts == nil || len(parts) == 1 && isPlain(parts[0]))
}

// encodeItems passes each item of the messages to emit.
func (e *encoder) encodeItems(ms []chat.Message, holds []string, emit func(object, *chat.Message)) {
	types := map[string]string{}
	reasoned := false                   // whether reasoning of the same response stands before
	last := -1                          // rank of the last item, -1 if it was not the assistant's
	latest, open := 0, map[string]int{} // index of the last message that is not a result; calls by id
	for i := range ms {
		m := &ms[i]
		if m.Role != chat.RoleTool {
			latest = i
		} else if at, ok := open[m.ToolCallID]; ok {
			if at != latest {
				e.lose("order")
			}
			delete(open, m.ToolCallID)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = i
		}
		all := e.items(m, types, holds, &reasoned)
		for k, item := range all {
			rank := -1
			if m.Role == chat.RoleAssistant {
				rank = rankOf(item.String("type"))
			}
			if k == 0 && last >= 0 && rank >= 0 && joinsRank(last, rank) {
				e.lose("joined")
			}
			last = rank
			emit(item, m)
		}
	}
}

func rankOf(typ string) int {
	switch {
	case typ == "message":
		return rankMessage
	case outputs[typ] != "":
		return rankCall
	}
	return rankReasoning
}

// items returns the items of one message.
func (e *encoder) items(m *chat.Message, types map[string]string, holds []string, reasoned *bool) []object {
	*reasoned = *reasoned && m.Role == chat.RoleAssistant
	own := own(m.Extra, "responses")
	holds = append(slices.Clone(holds), "responses")
	if m.Role == chat.RoleTool {
		return []object{e.outputItem(m, own, types, holds)}
	}
	parts, items := e.itemParts(m)
	*reasoned = *reasoned || slices.ContainsFunc(items, func(o object) bool { return o.String("type") == "reasoning" })
	// A message is left out if all of it is lost.
	gone := m.Role == chat.RoleAssistant && len(parts)+len(items)+len(m.ToolCalls)+len(own) == 0 &&
		(len(m.Content.Parts) > 0 || m.Reasoning != "")
	hasMessage := len(parts) > 0 || len(own) > 0 || len(items)+len(m.ToolCalls) == 0 || m.Role != chat.RoleAssistant
	if hasMessage {
		item := own
		item.Set("type", "message", "role", string(m.Role), "content", rawjson.List(parts))
		if m.Content.Parts == nil && m.Role != chat.RoleAssistant {
			item["content"] = rawjson.Quote(m.Content.Text)
		}
		// The API takes the id of an answer only after the reasoning of its response.
		if strings.HasPrefix(m.ID, "msg_") && (*reasoned || m.Role != chat.RoleAssistant) {
			item["id"] = rawjson.Quote(m.ID)
			holds = append(holds, "id")
		}
		items = append(items, item)
	}
	if gone {
		e.envelope(m)
		return nil
	}
	e.envelope(m, holds...)
	if m.Role != chat.RoleAssistant {
		return items
	}
	for _, c := range m.ToolCalls {
		item := e.callItem(c)
		if _, ok := item["id"]; ok && !*reasoned {
			delete(item, "id")
			e.lose("item id")
		}
		items = append(items, item)
		types[c.ID] = outputOf(c)
	}
	return items
}

func (e *encoder) callItem(c chat.ToolCall) object {
	item, more := callExtra(c, "responses")
	if more {
		e.lose("call extra")
	}
	if item == nil {
		item = object{}
	}
	item.Set("call_id", c.ID)
	switch typ := item.String("type"); {
	case c.Type == "custom":
		item.Set("type", "custom_tool_call", "name", c.Name, "input", c.Arguments)
	case outputs[typ] != "" && typ != "function_call" && typ != "custom_tool_call":
		action, ok := arguments(c.Arguments)
		if !ok {
			e.lose("arguments")
		}
		item["action"] = action
	default:
		item.Set("type", "function_call", "name", c.Name, "arguments", c.Arguments)
	}
	return item
}

func (e *encoder) outputItem(m *chat.Message, item object, types map[string]string, holds []string) object {
	if strings.HasPrefix(m.ID, "fc") || strings.HasPrefix(m.ID, "ctc") {
		item["id"] = rawjson.Quote(m.ID)
		holds = append(holds, "id")
	}
	e.envelope(m, holds...)
	if !strings.HasSuffix(item.String("type"), "_call_output") {
		item.Set("type", cmp.Or(types[m.ToolCallID], outputs["function_call"]))
	}
	item.Set("call_id", m.ToolCallID)
	if m.Content.Parts == nil {
		item["output"] = rawjson.Quote(m.Content.Text)
		return item
	}
	parts, items := e.itemParts(m)
	for _, i := range items {
		e.lose("part " + i.String("type"))
	}
	item["output"] = rawjson.List(parts)
	return item
}

// notInResponses lists the types of parts that Responses has no equivalent for.
var notInResponses = []string{"image", "document", "search_result", "file", "audio", "video_url", "video"}

// itemParts splits a content into the parts of its message and those that are items of their
// own, before the message.
func (e *encoder) itemParts(m *chat.Message) (parts []json.RawMessage, items []object) {
	for _, p := range partsOf(m.Content) {
		switch {
		case p.isText():
			typ := "input_text"
			if m.Role == chat.RoleAssistant {
				typ = "output_text"
			}
			if p.object == nil {
				p.object = object{"text": rawjson.Quote(p.Text)}
			}
			parts = append(parts, retyped(p.object, typ, nil))
		case slices.Contains([]string{"refusal", "input_file", "input_audio", "input_image", "computer_screenshot"}, p.Type):
			parts = append(parts, p.Raw)
		case p.Type == "image_url":
			url, rest := p.url()
			changes := object{"image_url": rawjson.Quote(url)}
			changes.Set("detail", rest.Take("detail"))
			if len(rest) > 0 {
				e.lose("image detail")
			}
			parts = append(parts, retyped(p.object, "input_image", changes))
		case p.Type == "reasoning" && rawjson.Kind(p.object["summary"]) == '[' && m.Role == chat.RoleAssistant:
			if len(parts) > 0 {
				e.lose("order")
			}
			items = append(items, p.object)
		case p.IsReasoning():
			e.lose("reasoning")
		case slices.Contains(notInResponses, p.Type) || m.Role != chat.RoleAssistant || p.object == nil || !isItem(p.Type):
			e.lose("part " + p.Type)
		default:
			if len(parts) > 0 {
				e.lose("order")
			}
			items = append(items, p.object)
		}
	}
	return parts, items
}

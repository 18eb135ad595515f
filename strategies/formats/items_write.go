package formats

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// encodeItems writes messages as items, each through emit.
func (e *encoder) encodeItems(ms []chat.Message, holds []string, emit func(object, *chat.Message) error) error {
	types := map[string]string{}
	last := -1                        // rank of the last item, where it was the assistant's
	said, open := 0, map[string]int{} // the last message that is no result; calls by id
	for i := range ms {
		m := &ms[i]
		if m.Role != chat.RoleTool {
			said = i
		} else if at, ok := open[m.ToolCallID]; ok {
			if at != said {
				e.lose("order")
			}
			delete(open, m.ToolCallID)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = i
		}
		all := e.items(m, types, holds)
		for k, item := range all {
			rank := -1
			if m.Role == chat.RoleAssistant {
				rank = rankOf(item.string("type"))
			}
			if k == 0 && last >= 0 && rank >= 0 && joinsRank(last, rank) {
				e.lose("joined")
			}
			last = rank
			if err := emit(item, m); err != nil {
				return err
			}
		}
	}
	return nil
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
func (e *encoder) items(m *chat.Message, types map[string]string, holds []string) []object {
	own := object(m.Extra).own("responses")
	holds = append(slices.Clone(holds), "responses")
	if m.Role == chat.RoleTool {
		return []object{e.outputItem(m, own, types, holds)}
	}
	parts, items := e.itemParts(m)
	// A message that was nothing but what is lost goes with it.
	gone := m.Role == chat.RoleAssistant && len(parts)+len(items)+len(m.ToolCalls)+len(own) == 0 &&
		(len(m.Content.Parts) > 0 || m.Reasoning != "")
	hasMessage := len(parts) > 0 || len(own) > 0 || len(items)+len(m.ToolCalls) == 0 || m.Role != chat.RoleAssistant
	if hasMessage {
		item := own
		item["type"], item["role"] = rawjson.Quote("message"), rawjson.Quote(string(m.Role))
		item["content"] = list(parts)
		if m.Content.Parts == nil && m.Role != chat.RoleAssistant {
			item["content"] = rawjson.Quote(m.Content.Text)
		}
		if strings.HasPrefix(m.ID, "msg_") {
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
		items = append(items, e.callItem(c))
		types[c.ID] = outputOf(c)
	}
	return items
}

func (e *encoder) callItem(c chat.ToolCall) object {
	own, more := callExtra(c, "responses")
	if more {
		e.lose("call extra")
	}
	item := own
	if item == nil {
		item = object{}
	}
	item["call_id"] = rawjson.Quote(c.ID)
	switch typ := own.string("type"); {
	case c.Type == "custom":
		item["type"], item["name"], item["input"] = rawjson.Quote("custom_tool_call"), rawjson.Quote(c.Name), rawjson.Quote(c.Arguments)
	case outputs[typ] != "" && typ != "function_call" && typ != "custom_tool_call":
		action, ok := arguments(c.Arguments)
		if !ok {
			e.lose("arguments")
		}
		item["action"] = action
	default:
		item["type"], item["name"], item["arguments"] = rawjson.Quote("function_call"), rawjson.Quote(c.Name), rawjson.Quote(c.Arguments)
	}
	return item
}

func (e *encoder) outputItem(m *chat.Message, item object, types map[string]string, holds []string) object {
	if strings.HasPrefix(m.ID, "fc") || strings.HasPrefix(m.ID, "ctc") {
		item["id"] = rawjson.Quote(m.ID)
		holds = append(holds, "id")
	}
	e.envelope(m, holds...)
	if !strings.HasSuffix(item.string("type"), "_call_output") {
		item["type"] = rawjson.Quote(outputs["function_call"])
		if typ := types[m.ToolCallID]; typ != "" {
			item["type"] = rawjson.Quote(typ)
		}
	}
	item["call_id"] = rawjson.Quote(m.ToolCallID)
	if m.Content.Parts == nil {
		item["output"] = rawjson.Quote(m.Content.Text)
		return item
	}
	parts, items := e.itemParts(m)
	for _, i := range items {
		e.lose("part " + i.string("type"))
	}
	item["output"] = list(parts)
	return item
}

// foreign are parts of other formats that Responses has nothing for.
var notInResponses = []string{"image", "document", "search_result", "file", "audio", "video_url", "video"}

// itemParts splits a content into the parts of its message and what is an item of
// its own, which stands before it.
func (e *encoder) itemParts(m *chat.Message) (parts []json.RawMessage, items []object) {
	for _, p := range partsOf(m.Content) {
		switch {
		case p.isText():
			typ := "input_text"
			if m.Role == chat.RoleAssistant {
				typ = "output_text"
			}
			if p.object == nil {
				p.object = object{"text": rawjson.Quote(p.text)}
			}
			parts = append(parts, p.retyped(typ, nil))
		case p.typ == "refusal" || p.typ == "input_file" || p.typ == "input_audio" || p.typ == "input_image" || p.typ == "computer_screenshot":
			parts = append(parts, p.raw)
		case p.typ == "image_url":
			url, rest := p.url()
			changes := object{"image_url": rawjson.Quote(url)}
			if detail := rest.take("detail"); detail != nil {
				changes["detail"] = detail
			}
			if len(rest) > 0 {
				e.lose("image detail")
			}
			parts = append(parts, p.retyped("input_image", changes))
		case p.typ == "reasoning" && p.object != nil && m.Role == chat.RoleAssistant:
			if len(parts) > 0 {
				e.lose("order")
			}
			items = append(items, p.object)
		case p.isReasoning():
			e.lose("reasoning")
		case slices.Contains(notInResponses, p.typ) || m.Role != chat.RoleAssistant || p.object == nil || p.typ == "":
			e.lose("part " + p.typ)
		default:
			if len(parts) > 0 {
				e.lose("order")
			}
			items = append(items, p.object)
		}
	}
	return parts, items
}

package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// items makes messages of Responses items. The reasoning, the message and the
// calls that follow each other in this order are one assistant message, so that
// parallel calls stand together; a result goes behind the message of its call.
type items struct {
	groups []itemGroup
	open   map[string]int    // calls without a result: id to the index of the group
	types  map[string]string // of outputs that are not function_call_output, by call id
}

// itemGroup is a message, and the results of its calls.
type itemGroup struct {
	chat.Message
	results []chat.Message
	rank    int
	values  int // items in Message
}

// The order of items in one assistant message.
const (
	rankReasoning = iota
	rankMessage
	rankCall
)

// outputs are the types of call, each with that of its output.
var outputs = map[string]string{
	"function_call":    "function_call_output",
	"custom_tool_call": "custom_tool_call_output",
	"local_shell_call": "local_shell_call_output",
	"computer_call":    "computer_call_output",
	"shell_call":       "shell_call_output",
	"apply_patch_call": "apply_patch_call_output",
}

// add takes an item and reports whether it began a message.
func (d *items) add(o object, raw json.RawMessage, at time.Time) (began bool, err error) {
	typ := o.takeString("type")
	switch {
	case typ == "message" || typ == "" && o["role"] != nil:
		return d.message(o, at)
	case outputs[typ] != "" && kind(o["call_id"]) == '"':
		return d.call(typ, o, at), nil
	case strings.HasSuffix(typ, "_call_output") && kind(o["call_id"]) == '"':
		return true, d.output(typ, o, at)
	case typ == "":
		return false, errors.New("type: missing; want message, function_call, reasoning or another item")
	}
	c, err := contentOf([]json.RawMessage{raw})
	if err != nil {
		return false, err
	}
	g, began := d.assistant(rankReasoning, at)
	g.Content = appendParts(c, g.Content)
	return began, nil
}

// assistant is the group that an item of that rank belongs to.
func (d *items) assistant(rank int, at time.Time) (g *itemGroup, began bool) {
	if n := len(d.groups); n > 0 {
		g := &d.groups[n-1]
		if g.Role == chat.RoleAssistant && len(g.results) == 0 && joinsRank(g.rank, rank) {
			g.rank = rank
			g.values++
			return g, false
		}
	}
	d.groups = append(d.groups, itemGroup{
		Message: chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, CreatedAt: at}, rank: rank, values: 1,
	})
	return &d.groups[len(d.groups)-1], true
}

// joinsRank reports whether an item of one rank goes into a message that ends in
// another.
func joinsRank(last, next int) bool {
	return next > last || next == last && next != rankMessage
}

func (d *items) message(o object, at time.Time) (bool, error) {
	role := chat.Role(o.takeString("role"))
	if role == "" {
		return false, errors.New("role: want a string: user, assistant, system or developer")
	}
	c, err := readContent(o.take("content"), fromItemPart)
	if err != nil {
		return false, err
	}
	id := o.takeString("id")
	if role != chat.RoleAssistant {
		m := chat.Message{ID: id, Role: role, Content: c, CreatedAt: at}
		mergeExtra(&m, "responses", o)
		d.groups = append(d.groups, itemGroup{Message: m, values: 1})
		return true, nil
	}
	g, began := d.assistant(rankMessage, at)
	g.ID = id
	g.Content = appendParts(c, g.Content)
	mergeExtra(&g.Message, "responses", o)
	return began, nil
}

// appendParts is the content of first and then c; first is reasoning and the like.
func appendParts(c, first chat.Content) chat.Content {
	if len(first.Parts) == 0 {
		return c
	}
	return chat.Content{Parts: append(first.Parts, asParts(c)...)}
}

func (d *items) call(typ string, o object, at time.Time) bool {
	g, began := d.assistant(rankCall, at)
	id := o.takeString("call_id")
	var c chat.ToolCall
	switch typ {
	case "function_call":
		c = call(id, "function", o.takeString("name"), takeInput(o, "arguments"), "responses", o)
	case "custom_tool_call":
		c = call(id, "custom", o.takeString("name"), takeInput(o, "input"), "responses", o)
	default: // a tool that has no name: its type is the name, its action the input
		action := string(o.take("action"))
		o["type"] = quote(typ)
		c = call(id, "function", strings.TrimSuffix(typ, "_call"), action, "responses", o)
	}
	g.ToolCalls = append(g.ToolCalls, c)
	if d.open == nil {
		d.open, d.types = map[string]int{}, map[string]string{}
	}
	d.open[id] = len(d.groups) - 1
	d.types[id] = outputOf(c)
	return began
}

// takeInput removes what a call is given: a string, or the value itself.
func takeInput(o object, key string) string {
	if raw := o.take(key); kind(raw) != '"' {
		return string(raw)
	} else {
		return text(raw)
	}
}

// outputOf is the type of a call's output.
func outputOf(c chat.ToolCall) string {
	own, _ := callExtra(c, "responses")
	if c.Type == "custom" {
		return outputs["custom_tool_call"]
	}
	if typ := outputs[own.string("type")]; typ != "" {
		return typ
	}
	return outputs["function_call"]
}

func (d *items) output(typ string, o object, at time.Time) error {
	m := chat.Message{Role: chat.RoleTool, ToolCallID: o.takeString("call_id"), ID: o.takeString("id"), CreatedAt: at}
	raw := o.take("output")
	var err error
	switch {
	case kind(raw) == '{':
		body, perr := parseObject(raw)
		if perr != nil {
			return fmt.Errorf("output: %w", perr)
		}
		if kind(body["type"]) == '"' {
			m.Content, err = contentOf([]json.RawMessage{fromItemPart(body, raw)})
		} else {
			m.Content = chat.TextContent(string(raw))
		}
	default:
		m.Content, err = readContent(raw, fromItemPart)
	}
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	want := d.types[m.ToolCallID]
	if want == "" {
		want = outputs["function_call"]
	}
	if typ != want {
		o["type"] = quote(typ)
	}
	mergeExtra(&m, "responses", o)
	if i, ok := d.open[m.ToolCallID]; ok {
		d.groups[i].results = append(d.groups[i].results, m)
		delete(d.open, m.ToolCallID)
		return nil
	}
	d.groups = append(d.groups, itemGroup{Message: m, values: 1})
	return nil
}

// messages are all messages in order.
func (d *items) messages() []chat.Message {
	var out []chat.Message
	for _, g := range d.groups {
		out = append(append(out, g.Message), g.results...)
	}
	return out
}

// fromItemPart turns texts and images into those of chat-completions.
func fromItemPart(o object, raw json.RawMessage) json.RawMessage {
	switch o.string("type") {
	case "input_text", "output_text":
		changes := object{}
		for _, key := range []string{"annotations", "logprobs"} {
			if o[key] != nil && blank(o[key]) {
				changes[key] = nil
			}
		}
		return o.retyped("text", changes)
	case "input_image":
		if kind(o["image_url"]) != '"' {
			return raw
		}
		var b builder
		b.raw("url", o["image_url"])
		if detail := o["detail"]; kind(detail) == '"' {
			b.raw("detail", detail)
			o = without(o, "detail")
		}
		return o.retyped("image_url", object{"image_url": b.done()})
	}
	return raw
}

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

// items are the items of one message.
func (e *encoder) items(m *chat.Message, types map[string]string, holds []string) []object {
	own := object(m.Extra).object("responses")
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
		if item == nil {
			item = object{}
		}
		item["type"], item["role"] = quote("message"), quote(string(m.Role))
		item["content"] = list(parts)
		if m.Content.Parts == nil && m.Role != chat.RoleAssistant {
			item["content"] = quote(m.Content.Text)
		}
		if strings.HasPrefix(m.ID, "msg_") {
			item["id"] = quote(m.ID)
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
	item["call_id"] = quote(c.ID)
	switch typ := own.string("type"); {
	case c.Type == "custom":
		item["type"], item["name"], item["input"] = quote("custom_tool_call"), quote(c.Name), quote(c.Arguments)
	case outputs[typ] != "" && typ != "function_call" && typ != "custom_tool_call":
		action, ok := arguments(c.Arguments)
		if !ok {
			e.lose("arguments")
		}
		item["action"] = action
	default:
		item["type"], item["name"], item["arguments"] = quote("function_call"), quote(c.Name), quote(c.Arguments)
	}
	return item
}

func (e *encoder) outputItem(m *chat.Message, own object, types map[string]string, holds []string) object {
	item := own
	if item == nil {
		item = object{}
	}
	if strings.HasPrefix(m.ID, "fc") || strings.HasPrefix(m.ID, "ctc") {
		item["id"] = quote(m.ID)
		holds = append(holds, "id")
	}
	e.envelope(m, holds...)
	if !strings.HasSuffix(item.string("type"), "_call_output") {
		item["type"] = quote(outputs["function_call"])
		if typ := types[m.ToolCallID]; typ != "" {
			item["type"] = quote(typ)
		}
	}
	item["call_id"] = quote(m.ToolCallID)
	if m.Content.Parts == nil {
		item["output"] = quote(m.Content.Text)
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
var foreign = []string{"image", "document", "search_result", "file", "audio", "video_url", "video"}

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
				p.object = object{"text": quote(p.text)}
			}
			parts = append(parts, p.retyped(typ, nil))
		case p.typ == "refusal" || p.typ == "input_file" || p.typ == "input_audio" || p.typ == "input_image" || p.typ == "computer_screenshot":
			parts = append(parts, p.raw)
		case p.typ == "image_url":
			url, rest := p.url()
			changes := object{"image_url": quote(url)}
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
		case slices.Contains(foreign, p.typ) || m.Role != chat.RoleAssistant || p.object == nil:
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

package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
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
	case outputs[typ] != "" && rawjson.Kind(o["call_id"]) == '"':
		return d.call(typ, o, at), nil
	case strings.HasSuffix(typ, "_call_output") && rawjson.Kind(o["call_id"]) == '"':
		return true, d.output(typ, o, at)
	case typ == "":
		return false, errors.New("type: missing; want message, function_call, reasoning or another item")
	}
	o["type"] = rawjson.Quote(typ) // it may also be a part that stands alone
	c, err := contentOf([]json.RawMessage{fromItemPart(o, raw)})
	if err != nil {
		return false, err
	}
	g, began := d.assistant(rankReasoning, at)
	g.Content = appendParts(c, g.Content)
	return began, nil
}

// assistant returns the group that an item of that rank belongs to.
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

// appendParts returns the content of first and then c; first is reasoning and the like.
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
		o["type"] = rawjson.Quote(typ)
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
	raw := o.take(key)
	if rawjson.Kind(raw) != '"' {
		return string(raw)
	}
	return rawjson.Text(raw)
}

// outputOf returns the type of a call's output.
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
	case rawjson.Kind(raw) == '{':
		body, perr := parseObject(raw)
		if perr != nil {
			return fmt.Errorf("output: %w", perr)
		}
		if rawjson.Kind(body["type"]) == '"' {
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
		o["type"] = rawjson.Quote(typ)
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

// messages returns all messages in order.
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
		if rawjson.Kind(o["image_url"]) != '"' {
			return raw
		}
		var detail json.RawMessage
		if rawjson.Kind(o["detail"]) == '"' {
			detail = o.take("detail")
		}
		return o.retyped("image_url", object{"image_url": build("url", o["image_url"], "detail", detail).done()})
	}
	return raw
}

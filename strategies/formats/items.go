package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// responsesDocuments are requests with their input, and responses with their output; the
// entries are items.
var responsesDocuments = documentFormat{
	entries: func() entries { return &items{} },
	lists: func(o object) []string {
		if o["input"] != nil || o["output"] != nil && o["call_id"] == nil {
			return []string{"input", "output"}
		}
		return nil
	},
	system:   "instructions",
	optional: true,
}

// items turns Responses items into messages. Reasoning, a message and calls that follow each
// other in this order are one assistant message, so that parallel calls are one message; a
// result is placed after the message of its call.
type items struct {
	at     time.Time // of the next item
	line   int       // of the next item
	row    int       // index of the next item
	parted bool      // the next item begins a message
	groups []itemGroup
	open   map[string]int    // calls without a result: id to the index of the group
	types  map[string]string // types of outputs by call id
}

// itemGroup is a message, and the results of its calls.
type itemGroup struct {
	chat.Message
	results []chat.Message
	rank    int
	line    int // of the first
	// values are the lines in Message, and resultLines those in results.
	values, resultLines int
	rows, resultRows    []int       // indexes of the items in each
	repeated            *codexEvent // that it repeats
}

// The order of items in one assistant message.
const (
	rankReasoning = iota
	rankMessage
	rankCall
)

// outputs maps the types of calls to those of their outputs.
var outputs = map[string]string{
	"function_call":    "function_call_output",
	"custom_tool_call": "custom_tool_call_output",
	"local_shell_call": "local_shell_call_output",
	"computer_call":    "computer_call_output",
	"shell_call":       "shell_call_output",
	"apply_patch_call": "apply_patch_call_output",
}

// isItem reports whether items of that type are read. Others may be messages of other programs,
// so they are no part of an answer.
func isItem(typ string) bool {
	switch typ {
	case "message", "reasoning", "compaction", "item_reference", "tool_search_output", "program", "program_output", "additional_tools":
		return true
	}
	return strings.HasSuffix(typ, "_call") || strings.HasSuffix(typ, "_call_output") || strings.HasPrefix(typ, "mcp_")
}

// itemType returns the type of an item. One with a role needs none.
func itemType(o object) string {
	if typ := o.String("type"); typ != "" || o["role"] == nil {
		return typ
	}
	return "message"
}

// add reads an item and reports whether it began a message.
func (d *items) add(o object, raw json.RawMessage) (began bool, err error) {
	typ := itemType(o)
	o.TakeString("type")
	switch {
	case typ == "message":
		return d.message(o)
	case outputs[typ] != "" && rawjson.Kind(o["call_id"]) == '"':
		return d.call(typ, o), nil
	case strings.HasSuffix(typ, "_call_output") && rawjson.Kind(o["call_id"]) == '"':
		return true, d.output(typ, o)
	case typ == "":
		return false, errors.New("type: missing; want message, function_call, reasoning or another item")
	case typ == "reasoning" && rawjson.Kind(o["summary"]) != '[':
		return false, errors.New("reasoning: summary: want a list")
	case typ == "function_call" || typ == "custom_tool_call" || typ == "function_call_output" || typ == "custom_tool_call_output":
		return false, fmt.Errorf("%s: call_id: want a string", typ)
	case !isItem(typ):
		return false, fmt.Errorf("type: want message, function_call, reasoning or another item, got %.40q", typ)
	}
	o["type"] = rawjson.Quote(typ) // it may also be a part that stands alone
	c, err := contentOf([]json.RawMessage{fromItemPart(o, raw)})
	if err != nil {
		return false, err
	}
	g, began := d.assistant(rankReasoning)
	g.Content = appendParts(c, g.Content)
	return began, nil
}

// assistant returns the group that an item of that rank belongs to.
func (d *items) assistant(rank int) (g *itemGroup, began bool) {
	if n := len(d.groups); n > 0 && !d.parted {
		g := &d.groups[n-1]
		if g.Role == chat.RoleAssistant && len(g.results) == 0 && joinsRank(g.rank, rank) {
			g.rank = rank
			g.values++
			g.rows = append(g.rows, d.row)
			return g, false
		}
	}
	g = d.begin(chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, CreatedAt: d.at})
	g.rank = rank
	return g, true
}

// begin adds a group for a message.
func (d *items) begin(m chat.Message) *itemGroup {
	d.parted = false
	d.groups = append(d.groups, itemGroup{Message: m, values: 1, line: d.line, rows: []int{d.row}})
	return &d.groups[len(d.groups)-1]
}

// joinsRank reports whether an item of one rank goes into a message that ends in
// another.
func joinsRank(last, next int) bool {
	return next > last || next == last && next != rankMessage
}

func (d *items) message(o object) (bool, error) {
	role := chat.Role(o.TakeString("role"))
	if role == "" {
		return false, errors.New("role: want a string: user, assistant, system or developer")
	}
	if k := rawjson.Kind(o["content"]); k != '"' && k != '[' {
		return false, fmt.Errorf("content: want a string or a list, got %s", rawjson.KindName(o["content"]))
	}
	c, err := readContent(o.Take("content"), fromItemPart)
	if err != nil {
		return false, err
	}
	id := o.TakeString("id")
	if role != chat.RoleAssistant {
		m := chat.Message{ID: id, Role: role, Content: c, CreatedAt: d.at}
		mergeExtra(&m, "responses", o)
		d.begin(m)
		return true, nil
	}
	g, began := d.assistant(rankMessage)
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

func (d *items) call(typ string, o object) bool {
	g, began := d.assistant(rankCall)
	id := o.TakeString("call_id")
	var c chat.ToolCall
	switch typ {
	case "function_call":
		c = newCall(id, "function", o.TakeString("name"), takeInput(o, "arguments"), "responses", o)
	case "custom_tool_call":
		c = newCall(id, "custom", o.TakeString("name"), takeInput(o, "input"), "responses", o)
	default: // a tool without a name: its type is the name, its action the input
		action := string(o.Take("action"))
		o["type"] = rawjson.Quote(typ)
		c = newCall(id, "function", strings.TrimSuffix(typ, "_call"), action, "responses", o)
	}
	g.ToolCalls = append(g.ToolCalls, c)
	if d.open == nil {
		d.open, d.types = map[string]int{}, map[string]string{}
	}
	d.open[id] = len(d.groups) - 1
	d.types[id] = outputOf(c)
	return began
}

// outputOf returns the type of a call's output.
func outputOf(c chat.ToolCall) string {
	own, _ := callExtra(c, "responses")
	if c.Type == "custom" {
		return outputs["custom_tool_call"]
	}
	return cmp.Or(outputs[own.String("type")], outputs["function_call"])
}

func (d *items) output(typ string, o object) error {
	m := chat.Message{Role: chat.RoleTool, ToolCallID: o.TakeString("call_id"), ID: o.TakeString("id"), CreatedAt: d.at}
	raw := o.Take("output")
	if rawjson.Kind(raw) == '{' { // one part, or a result that is JSON
		if body, err := rawjson.ParseObject(raw); err == nil && rawjson.Kind(body["type"]) == '"' {
			raw = rawjson.List([]json.RawMessage{raw})
		} else {
			raw = rawjson.Quote(string(raw))
		}
	}
	var err error
	if m.Content, err = readContent(raw, fromItemPart); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if typ != cmp.Or(d.types[m.ToolCallID], outputs["function_call"]) {
		o["type"] = rawjson.Quote(typ)
	}
	mergeExtra(&m, "responses", o)
	if i, ok := d.open[m.ToolCallID]; ok {
		d.groups[i].results = append(d.groups[i].results, m)
		d.groups[i].resultLines++
		d.groups[i].resultRows = append(d.groups[i].resultRows, d.row)
		delete(d.open, m.ToolCallID)
		return nil
	}
	d.begin(m)
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

// fromItemPart converts texts and images.
func fromItemPart(o object, raw json.RawMessage) json.RawMessage {
	switch o.String("type") {
	case "input_text", "output_text":
		changes := object{}
		for _, key := range []string{"annotations", "logprobs"} {
			if o[key] != nil && blank(o[key]) {
				changes[key] = nil
			}
		}
		return retyped(o, "text", changes)
	case "input_image":
		if rawjson.Kind(o["image_url"]) != '"' {
			return raw
		}
		var detail json.RawMessage
		if rawjson.Kind(o["detail"]) == '"' {
			detail = o.Take("detail")
		}
		return retyped(o, "image_url", object{"image_url": rawjson.Build("url", o["image_url"], "detail", detail).JSON()})
	}
	return raw
}

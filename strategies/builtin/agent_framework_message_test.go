package builtin

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// afCalls are the types of content that make a message a tool call.
var afCalls = []string{
	"function_call", "mcp_server_tool_call", "code_interpreter_tool_call", "shell_tool_call", "image_generation_tool_call",
}

// readNote reads a message of a vector: as this package does, and as the list of
// contents that the reference makes of it.
func readNote(i int, raw json.RawMessage) (*afNote, error) {
	n := &afNote{input: i, contents: []any{}}
	read, err := readPy(string(raw))
	if err != nil {
		return nil, err
	}
	object := read.(pyObject)
	n.id = object.text("id")
	m := &chat.Message{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, err
	}
	if contents, ok := object.get("contents").([]any); ok {
		m.Content = chat.Content{Parts: []chat.Part{}}
		for _, c := range contents {
			c := c.(pyObject)
			m.Content.Parts = append(m.Content.Parts, afPart(c))
			n.contents = append(n.contents, afContent(c.text("type"), c))
		}
	} else {
		n.contents = afContents(object, m)
	}
	n.entry = plan.Entry{Included: true, Message: m, Meta: chat.Meta{
		Seq: chat.Seq(i + 1), Position: chat.Seq(i + 1), Kind: chat.KindSource, Role: m.Role,
	}}
	for _, c := range n.contents {
		switch kind := c.(pyObject).text("type"); {
		case kind == "text_reasoning":
			n.entry.Flags |= chat.HasReasoning
		case slices.Contains(afCalls, kind):
			n.entry.Calls++
		default: // anything makes it more than reasoning, an empty text too
			n.entry.Flags |= chat.HasText
		}
	}
	if props, ok := object.get("additional_properties").(pyObject); ok {
		n.restore(props)
	}
	return n, nil
}

// plain returns the message as this package reads it elsewhere: with the calls and results of
// functions where chat-completions has them.
func (n *afNote) plain() chat.Message {
	m := *n.entry.Message
	if m.Content.Parts == nil {
		return m
	}
	m.Content.Parts = slices.Clone(m.Content.Parts)
	for i, c := range n.contents {
		c := c.(pyObject)
		switch {
		case c.text("type") == "function_call" && m.Role == chat.RoleAssistant:
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: c.text("call_id"), Name: c.text("name"), Arguments: c.text("arguments")})
		case c.text("type") == "function_result" && m.Role == chat.RoleTool:
			m.ToolCallID = c.text("call_id")
			m.Content.Parts[i] = chat.Part{Type: "text", Text: fmt.Sprint(c.get("result"))}
		}
	}
	return m
}

// afContents returns the contents of a message that is not given as such.
func afContents(object pyObject, m *chat.Message) []any {
	out := []any{}
	if r, ok := object.get("reasoning").(string); ok {
		out = append(out, afContent("text_reasoning", pyObject{{"text", r}}))
	}
	switch {
	case m.Role == chat.RoleTool:
		out = append(out, afContent("function_result", pyObject{{"call_id", m.ToolCallID}, {"result", m.Content.String()}}))
	case m.Content.Parts != nil:
		for _, p := range m.Content.Parts {
			out = append(out, afContent("text", pyObject{{"text", p.Text}}))
		}
	case !m.Content.Null:
		out = append(out, afContent("text", pyObject{{"text", m.Content.Text}}))
	}
	for _, c := range m.ToolCalls {
		out = append(out, afContent("function_call", pyObject{{"arguments", c.Arguments}, {"call_id", c.ID}, {"name", c.Name}}))
	}
	return out
}

// afContent returns a content as the reference serializes it: what is null is left out,
// additional_properties are always there.
func afContent(kind string, fields pyObject) pyObject {
	out := pyObject{{"type", kind}}
	if fields.get("additional_properties") == nil {
		out = append(out, pyPair{"additional_properties", pyObject{}})
	}
	for _, p := range fields {
		switch p.key {
		case "type", "items", "raw_representation":
		case "informational_only":
			if kind == "function_call" && p.value == true {
				out = append(out, p)
			}
		default:
			if p.value != nil {
				out = append(out, p)
			}
		}
	}
	return out
}

// afPart returns a content as a part of a message. What a hosted tool answered is
// printed as Python prints it where it is neither a text nor a list.
func afPart(c pyObject) chat.Part {
	p := chat.Part{Type: c.text("type")}
	if p.Type == "text" {
		p.Text = c.text("text")
	}
	if p.Type == "mcp_server_tool_result" {
		output := c.get("output")
		switch v := output.(type) {
		case string, []any:
		case pyObject:
			output = pyJSON.write(v)
		default:
			output = pyRepr.write(v)
		}
		c = pyObject{{"call_id", c.get("call_id")}, {"output", output}}
	}
	p.Raw = json.RawMessage(pyJSON.write(c))
	return p
}

// restore reads what the reference has stored with a message. One wrong field
// makes a group none; counts and links are kept even so.
func (n *afNote) restore(props pyObject) {
	n.entry.Included = !truthy(props.get("_excluded"))
	n.reason = props.text("_exclude_reason")
	raw, ok := props.get("_group").(pyObject)
	if !ok {
		return
	}
	n.by = raw.text("_summarized_by_summary_id")
	tokens, counted := pyInt(raw.get("token_count"))
	if counted {
		n.tokens = &tokens
	}
	id, isText := raw.get("id").(string)
	index, isInt := pyInt(raw.get("index"))
	reasoning, isBool := raw.get("has_reasoning").(bool)
	kind := chat.GroupKind(raw.text("kind"))
	known := []chat.GroupKind{chat.GroupSystem, chat.GroupUser, chat.GroupAssistantText, chat.GroupToolCall}
	if isText && isInt && isBool && slices.Contains(known, kind) && (counted || raw.get("token_count") == nil) {
		n.group = &afGroup{id, kind, int(index), reasoning}
	}
}

// pyInt reads what Python takes for an int: integers, and booleans too.
func pyInt(v any) (int64, bool) {
	switch v := v.(type) {
	case json.Number:
		i, err := v.Int64()
		return i, err == nil
	case bool:
		return map[bool]int64{true: 1}[v], true
	}
	return 0, false
}

// truthy reports whether Python takes v for true.
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case json.Number:
		f, _ := v.Float64()
		return f != 0
	case []any:
		return len(v) > 0
	case pyObject:
		return len(v) > 0
	}
	return true
}

package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// shareDocuments are {"conversations": [{"from", "value"}]}; the entries are turns. Calls
// are <tool_call> blocks in the text of the model, or a turn from function_call; results are
// <tool_response> blocks, or the turn. The format has no ids of calls: a call without one
// gets that of the result at its place, or call_1, call_2 and so on.
var shareDocuments = documentFormat{
	entries: func() entries { return &shareEntries{} },
	lists: func(o object) []string {
		for _, key := range []string{"conversations", "conversation"} {
			if o[key] != nil {
				return []string{key}
			}
		}
		return nil
	},
	system: "system",
}

type shareEntries struct{ all []chat.Message }

func (d *shareEntries) messages() []chat.Message {
	assignIDs(d.all)
	return d.all
}

var shareRoles = map[string]chat.Role{
	"system": chat.RoleSystem, "human": chat.RoleUser, "user": chat.RoleUser, "gpt": chat.RoleAssistant,
	"assistant": chat.RoleAssistant, "chatgpt": chat.RoleAssistant, "model": chat.RoleAssistant,
	"function_call": chat.RoleAssistant, "tool": chat.RoleTool, "observation": chat.RoleTool, "function": chat.RoleTool,
}

// add reads one turn; one of a tool can hold several results.
func (d *shareEntries) add(o object, _ json.RawMessage) (bool, error) {
	from := o.TakeString("from")
	if from == "" {
		return false, errors.New("from: missing; want system, human, gpt or tool")
	}
	raw := o.Take("value")
	if k := rawjson.Kind(raw); k != '"' {
		return false, fmt.Errorf("value: want a string, got %s", rawjson.KindName(raw))
	}
	value := rawjson.Text(raw)
	role, known := shareRoles[from]
	if !known {
		role = chat.Role(from)
	}
	m := chat.Message{Role: role, Content: chat.TextContent(value)}
	ms := []chat.Message{m}
	switch {
	case from == "function_call":
		if c, ok := shareCall([]byte(value)); ok {
			ms[0].Content, ms[0].ToolCalls = chat.Content{Null: true}, []chat.ToolCall{c}
		}
	case role == chat.RoleAssistant:
		ms[0] = shareCalls(m)
	case role == chat.RoleTool:
		ms = shareResults(value)
	}
	mergeExtra(&ms[0], "sharegpt", o)
	d.all = append(d.all, ms...)
	return true, nil
}

// shareCalls takes the calls from the end of the model's text.
func shareCalls(m chat.Message) chat.Message {
	at := strings.Index(m.Content.Text, "<tool_call>")
	if at < 0 {
		return m
	}
	var calls []chat.ToolCall
	rest := m.Content.Text[at:]
	for rest != "" {
		body, after, ok := block(rest, "tool_call")
		if !ok {
			return m
		}
		c, ok := shareCall(body)
		if !ok {
			return m
		}
		calls = append(calls, c)
		rest = after
	}
	m.ToolCalls = calls
	m.Content = chat.TextContent(strings.TrimSuffix(m.Content.Text[:at], "\n"))
	return m
}

// block reads <tag> JSON </tag> and the white space after it at the start of s.
func block(s, tag string) (body []byte, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "<"+tag+">")
	if !ok {
		return nil, "", false
	}
	d := json.NewDecoder(strings.NewReader(s))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return nil, "", false
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(s[d.InputOffset():], " \t\r\n"), "</"+tag+">")
	return raw, strings.TrimLeft(rest, " \t\r\n"), ok
}

func shareCall(body []byte) (chat.ToolCall, bool) {
	clean, _ := chat.SanitizeJSON(body)
	o, err := rawjson.ParseObject(clean)
	if err != nil || rawjson.Kind(o["name"]) != '"' {
		return chat.ToolCall{}, false
	}
	id, name := o.TakeString("id"), o.TakeString("name")
	return newCall(id, "function", name, takeInput(o, "arguments"), "sharegpt", o), true
}

func shareResults(value string) []chat.Message {
	plain := []chat.Message{{Role: chat.RoleTool, Content: chat.TextContent(value)}}
	var out []chat.Message
	for rest := strings.TrimLeft(value, " \t\r\n"); rest != ""; {
		body, after, ok := block(rest, "tool_response")
		if !ok {
			body, after, ok = textBlock(rest)
		}
		if !ok {
			return plain
		}
		out = append(out, shareResult(body))
		rest = after
	}
	if out == nil {
		return plain
	}
	return out
}

// textBlock is block for a result that is not JSON.
func textBlock(s string) (body []byte, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, "<tool_response>")
	if !ok {
		return nil, "", false
	}
	text, rest, ok := strings.Cut(s, "</tool_response>")
	text = strings.TrimSuffix(strings.TrimPrefix(text, "\n"), "\n")
	return []byte(text), strings.TrimLeft(rest, " \t\r\n"), ok
}

func shareResult(body []byte) chat.Message {
	m := chat.Message{Role: chat.RoleTool}
	clean, _ := chat.SanitizeJSON(body)
	o, err := rawjson.ParseObject(clean)
	if err != nil || o["content"] == nil || len(o.Without("tool_call_id", "name", "content")) > 0 {
		m.Content = chat.TextContent(string(body))
		return m
	}
	m.ToolCallID, m.Name = o.TakeString("tool_call_id"), o.TakeString("name")
	m.Content = chat.TextContent(takeInput(o, "content"))
	return m
}

// assignIDs assigns ids to the calls and results without one.
func assignIDs(ms []chat.Message) {
	n := 0
	for i := range ms {
		calls, results := ms[i].ToolCalls, ms[i+1:]
		if len(calls) == 0 {
			continue
		}
		if end := slices.IndexFunc(results, func(m chat.Message) bool { return m.Role != chat.RoleTool }); end >= 0 {
			results = results[:end]
		}
		for k := range calls {
			n++
			if calls[k].ID == "" {
				calls[k].ID = "call_" + strconv.Itoa(n)
				if k < len(results) && results[k].ToolCallID != "" {
					calls[k].ID = results[k].ToolCallID
				}
				calls[k] = withID(calls[k])
			}
			if k < len(results) && results[k].ToolCallID == "" {
				results[k].ToolCallID = calls[k].ID
			}
		}
	}
}

// withID writes the id of a call into its raw form.
func withID(c chat.ToolCall) chat.ToolCall {
	if own, _ := callExtra(c, "sharegpt"); c.Raw != nil {
		return newCall(c.ID, c.Type, c.Name, c.Arguments, "sharegpt", own)
	}
	return c
}

package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// shareGPT reads {"conversations": [{"from", "value"}]}, and lists of such turns.
// Calls stand in the text of the model as <tool_call> blocks, or in a turn from
// function_call; results in <tool_response> blocks, or are the turn. The format has
// no ids of calls: one that has none gets that of the result in its place, or
// call_1, call_2 and so on.
type shareGPT struct {
	lines Session
	ids   callIDs
}

func newShareGPT() decoder { return &shareGPT{} }

var shareRoles = map[string]chat.Role{
	"system": chat.RoleSystem, "human": chat.RoleUser, "user": chat.RoleUser, "gpt": chat.RoleAssistant,
	"assistant": chat.RoleAssistant, "chatgpt": chat.RoleAssistant, "model": chat.RoleAssistant,
	"function_call": chat.RoleAssistant, "tool": chat.RoleTool, "observation": chat.RoleTool, "function": chat.RoleTool,
}

func (d *shareGPT) add(value []byte) (*Session, error) {
	if rawjson.Kind(value) == '[' {
		ms, err := shareTurns(value)
		return documentOf(chat.Session{Messages: ms}), err
	}
	o, err := parseObject(value)
	if err != nil {
		return nil, err
	}
	key := "conversations"
	if o[key] == nil && o["conversation"] != nil {
		key = "conversation"
	}
	if o[key] == nil {
		return nil, d.turn(o)
	}
	var s chat.Session
	if rawjson.Kind(o["system"]) == '"' {
		s.Messages = append(s.Messages, chat.Message{Role: chat.RoleSystem, Content: chat.TextContent(o.takeString("system"))})
	}
	ms, err := shareTurns(o.take(key))
	if err != nil {
		return nil, err
	}
	s.Messages = append(s.Messages, ms...)
	o.session(&s)
	return documentOf(s), nil
}

// turn takes a line that is a turn by itself.
func (d *shareGPT) turn(o object) error {
	ms, err := shareTurn(o)
	if err != nil {
		return err
	}
	s := &d.lines
	s.Report.Values++
	s.Report.Messages++
	for _, m := range ms {
		s.Messages = d.ids.add(s.Messages, m)
	}
	return nil
}

func (d *shareGPT) end() []Session {
	d.ids.finish(d.lines.Messages)
	return d.lines.ended()
}

func shareTurns(raw json.RawMessage) (out []chat.Message, err error) {
	var ids callIDs
	err = objects(raw, "conversations", func(o object, _ json.RawMessage) error {
		ms, err := shareTurn(o)
		for _, m := range ms {
			out = ids.add(out, m)
		}
		return err
	})
	ids.finish(out)
	return out, err
}

// shareTurn reads one turn; one of a tool can hold several results.
func shareTurn(o object) ([]chat.Message, error) {
	from := o.takeString("from")
	if from == "" {
		return nil, errors.New("from: missing; want system, human, gpt or tool")
	}
	raw := o.take("value")
	if k := rawjson.Kind(raw); k != '"' && k != 0 {
		return nil, fmt.Errorf("value: want a string, got %s", rawjson.KindName(raw))
	}
	var value string
	if raw != nil {
		value = rawjson.Text(raw)
	}
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
	return ms, nil
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

// block reads <tag> JSON </tag> at the start of s, and the white space behind.
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
	o, err := parseObject(clean)
	if err != nil || rawjson.Kind(o["name"]) != '"' {
		return chat.ToolCall{}, false
	}
	id, name := o.takeString("id"), o.takeString("name")
	return call(id, "function", name, takeInput(o, "arguments"), "sharegpt", o), true
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

// textBlock returns a result that is no JSON.
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
	o, err := parseObject(clean)
	if err != nil || o["content"] == nil || len(without(o, "tool_call_id", "name", "content")) > 0 {
		m.Content = chat.TextContent(string(body))
		return m
	}
	m.ToolCallID, m.Name = o.takeString("tool_call_id"), o.takeString("name")
	m.Content = chat.TextContent(takeInput(o, "content"))
	return m
}

// callIDs gives ids to calls and results that have none.
type callIDs struct {
	n     int // calls so far
	at    int // the message with the last calls
	first int // how many calls there were before it
}

func (c *callIDs) add(out []chat.Message, m chat.Message) []chat.Message {
	if m.Role != chat.RoleTool {
		c.finish(out)
		if len(m.ToolCalls) > 0 {
			c.at, c.first = len(out), c.n
			c.n += len(m.ToolCalls)
		} else {
			c.at = len(out)
		}
	}
	return append(out, m)
}

// finish sees to the last message with calls and the results behind it.
func (c *callIDs) finish(out []chat.Message) {
	if c.at >= len(out) {
		return
	}
	calls, results := out[c.at].ToolCalls, out[c.at+1:]
	if out[c.at].Role == chat.RoleTool {
		return
	}
	for i := range calls {
		if calls[i].ID != "" {
			continue
		}
		calls[i].ID = "call_" + strconv.Itoa(c.first+i+1)
		if i < len(results) && results[i].ToolCallID != "" {
			calls[i].ID = results[i].ToolCallID
		}
		calls[i] = withID(calls[i])
	}
	for i := range min(len(calls), len(results)) {
		if results[i].ToolCallID == "" {
			results[i].ToolCallID = calls[i].ID
		}
	}
	c.at = len(out)
}

// withID writes the id of a call into its raw form.
func withID(c chat.ToolCall) chat.ToolCall {
	if own, _ := callExtra(c, "sharegpt"); c.Raw != nil {
		return call(c.ID, c.Type, c.Name, c.Arguments, "sharegpt", own)
	}
	return c
}

package formats

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// turn collects the parts of a record. A record of the model can be several answers, each with the
// results of its calls.
type turn struct {
	*tableReader
	role   chat.Role
	name   string
	steps  []answer
	within bool         // the parts are those of a result
	result chat.Message // of a record that is one result
}

// answer is a message of the model with the results of its calls, or the parts of another message.
type answer struct {
	reasoning []string
	parts     []json.RawMessage
	calls     []chat.ToolCall
	results   []chat.Message
}

// step returns the answer that the next part belongs to.
func (u *turn) step() *answer {
	if len(u.steps) == 0 {
		u.steps = append(u.steps, answer{})
	}
	return &u.steps[len(u.steps)-1]
}

// begin begins an answer, unless nothing is in the last one.
func (u *turn) begin() {
	if s := u.step(); len(s.reasoning)+len(s.parts)+len(s.calls)+len(s.results) > 0 {
		u.steps = append(u.steps, answer{})
	}
}

// source reads a text, a part or a list of these.
func (u *turn) source(s source, f *fields) error {
	rules := s.parts
	if rules == nil {
		rules = u.parts
	}
	switch {
	case s.at == "=":
		return u.call(f, ruleOf(f, rules))
	case s.text == isResult:
		u.step().parts = append(u.step().parts, contentParts(u.output(f.first(s.at)))...)
		return nil
	}
	return u.list(f.take(s.at), s.text, rules, strings.Fields(s.at)[0])
}

func (u *turn) list(raw json.RawMessage, text form, rules []rule, name string) error {
	all := []json.RawMessage{raw}
	switch rawjson.Kind(raw) {
	case 0:
		return nil
	case '"', '{':
	case '[':
		var err error
		if all, err = rawjson.InnerArray(raw); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	default:
		return fmt.Errorf("%s: want a string or a list, got %s", name, rawjson.KindName(raw))
	}
	for i, raw := range all {
		switch rawjson.Kind(raw) {
		case '"':
			u.add(text, rawjson.Text(raw), "")
			continue
		case 'n':
			continue
		}
		o, err := rawjson.InnerObject(raw)
		if err == nil {
			err = u.part(&fields{object: o, raw: raw}, rules, name)
		}
		if err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
	}
	return nil
}

// add adds a text or a reasoning.
func (u *turn) add(is form, text, signature string) {
	if text == "" && signature == "" {
		return
	}
	s := u.step()
	if u.role == chat.RoleAssistant && len(s.results) > 0 {
		u.begin() // it was said after the results
		s = u.step()
	}
	switch {
	case is == isText:
		s.parts = append(s.parts, textPart(text))
	case is == isMedia:
		s.parts = append(s.parts, imageURL(nil, text))
	case is == isRedacted:
		s.parts = append(s.parts, rawjson.Build("type", "redacted_thinking", "data", text).JSON())
	case signature != "":
		s.parts = append(s.parts, rawjson.Build("type", "thinking", "thinking", text, "signature", signature).JSON())
	default:
		s.reasoning = append(s.reasoning, text)
	}
}

// part reads one part, by the first rule that it meets.
func (u *turn) part(f *fields, rules []rule, name string) error {
	p := ruleOf(f, rules)
	if p == nil {
		u.drop(name + " " + partName(f))
		return nil
	}
	switch p.is {
	case isNothing:
		return nil
	case isStep, isGroup:
		if p.is == isStep {
			u.begin()
		}
		for _, s := range p.from {
			if err := u.source(s, f); err != nil {
				return err
			}
		}
	case isList:
		if err := u.list(f.take(p.text), isText, rules, name); err != nil {
			return err
		}
	case isCall:
		if err := u.call(f, p); err != nil {
			return err
		}
	case isResult:
		if u.within {
			u.step().parts = append(u.step().parts, contentParts(u.output(f.first(p.output)))...)
			f.ignore(p.id + " " + p.name)
			break
		}
		u.step().results = append(u.step().results, u.resultOf(f, p, f.text(p.id)))
	case isMedia:
		raw := mediaPart(f.text(p.url), f.text(p.data), f.text(p.mime), f.text(p.file))
		if raw == nil {
			u.drop(name + " " + partName(f))
			break
		}
		u.step().parts = append(u.step().parts, raw)
	case isText, isReasoning, isRedacted:
		u.add(p.is, f.text(p.text), f.text(p.signature))
	}
	f.ignore("type " + p.ignore)
	f.rest(name+".", u.drop)
	return nil
}

// partName returns the name of a part for the report: its type, or its only key.
func partName(f *fields) string {
	for _, key := range []string{"type", "content_type"} {
		if rawjson.Kind(f.object[key]) == '"' {
			return f.String(key)
		}
	}
	for key := range f.object {
		if len(f.object) == 1 {
			return key
		}
	}
	return "of an unknown kind"
}

// contentParts returns a content as parts of JSON.
func contentParts(c chat.Content) (out []json.RawMessage) {
	for _, p := range asParts(c) {
		out = append(out, p.Raw)
	}
	return out
}

// ruleOf returns the first rule that a part meets, nil for none.
func ruleOf(f *fields, rules []rule) *rule {
	for i := range rules {
		if f.holds(rules[i].when) {
			return &rules[i]
		}
	}
	return nil
}

// call reads a call, possibly with its result.
func (u *turn) call(f *fields, p *rule) error {
	if u.role != chat.RoleAssistant {
		return fmt.Errorf("a call in a message of the %s", u.role)
	}
	done := f.holds(p.done)
	c := chat.ToolCall{ID: f.text(p.id), Type: "function", Name: f.text(p.name)}
	if c.Name == "" {
		return fmt.Errorf("a call without %s", p.name)
	}
	switch raw := f.take(p.args); {
	case blank(raw):
		c.Arguments = "{}"
	case rawjson.Kind(raw) == '"':
		c.Arguments = rawjson.Text(raw)
	default:
		c.Arguments = string(raw)
	}
	s := u.step()
	s.calls = append(s.calls, c)
	if done {
		s.results = append(s.results, u.resultOf(f, p, c.ID))
	}
	return nil
}

// resultOf reads a result.
func (u *turn) resultOf(f *fields, p *rule, id string) chat.Message {
	m := chat.Message{Role: chat.RoleTool, ToolCallID: id}
	if p.failed != "" && f.holds(p.failed) {
		setFlag(&m, "is_error")
	}
	if p.is == isResult {
		m.Name = f.text(p.name)
	}
	m.Content = u.output(f.first(p.output))
	return m
}

// output returns the content of a result: a text, a list of parts, or another value as JSON.
func (u *turn) output(raw json.RawMessage) chat.Content {
	switch rawjson.Kind(raw) {
	case 0:
		return chat.TextContent("")
	case '"':
		return chat.TextContent(rawjson.Text(raw))
	case '{', '[':
		if inner := u.unwrapped(raw); inner != nil {
			return u.output(inner)
		}
		if !u.holdsParts(raw) {
			break
		}
		in := turn{tableReader: u.tableReader, role: chat.RoleTool, within: true}
		if err := in.list(raw, isText, u.parts, "output"); err == nil {
			c, _ := contentOf(in.step().parts) // made here
			return c
		}
	}
	return chat.TextContent(string(raw))
}

// unwrapped returns the one value of an object that stands for it, nil for none.
func (u *turn) unwrapped(raw json.RawMessage) json.RawMessage {
	o, err := rawjson.InnerObject(raw)
	if err != nil {
		return nil
	}
	f := &fields{object: o, raw: raw}
	inner := f.take(u.unwrap)
	f.ignore(u.beside)
	f.rest("", func(string) { inner = nil })
	return inner
}

// holdsParts reports whether a result is a part, or a list of parts and texts.
func (u *turn) holdsParts(raw json.RawMessage) bool {
	all := []json.RawMessage{raw}
	if rawjson.Kind(raw) == '[' {
		all, _ = rawjson.InnerArray(raw)
	}
	return len(all) > 0 && !slices.ContainsFunc(all, func(one json.RawMessage) bool {
		o, err := rawjson.InnerObject(one)
		if err != nil {
			return rawjson.Kind(one) != '"'
		}
		p := ruleOf(&fields{object: o, raw: one}, u.parts)
		return p == nil || !slices.Contains([]form{isText, isMedia, isNothing, isResult}, p.is)
	})
}

// mediaPart returns the part for an image or a file, nil for a file that is only named.
func mediaPart(url, data, mime, file string) json.RawMessage {
	if mime != "" && !strings.Contains(mime, "/") { // the end of a file's name
		mime = cmp.Or(map[string]string{"pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown", "csv": "text/csv", "html": "text/html"}[mime], "image/"+mime)
	}
	if data != "" && !strings.HasPrefix(data, "data:") {
		url = "data:" + mime + ";base64," + data
	} else if data != "" {
		url = data
	}
	inline, _, isData := dataURL(url)
	if mime == "" {
		mime = inline
	}
	switch {
	case url == "":
		return nil
	case mime == "" || strings.HasPrefix(mime, "image/"):
		return imageURL(nil, url)
	case isData:
		return rawjson.Build("type", "file", "file", rawjson.Build("filename", quoteIf(file), "file_data", url).JSON()).JSON()
	}
	return nil
}

// messages returns the messages of the parts; none for a record without any.
func (u *turn) messages() (out []chat.Message) {
	for _, s := range u.steps {
		m := chat.Message{Role: u.role, Name: u.name, ToolCalls: s.calls, Content: chat.Content{Null: true}}
		if u.role == chat.RoleTool {
			m = u.result
			m.Name = u.name
		}
		if len(s.reasoning) > 0 {
			m.Reasoning, m.ReasoningKey = strings.Join(s.reasoning, "\n\n"), "reasoning_content"
		}
		if len(s.parts) > 0 {
			m.Content, _ = contentOf(s.parts) // made here
		}
		has := len(s.parts)+len(s.calls)+len(s.reasoning) > 0
		switch {
		case u.role == chat.RoleAssistant && has:
			out = append(append(out, m), s.results...)
		case has:
			out = append(append(out, s.results...), m) // results come first, as the APIs require
		default:
			out = append(out, s.results...)
		}
	}
	if u.role == chat.RoleTool && len(out) == 0 {
		m := u.result
		m.Name, m.Content = u.name, chat.TextContent("")
		out = append(out, m)
	}
	return out
}

package formats

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// pi reads a session file of pi: a header and entries. Where entries have ids they
// are a tree, of which the branch of the last entry is the session. Compactions,
// summaries of branches and what extensions said are user messages.
type pi struct {
	s       chat.Session
	entries []piEntry
	byID    map[string]int
	header  bool
	title   json.RawMessage
	report  ReadReport
}

// piEntry is a line: a message, or what kind of other entry it is.
type piEntry struct {
	id, parent string
	linked     bool // it names its parent, if only to say that it has none
	kind       string
	message    *chat.Message
	model      string
}

func newPi() decoder { return &pi{byID: map[string]int{}} }

func (d *pi) add(value []byte) (*Session, error) {
	o, err := parseObject(value)
	if err != nil {
		return nil, err
	}
	typ := o.takeString("type")
	if typ == "" {
		return nil, errors.New("type: missing; want session, message or another kind of entry")
	}
	if typ == "session" && !d.header {
		d.header = true
		d.report.Values++
		d.report.other(typ)
		d.s.ID, d.s.Model = o.takeString("id"), o.takeString("modelId")
		setExtra(&d.s.Extra, "pi", o.raw())
		return nil, nil
	}
	_, linked := o["parentId"]
	e := piEntry{id: o.takeString("id"), parent: o.takeString("parentId"), linked: linked, kind: typ}
	at := o.takeTime("timestamp")
	switch typ {
	case "message":
		body := o.object("message")
		if body == nil {
			return nil, errors.New("message: want an object")
		}
		delete(o, "message")
		if e.message, err = d.message(body); err != nil {
			return nil, err
		}
		if e.message == nil {
			e.kind = "message:excluded"
		}
	case "compaction", "branch_summary":
		if summary := o.string("summary"); summary != "" {
			delete(o, "summary")
			e.message = &chat.Message{Role: chat.RoleUser, Content: chat.TextContent(summary)}
			setExtra(&e.message.Extra, "is_compact_summary", isTrue)
			d.report.drop(o, "details")
			if typ != "compaction" {
				o["type"] = rawjson.Quote(typ)
			}
		}
	case "custom_message":
		e.message = &chat.Message{Role: chat.RoleUser}
		if e.message.Content, err = readContent(o.take("content"), fromPiPart); err != nil {
			return nil, err
		}
		setExtra(&e.message.Extra, "is_meta", isTrue)
		d.report.drop(o, "details")
	case "model_change":
		e.model = o.string("modelId")
	case "session_info":
		if rawjson.Kind(o["name"]) == '"' {
			d.title = o["name"]
		}
	}
	if m := e.message; m != nil {
		m.ID, m.CreatedAt = e.id, at
		mergeExtra(m, "pi", o)
	}
	d.report.Values++
	if e.id != "" {
		d.byID[e.id] = len(d.entries)
	}
	d.entries = append(d.entries, e)
	return nil, nil
}

// message reads what stands under "message"; nil is one the model never saw.
func (d *pi) message(o object) (*chat.Message, error) {
	var m chat.Message
	var err error
	switch role := o.takeString("role"); role {
	case "":
		return nil, errors.New("message: role: missing; want user, assistant or toolResult")
	case "assistant":
		err = d.assistant(&m, o)
	case "toolResult", "tool":
		m.Role = chat.RoleTool
		m.ToolCallID, m.Name = o.takeString("toolCallId"), o.takeString("toolName")
		m.Content, err = readContent(o.take("content"), fromPiPart)
		if o.takeTrue("isError") {
			setExtra(&m.Extra, "is_error", isTrue)
		}
		d.report.drop(o, "details")
	case "bashExecution":
		if o.takeTrue("excludeFromContext") {
			return nil, nil
		}
		m.Role = chat.RoleUser
		m.Content = chat.TextContent(fmt.Sprintf("Ran `%s`\n```\n%s\n```", o.takeString("command"), o.takeString("output")))
	case "compactionSummary", "branchSummary":
		m.Role, m.Content = chat.RoleUser, chat.TextContent(o.takeString("summary"))
		setExtra(&m.Extra, "is_compact_summary", isTrue)
		o["role"] = rawjson.Quote(role)
	default:
		m.Role = chat.Role(role)
		if role == "custom" || role == "hookMessage" {
			m.Role = chat.RoleUser
			setExtra(&m.Extra, "is_meta", isTrue)
			o["role"] = rawjson.Quote(role)
			d.report.drop(o, "details")
		}
		m.Content, err = readContent(o.take("content"), fromPiPart)
	}
	if err != nil {
		return nil, err
	}
	if len(o) > 0 {
		mergeExtra(&m, "pi", object{"message": o.raw()})
	}
	return &m, nil
}

func (d *pi) assistant(m *chat.Message, o object) error {
	m.Role = chat.RoleAssistant
	raw := o.take("content")
	if model := o.string("model"); model != "" && model == d.s.Model {
		delete(o, "model")
	}
	if rawjson.Kind(raw) != '[' {
		var err error
		m.Content, err = readContent(raw, fromPiPart)
		return err
	}
	var parts []json.RawMessage
	err := objects(raw, "content", func(b object, raw json.RawMessage) error {
		if b.string("type") != "toolCall" {
			parts = append(parts, fromPiPart(b, raw))
			return nil
		}
		delete(b, "type")
		delete(b, "partialJson") // what the arguments were made of
		m.ToolCalls = append(m.ToolCalls, call(b.takeString("id"), "function", b.takeString("name"), takeInput(b, "arguments"), "pi", b))
		return nil
	})
	if err == nil {
		m.Content, err = contentOf(parts)
	}
	return err
}

// fromPiPart turns thinking into Anthropic's and images into image_url.
func fromPiPart(o object, raw json.RawMessage) json.RawMessage {
	switch typ := o.string("type"); {
	case typ == "thinking" && o["thinkingSignature"] != nil && o["signature"] == nil:
		return o.retyped(typ, object{"signature": o["thinkingSignature"], "thinkingSignature": nil})
	case typ == "image" && o.string("mimeType") != "" && rawjson.Kind(o["data"]) == '"':
		return imageURL(o, "data:"+o.string("mimeType")+";base64,"+o.string("data"), "mimeType", "data")
	}
	return raw
}

func (d *pi) end() []Session {
	if d.report.Values == 0 {
		return nil
	}
	on := d.branch()
	for i, e := range d.entries {
		switch {
		case on != nil && !on[i]:
			d.report.other("abandoned")
		case e.message == nil:
			d.report.other(e.kind)
			if e.model != "" {
				d.s.Model = e.model
			}
		default:
			d.report.Messages++
			d.s.Messages = append(d.s.Messages, *e.message)
		}
	}
	setExtra(&d.s.Extra, "title", d.title)
	return []Session{{Session: d.s, Report: d.report}}
}

// branch says which entries lead to the last one; nil is all of them, where
// entries have no ids or parents, or a parent is missing.
func (d *pi) branch() map[int]bool {
	if len(d.byID) == 0 {
		return nil
	}
	on := map[int]bool{}
	at := len(d.entries) - 1
	for {
		if on[at] || d.entries[at].id == "" || !d.entries[at].linked {
			return nil
		}
		on[at] = true
		parent := d.entries[at].parent
		if parent == "" {
			return on
		}
		next, ok := d.byID[parent]
		if !ok || next >= at {
			return nil
		}
		at = next
	}
}

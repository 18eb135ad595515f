package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// pi reads a session file of pi: a header and entries. Entries with ids are a tree; the branch
// of the last entry is the session. Compactions, summaries of branches and messages of
// extensions are user messages.
type pi struct {
	s       chat.Session
	entries []piEntry
	byID    map[string]int
	header  bool
	title   json.RawMessage
	report  ReadReport
}

// piEntry is a line: a message, or another kind of entry.
type piEntry struct {
	id, parent string
	linked     bool // it has the key parentId, possibly null
	kind       string
	message    *chat.Message
	model      string
	line       int
}

func newPi() decoder { return &pi{byID: map[string]int{}} }

func (d *pi) add(value []byte, line int) (*Session, error) {
	o, err := rawjson.ParseObject(value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRecord, err)
	}
	typ := o.TakeString("type")
	if typ == "" {
		return nil, fmt.Errorf("%w: type: missing; want session, message or another kind of entry", errNoRecord)
	}
	d.report.line = line
	if typ == "session" && !d.header {
		d.header = true
		d.report.Values++
		d.report.other(typ)
		d.s.ID, d.s.Model = o.TakeString("id"), o.TakeString("modelId")
		setExtra(&d.s.Extra, "pi", o.JSON())
		return nil, nil
	}
	_, linked := o["parentId"]
	e := piEntry{id: o.TakeString("id"), parent: o.TakeString("parentId"), linked: linked, kind: typ, line: line}
	at := takeTime(o, "timestamp")
	switch typ {
	case "message":
		body := o.Object("message")
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
		if summary := o.String("summary"); summary != "" {
			delete(o, "summary")
			e.message = &chat.Message{Role: chat.RoleUser, Content: chat.TextContent(summary)}
			setFlag(e.message, "is_compact_summary")
			d.report.drop(o, "details")
			if typ != "compaction" {
				o["type"] = rawjson.Quote(typ)
			}
		}
	case "custom_message":
		e.message = &chat.Message{Role: chat.RoleUser}
		if e.message.Content, err = readContent(o.Take("content"), fromPiPart); err != nil {
			return nil, err
		}
		setFlag(e.message, "is_meta")
		d.report.drop(o, "details")
	case "model_change":
		e.model = o.String("modelId")
	case "session", "label", "custom", "thinking_level_change":
	case "session_info":
		if rawjson.Kind(o["name"]) == '"' {
			d.title = o["name"]
		}
	default:
		if shapeOf(value) != "" {
			return nil, fmt.Errorf("type: want session, message or another kind of entry, got %.40q", typ)
		}
	}
	if m := e.message; m != nil {
		m.ID, m.CreatedAt = e.id, at
		mergeExtra(m, "pi", o)
	}
	d.report.Values++
	if i, known := d.byID[e.id]; known && e.message != nil && reflect.DeepEqual(d.entries[i].message, e.message) {
		d.report.other("duplicate")
		return nil, nil
	}
	if e.id != "" {
		d.byID[e.id] = len(d.entries)
	}
	d.entries = append(d.entries, e)
	return nil, nil
}

// message reads the object at "message"; nil is one excluded from the context.
func (d *pi) message(o object) (*chat.Message, error) {
	var m chat.Message
	var err error
	switch role := o.TakeString("role"); role {
	case "":
		return nil, errors.New("message: role: missing; want user, assistant or toolResult")
	case "assistant":
		err = d.assistant(&m, o)
	case "toolResult", "tool":
		m.Role = chat.RoleTool
		m.ToolCallID, m.Name = o.TakeString("toolCallId"), o.TakeString("toolName")
		m.Content, err = readContent(o.Take("content"), fromPiPart)
		takeFlag(o, "isError", &m, "is_error")
		d.report.drop(o, "details")
	case "bashExecution":
		if o.TakeTrue("excludeFromContext") {
			return nil, nil
		}
		m.Role = chat.RoleUser
		m.Content = chat.TextContent(fmt.Sprintf("Ran `%s`\n```\n%s\n```", o.TakeString("command"), o.TakeString("output")))
	case "compactionSummary", "branchSummary":
		m.Role, m.Content = chat.RoleUser, chat.TextContent(o.TakeString("summary"))
		setFlag(&m, "is_compact_summary")
		o["role"] = rawjson.Quote(role)
	default:
		if m.Role = chat.Role(role); o["content"] == nil {
			return nil, errors.New("message: content: missing; want a string or a list")
		}
		if role == "custom" || role == "hookMessage" {
			m.Role = chat.RoleUser
			setFlag(&m, "is_meta")
			o["role"] = rawjson.Quote(role)
			d.report.drop(o, "details")
		}
		m.Content, err = readContent(o.Take("content"), fromPiPart)
	}
	if err != nil {
		return nil, err
	}
	if len(o) > 0 {
		mergeExtra(&m, "pi", object{"message": o.JSON()})
	}
	return &m, m.Validate()
}

func (d *pi) assistant(m *chat.Message, o object) error {
	m.Role = chat.RoleAssistant
	raw := o.Take("content")
	if raw == nil {
		return errors.New("message: content: missing; want a string or a list")
	}
	if model := o.String("model"); model != "" && model == d.s.Model {
		delete(o, "model")
	}
	var err error
	m.Content, err = readContent(raw, func(b object, raw json.RawMessage) json.RawMessage {
		if b.String("type") != "toolCall" {
			return fromPiPart(b, raw)
		}
		delete(b, "type")
		delete(b, "partialJson") // the arguments before they were complete
		m.ToolCalls = append(m.ToolCalls,
			newCall(b.TakeString("id"), "function", b.TakeString("name"), takeInput(b, "arguments"), "pi", b))
		return nil
	})
	return err
}

// fromPiPart converts thinking into Anthropic's form and images into image_url.
func fromPiPart(o object, raw json.RawMessage) json.RawMessage {
	switch typ := o.String("type"); {
	case typ == "thinking" && o["thinkingSignature"] != nil && o["signature"] == nil:
		return retyped(o, typ, object{"signature": o["thinkingSignature"], "thinkingSignature": nil})
	case typ == "image" && o.String("mimeType") != "" && rawjson.Kind(o["data"]) == '"':
		return imageURL(o, "data:"+o.String("mimeType")+";base64,"+o.String("data"), "mimeType", "data")
	}
	return raw
}

func (d *pi) end() []Session {
	on := d.branch()
	for i, e := range d.entries {
		switch {
		case on != nil && !on[i]:
			d.report.others("abandoned", 1, e.line)
		case e.message == nil:
			d.report.others(e.kind, 1, e.line)
			if e.model != "" {
				d.s.Model = e.model
			}
		default:
			d.report.Messages++
			d.s.Messages = append(d.s.Messages, *e.message)
		}
	}
	setExtra(&d.s.Extra, "title", d.title)
	return gathered(d.s, d.report)
}

// branch returns the indexes of the entries that lead to the last one. It returns nil, for
// all entries, if they have no ids or parents or if a parent is missing.
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

package formats

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// responses reads OpenAI Responses: a request with its input, a response with its
// output, a list of items; items on lines are one session.
type responses struct {
	items  items
	report ReadReport
}

func newResponses() decoder { return &responses{} }

func (d *responses) add(value []byte) (*Session, error) {
	if rawjson.Kind(value) == '[' {
		var in items
		if err := in.list(value); err != nil {
			return nil, err
		}
		return documentOf(chat.Session{Messages: in.messages()}), nil
	}
	o, err := parseObject(value)
	if err != nil {
		return nil, err
	}
	if o["input"] != nil || o["output"] != nil && o["call_id"] == nil {
		return responsesDocument(o)
	}
	began, err := d.items.add(o, value, time.Time{})
	if err != nil {
		return nil, err
	}
	d.report.Values++
	if began {
		d.report.Messages++
	} else {
		d.report.other("joined")
	}
	return nil, nil
}

func documentOf(s chat.Session) *Session {
	return &Session{Session: s, Report: ReadReport{Values: 1, Messages: 1}}
}

func (d *responses) end() []Session {
	s := Session{Session: chat.Session{Messages: d.items.messages()}, Report: d.report}
	return s.ended()
}

func responsesDocument(o object) (*Session, error) {
	var s chat.Session
	if rawjson.Kind(o["instructions"]) == '"' {
		s.Messages = append(s.Messages, chat.Message{Role: chat.RoleSystem, Content: chat.TextContent(o.takeString("instructions"))})
	}
	var in items
	for _, key := range []string{"input", "output"} {
		raw := o.take(key)
		switch rawjson.Kind(raw) {
		case 0:
		case '"':
			m := chat.Message{Role: chat.RoleUser, Content: chat.TextContent(rawjson.Text(raw))}
			in.groups = append(in.groups, itemGroup{Message: m})
		default:
			if err := in.list(raw); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	s.Messages = append(s.Messages, in.messages()...)
	o.session(&s)
	return documentOf(s), nil
}

// list takes the items of a list.
func (d *items) list(raw json.RawMessage) error {
	return objects(raw, "", func(o object, raw json.RawMessage) error {
		_, err := d.add(o, raw, time.Time{})
		return err
	})
}

// encodeResponses writes {"instructions", "input": items}.
func encodeResponses(e *encoder, s chat.Session) error {
	doc := document(s)
	ms := s.Messages
	if len(ms) > 0 && isInstructions(ms[0]) {
		e.envelope(&ms[0])
		doc.raw("instructions", rawjson.Quote(ms[0].Content.String()))
		ms = ms[1:]
	}
	var all []json.RawMessage
	err := e.encodeItems(ms, nil, func(item object, _ *chat.Message) error {
		all = append(all, item.raw())
		return nil
	})
	doc.raw("input", list(all))
	e.documentExtra(doc, s, "input", "output", "instructions")
	if err != nil {
		return err
	}
	return e.line(doc.done())
}

// isInstructions reports whether a message can be the instructions of a request:
// a system message of one text.
func isInstructions(m chat.Message) bool {
	parts := m.Content.Parts
	return m.Role == chat.RoleSystem && (parts == nil || len(parts) == 1 && isPlain(parts[0]))
}

package formats

import (
	"encoding/json"
	"fmt"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// documentFormat describes a format whose values are sessions: an object with a list of
// entries, or the list alone. Entries on lines of their own are one session.
type documentFormat struct {
	entries func() entries
	// lists returns the keys of the lists of a document, or nil for an object that is an
	// entry.
	lists func(object) []string
	// system is the key of the system prompt. It is a string, or any content if
	// systemPart converts its parts.
	system     string
	systemPart convertPart
	// optional: lists may be missing, and a string is one message of the user.
	optional bool
}

// entries turns entries into messages.
type entries interface {
	// add reads the next entry and reports whether it began a message.
	add(o object, raw json.RawMessage) (began bool, err error)
	// messages returns the messages of all entries.
	messages() []chat.Message
}

// documents is the decoder of a documentFormat.
type documents struct {
	documentFormat
	lines  entries
	report ReadReport
}

func (f documentFormat) decoder() decoder { return &documents{documentFormat: f, lines: f.entries()} }

func (d *documents) add(value []byte, line int) (*Session, error) {
	d.report.line = line
	if rawjson.Kind(value) == '[' {
		in := d.entries()
		err := readEntries(in, value, "")
		return documentOf(chat.Session{Messages: in.messages()}), err
	}
	o, err := rawjson.ParseObject(value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRecord, err)
	}
	if lists := d.lists(o); lists != nil {
		return d.document(o, lists)
	}
	began, err := d.lines.add(o, value)
	if err != nil {
		return nil, err
	}
	d.report.entry(began)
	return nil, nil
}

func (d *documents) end() []Session {
	return gathered(chat.Session{Messages: d.lines.messages()}, d.report)
}

func (d *documents) document(o object, lists []string) (*Session, error) {
	var s chat.Session
	if d.systemPart != nil || rawjson.Kind(o[d.system]) == '"' {
		if raw := o.Take(d.system); raw != nil {
			c, err := readContent(raw, d.systemPart)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.system, err)
			}
			s.Messages = append(s.Messages, chat.Message{Role: chat.RoleSystem, Content: c})
		}
	}
	in := d.entries()
	for _, key := range lists {
		raw := o.Take(key)
		switch kind := rawjson.Kind(raw); {
		case d.optional && kind == 0:
			continue
		case d.optional && kind == '"' && key == lists[0]:
			raw = rawjson.List([]json.RawMessage{rawjson.Build("role", "user", "content", raw).JSON()})
		}
		if err := readEntries(in, raw, key); err != nil {
			return nil, err
		}
	}
	s.Messages = append(s.Messages, in.messages()...)
	for _, key := range []string{"session_id", "id"} {
		if s.ID == "" {
			s.ID = o.TakeString(key)
		}
		if s.ID == "" && rawjson.Kind(o[key]) == '0' {
			s.ID = string(o.Take(key))
		}
	}
	s.Model = o.TakeString("model")
	if len(o) > 0 {
		s.Extra = o
	}
	return documentOf(s), nil
}

func readEntries(in entries, raw json.RawMessage, name string) error {
	return objects(raw, name, func(o object, raw json.RawMessage) error {
		_, err := in.add(o, raw)
		return err
	})
}

func documentOf(s chat.Session) *Session {
	return &Session{Session: s, Report: ReadReport{Values: 1, Messages: 1}}
}

// buildDocument begins the document of a session.
func buildDocument(s chat.Session) *rawjson.Builder {
	return rawjson.Build("session_id", quoteIf(s.ID), "model", quoteIf(s.Model))
}

// document writes a document with the keys of the session that it does not have yet.
// taken are the keys that the reader gives a meaning.
func (e *encoder) document(doc *rawjson.Builder, s chat.Session, taken ...string) {
	taken = append(taken, "session_id", "model", "messages")
	if s.ID == "" {
		taken = append(taken, "id") // it would become the session's
	}
	for _, key := range taken {
		if _, ok := s.Extra[key]; ok {
			e.lose("session extra")
		}
	}
	e.line(doc.Rest(object(s.Extra).Without(taken...)).JSON())
}

package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Format is a kind of file.
type Format struct {
	// Name is what users call it.
	Name string
	// Doc is one line about it.
	Doc string
	// Log: a file is one session (and those of its sub-agents), a record a line.
	Log bool

	decoder func() decoder
	encode  func(*encoder, chat.Session) error
}

// Auto is the name that asks for detection by content.
const Auto = "auto"

// decoder makes sessions of the values of a file.
type decoder interface {
	// add takes the next value. It returns the session that the value is, or nil
	// where it is a part of one.
	add(value []byte) (*Session, error)
	// end returns the sessions gathered from all values.
	end() []Session
}

// All returns the formats, in the order of the help.
func All() []Format {
	return []Format{
		{Name: "chat", Doc: "chat-completions: sessions or messages, JSONL or one document", encode: encodeChat},
		{Name: "responses", Doc: "OpenAI Responses: requests, responses or lists of items", decoder: newResponses, encode: encodeResponses},
		{Name: "anthropic", Doc: "Anthropic messages: system, tool_use and tool_result blocks, thinking", decoder: newAnthropic, encode: encodeAnthropic},
		{Name: "sharegpt", Doc: "ShareGPT: conversations of from and value", decoder: newShareGPT, encode: encodeShareGPT},
		{Name: "claude-code", Doc: "Claude Code session file", Log: true, decoder: newClaudeCode, encode: encodeClaudeCode},
		{Name: "codex", Doc: "Codex rollout file", Log: true, decoder: newCodex, encode: encodeCodex},
		{Name: "pi", Doc: "pi session file", Log: true, decoder: newPi, encode: encodePi},
	}
}

// Names returns the names of all formats.
func Names() []string {
	var names []string
	for _, f := range All() {
		names = append(names, f.Name)
	}
	return names
}

// Lookup returns the format of that name.
func Lookup(name string) (Format, error) {
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
	}
	return Format{}, fmt.Errorf("format %q: want one of %s", name, strings.Join(Names(), ", "))
}

// ReadReport says what became of the values of a file, of which a log has one per
// line: Messages and the counts of Other add up to Values. It is empty for
// chat-completions, where every value is a message or a session.
type ReadReport struct {
	// Values is how many JSON values were read.
	Values int `json:"values"`
	// Messages is how many of them began a message. One value can hold several.
	Messages int `json:"messages"`
	// Other counts those that did not, by kind. "joined" are further parts of a
	// message, "sidechain" belongs to a sub-agent and is in its own session,
	// "abandoned" stands on a branch that the user has left.
	Other map[string]int `json:"other,omitempty"`
	// Dropped counts fields of messages that were left out, by name: they repeat
	// what the message says.
	Dropped map[string]int `json:"dropped,omitempty"`
}

// Session is one conversation as read.
type Session struct {
	chat.Session
	Report ReadReport
}

// maxKinds bounds the counts of a report: kinds are named by the file.
const maxKinds = 64

// count adds n to a kind of m, "other" where there are too many.
func count(m *map[string]int, kind string, n int) {
	if n == 0 {
		return
	}
	if *m == nil {
		*m = map[string]int{}
	}
	if _, known := (*m)[kind]; !known && len(*m) >= maxKinds || len(kind) > 60 || strings.ContainsFunc(kind, func(r rune) bool { return r < ' ' || r > '~' }) {
		kind = "other"
	}
	if (*m)[kind] += n; (*m)[kind] == 0 {
		delete(*m, kind)
	}
}

func (r *ReadReport) other(kind string) { count(&r.Other, kind, 1) }

// drop removes a key of o and counts it.
func (r *ReadReport) drop(o object, key string) {
	if o.take(key) != nil {
		count(&r.Dropped, key, 1)
	}
}

// ended returns the session that the values of a file make together, if there were any.
func (s *Session) ended() []Session {
	if s.Report.Values == 0 {
		return nil
	}
	return []Session{*s}
}

// Losses counts what a format could not hold, by kind.
type Losses map[string]int

// Options say how sessions are written.
type Options struct {
	// DropReasoning leaves all reasoning out; it is counted as lost.
	DropReasoning bool
}

// Write writes a session in the named format, with a line break behind each line,
// and returns what the format cannot hold of it: by reading it again where the writer
// itself knows of nothing, so that nothing is lost in silence ("other" where it
// has no name). It changes nothing of s. An error
// names an unknown format or is one of w.
func Write(w io.Writer, name string, s chat.Session, o Options) (Losses, error) {
	f, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := &encoder{w: &b, losses: Losses{}}
	if o.DropReasoning {
		var n int
		s.Messages, n = WithoutReasoning(s.Messages)
		e.loseN("reasoning", n)
	}
	if err := f.encode(e, s); err != nil {
		return nil, err
	}
	if len(e.losses) == 0 && !roundTrips(s, b.Bytes(), f.Name) {
		e.lose("other")
	}
	_, err = w.Write(b.Bytes())
	return e.losses, err
}

// encoder is what the writers of all formats share.
type encoder struct {
	w      io.Writer
	losses Losses
}

func (e *encoder) lose(kind string) { e.loseN(kind, 1) }

func (e *encoder) loseN(kind string, n int) { count((*map[string]int)(&e.losses), kind, n) }

// besides returns what of o is beside the keys that a writer has values of its own for.
// One of these is in o where what was read was no such value: it is lost.
func (e *encoder) excluding(o map[string]json.RawMessage, own ...string) map[string]json.RawMessage {
	for _, key := range own {
		if _, odd := o[key]; odd {
			e.lose("extra")
		}
	}
	return without(o, own...)
}

// put sets a key that a writer has a value of its own for (see besides).
func (e *encoder) put(o object, key string, value json.RawMessage) {
	if _, odd := o[key]; odd {
		e.lose("extra")
	}
	o[key] = value
}

func (e *encoder) line(value []byte) error {
	_, err := e.w.Write(append(value, '\n'))
	return err
}

func encodeChat(e *encoder, s chat.Session) error { return chat.WriteSession(e.w, s) }

// WithoutReasoning returns messages without reasoning, and without those that are
// nothing else, and how much there was: texts and blocks. It changes nothing of ms.
func WithoutReasoning(ms []chat.Message) (out []chat.Message, dropped int) {
	out = make([]chat.Message, 0, len(ms))
	for i := range ms {
		m := ms[i]
		n := dropReasoning(&m)
		dropped += n
		if n > 0 && len(m.ToolCalls) == 0 && len(m.Content.Parts) == 0 && m.Content.Text == "" {
			continue
		}
		out = append(out, m)
	}
	return out, dropped
}

// reasoningKeys are the keys of Extra that hold reasoning.
var reasoningKeys = []string{"reasoning", "reasoning_content", "reasoning_details"}

// dropReasoning takes all reasoning out of m, whose slices and maps stay as they
// are, and returns how much there was.
func dropReasoning(m *chat.Message) int {
	n := 0
	if m.Reasoning != "" {
		n++
	}
	m.Reasoning, m.ReasoningKey = "", ""
	for _, key := range reasoningKeys {
		if raw, ok := m.Extra[key]; ok {
			m.Extra = without(m.Extra, key)
			if !blank(raw) {
				n++
			}
		}
	}
	kept := slices.DeleteFunc(slices.Clone(m.Content.Parts), chat.Part.IsReasoning)
	if k := len(m.Content.Parts) - len(kept); k > 0 {
		n += k
		m.Content.Parts = kept
		if len(kept) == 0 {
			m.Content = chat.Content{Null: true}
		}
	}
	return n
}

package formats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Format is a kind of file.
type Format struct {
	Name string // as users write it
	Doc  string // one line
	// Log reports that a file is one session and those of its sub-agents, a record a line.
	Log bool

	// Both are nil for chat-completions, which package chat reads and writes; encode alone is nil for a
	// format that is only read.
	decoder func() decoder
	encode  func(*encoder, chat.Session)
	table   *table
}

// Written reports whether sessions can be written in the format, too.
func (f Format) Written() bool { return f.encode != nil || f.decoder == nil }

// Auto is the name that asks for detection by content.
const Auto = "auto"

// decoder builds sessions from the values of a file.
type decoder interface {
	// add reads the next value, which begins on that line. It returns the session that the
	// value is, or nil if the value is a part of one.
	add(value []byte, line int) (*Session, error)
	// end returns the sessions made of several values.
	end() []Session
}

// All returns the formats, in the order of the help.
func All() []Format {
	return []Format{
		{Name: "chat", Doc: "chat-completions: sessions or messages, JSONL or one document"},
		{
			Name: "responses", Doc: "OpenAI Responses: requests, responses or lists of items",
			decoder: responsesDocuments.decoder, encode: encodeResponses,
		},
		{
			Name: "anthropic", Doc: "Anthropic messages: system, tool_use and tool_result blocks, thinking",
			decoder: anthropicDocuments.decoder, encode: encodeAnthropic,
		},
		{Name: "sharegpt", Doc: "ShareGPT: conversations of from and value", decoder: shareDocuments.decoder, encode: encodeShareGPT},
		{Name: "claude-code", Doc: "Claude Code session file", Log: true, decoder: newClaudeCode, encode: encodeClaudeCode},
		{Name: "codex", Doc: "Codex rollout file", Log: true, decoder: newCodex, encode: encodeCodex},
		{Name: "pi", Doc: "pi session file", Log: true, decoder: newPi, encode: encodePi},
		readOnly("qwen-code", "Qwen Code session file", &qwenCode),
		readOnly("gemini-cli", "Gemini CLI session file", &geminiCLI),
		readOnly("gemini", "Gemini API requests and lists of contents", &gemini),
		readOnly("copilot-cli", "GitHub Copilot CLI events", &copilotCLI),
		readOnly("kimi", "Kimi Code wire file, Kimi CLI context file", &kimi),
		readOnly("grok", "Grok CLI chat history", &grok),
		readOnly("cline", "Cline and Roo Code API history", &cline),
		readOnly("goose", "Goose session", &goose),
		readOnly("opencode", "opencode export", &opencode),
		readOnly("openhands", "OpenHands events", &openHands),
		readOnly("langchain", "LangChain messages: dicts, flat, dumps", &langChain),
		readOnly("vercel", "Vercel AI SDK: UI and model messages", &vercel),
		readOnly("mastra", "Mastra messages, as its storage has them", &mastra),
		readOnly("bedrock", "Amazon Bedrock Converse requests", &bedrock),
		readOnly("chatgpt", "ChatGPT export, conversations.json", &chatGPT),
	}
}

func readOnly(name, doc string, t *table) Format {
	return Format{Name: name, Doc: doc, decoder: t.decoder, table: t}
}

// Names returns the names of all formats.
func Names() []string {
	var names []string
	for _, f := range All() {
		names = append(names, f.Name)
	}
	return names
}

// WrittenNames returns the names of the formats that can be written, too.
func WrittenNames() []string {
	var names []string
	for _, f := range All() {
		if f.Written() {
			names = append(names, f.Name)
		}
	}
	return names
}

// CanWrite returns why no session can be written in the format of that name, nil if it can.
func CanWrite(name string) error {
	f, err := Lookup(name)
	if err == nil && !f.Written() {
		err = fmt.Errorf("format %s is only read; want one of %s", name, strings.Join(WrittenNames(), ", "))
	}
	return err
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

// ReadReport counts the values of a file, of which a log has one per line: Messages and the
// counts of Other add up to Values. It is empty for chat-completions, where every value is a
// message or a session.
type ReadReport struct {
	// Values is the number of JSON values read, of a document in a format that is only read that of
	// its records.
	Values int `json:"values"`
	// Messages is the number of values that began a message. One value can hold several.
	Messages int `json:"messages"`
	// Other counts the other values by kind. "joined" are further parts of a message,
	// "sidechain" belongs to a sub-agent and is in its own session, "abandoned" is on a
	// branch that the user has left.
	Other map[string]int `json:"other,omitempty"`
	// Dropped counts fields of messages that were left out, by name: they repeat the
	// content of the message.
	Dropped map[string]int `json:"dropped,omitempty"`
	// First holds the line of the first of each kind of Other and Dropped.
	First map[string]int `json:"first,omitempty"`
	// Skipped lists the lines that could not be read (see Reader.SkipLines).
	Skipped []Skipped `json:"skipped,omitempty"`

	line int // that is read
}

// Skipped is a line that could not be read.
type Skipped struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// Session is a conversation as read.
type Session struct {
	chat.Session
	Report ReadReport
}

// maxKinds limits the number of kinds in a report, as the file names them.
const maxKinds = 64

// count adds n to a kind of m, or to "other" if there are too many kinds, and returns the kind.
func count(m *map[string]int, kind string, n int) string {
	if n == 0 {
		return kind
	}
	if *m == nil {
		*m = map[string]int{}
	}
	printable := !strings.ContainsFunc(kind, func(r rune) bool { return r < ' ' || r > '~' })
	if _, known := (*m)[kind]; !known && len(*m) >= maxKinds || len(kind) > 60 || !printable {
		kind = "other"
	}
	if (*m)[kind] += n; (*m)[kind] == 0 {
		delete(*m, kind)
	}
	return kind
}

// LeftOut returns the counts of Other, without those of IsMeta, and of Dropped; nil for none.
func (r *ReadReport) LeftOut() map[string]int {
	var out map[string]int
	for kind, n := range r.Other {
		if !IsMeta(kind) {
			_ = count(&out, kind, n)
		}
	}
	for kind, n := range r.Dropped {
		_ = count(&out, kind, n)
	}
	return out
}

// other counts the value on the line that is read.
func (r *ReadReport) other(kind string) { r.others(kind, 1, r.line) }

// others counts values of which the first is on that line.
func (r *ReadReport) others(kind string, n, line int) {
	if kind = count(&r.Other, kind, n); r.Other[kind] == 0 {
		delete(r.First, kind)
		return
	}
	r.begins(kind, line)
}

// begins records the line of a kind unless an earlier one is known.
func (r *ReadReport) begins(kind string, line int) {
	if first, known := r.First[kind]; line > 0 && (!known || line < first) {
		if r.First == nil {
			r.First = map[string]int{}
		}
		r.First[kind] = line
	}
}

// metaKinds are the records of logs that are known to be no part of the conversation. Of kinds
// with a colon, the part before it counts.
var metaKinds = map[string]bool{
	"joined": true, "sidechain": true, "duplicate": true, // in a message
	"file-history-snapshot": true, "queue-operation": true, "summary": true, "system": true, "progress": true,
	"last-prompt":     true,
	"permission-mode": true, "mode": true, "custom-title": true, "ai-title": true, "agent-name": true, "pr-link": true,
	"session_meta": true, "turn_context": true, "event_msg": true, "state": true, "compacted": true,
	"session": true, "session_info": true, "model_change": true, "thinking_level_change": true, "label": true,
}

// IsMeta reports whether a kind of ReadReport.Other is known to be no part of the conversation.
func IsMeta(kind string) bool {
	group, _, _ := strings.Cut(kind, ":")
	return metaKinds[group] || notes()[group]
}

// notes returns the notes of all tables.
var notes = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for _, f := range All() {
		if f.table != nil {
			for kind := range strings.FieldsSeq(f.table.notes) {
				out[kind] = true
			}
		}
	}
	return out
})

// entry counts a value that began a message or is a further part of one.
func (r *ReadReport) entry(began bool) {
	r.Values++
	if began {
		r.Messages++
	} else {
		r.other("joined")
	}
}

// drop removes a key of o and counts it.
func (r *ReadReport) drop(o object, key string) {
	if o.Take(key) != nil {
		r.begins(count(&r.Dropped, key, 1), r.line)
	}
}

// gathered returns the session made of all values of a file, if there were any.
func gathered(s chat.Session, r ReadReport) []Session {
	if r.Values == 0 {
		return nil
	}
	return []Session{{Session: s, Report: r}}
}

// Losses counts the parts of a session that a format cannot hold, by kind.
type Losses map[string]int

// Options configure Write.
type Options struct {
	// DropReasoning leaves all reasoning out, DropSigned that which is signed or encrypted; it
	// counts as lost.
	DropReasoning, DropSigned bool
	// Log writes chat-completions as they are, to be read again; otherwise in a form that
	// providers take.
	Log bool
}

// Write writes a session in the named format, each line with a line break, and returns the
// losses. If the writer counts none, Write reads its output again and compares, so that no
// loss is unreported; such a loss is "other". s is not changed. Write fails on an unknown
// format, on an invalid raw value, and if w fails.
func Write(w io.Writer, name string, s chat.Session, o Options) (Losses, error) {
	if err := CanWrite(name); err != nil {
		return nil, err
	}
	f, _ := Lookup(name)
	e := &encoder{losses: Losses{}}
	was := s
	switch {
	case o.DropReasoning:
		var n int
		s.Messages, n = WithoutReasoning(s.Messages)
		e.loseN("reasoning", n)
	case o.DropSigned:
		var n int
		s.Messages, n = WithoutSigned(s.Messages)
		e.loseN("signed reasoning", n)
	}
	if !o.Log || f.encode != nil {
		s.Messages = e.prompt(s.Messages, f)
	}
	if f.encode != nil {
		f.encode(e, s)
	} else if err := chat.WriteSession(&e.out, s); err != nil {
		return nil, err
	}
	if len(e.losses) == 0 && !roundTrips(was, e.out.Bytes(), f.Name) {
		e.lose("other")
	}
	_, err := w.Write(e.out.Bytes())
	return e.losses, err
}

// encoder holds the output and the losses of a writer.
type encoder struct {
	out    bytes.Buffer
	losses Losses
}

func (e *encoder) lose(kind string) { e.loseN(kind, 1) }

func (e *encoder) loseN(kind string, n int) { _ = count((*map[string]int)(&e.losses), kind, n) }

// excluding returns o without the keys that a writer has its own values for. A value of o for
// such a key is lost; it had an unusual type.
func (e *encoder) excluding(o object, own ...string) object {
	for _, key := range own {
		if _, odd := o[key]; odd {
			e.lose("extra")
		}
	}
	return o.Without(own...)
}

// put sets keys that a writer has its own values for (see excluding); nil sets nothing.
func (e *encoder) put(o object, key string, value json.RawMessage) {
	if value == nil {
		return
	}
	if _, odd := o[key]; odd {
		e.lose("extra")
	}
	o[key] = value
}

func (e *encoder) line(value []byte) {
	e.out.Write(value)
	e.out.WriteByte('\n')
}

// WithoutReasoning returns the messages without reasoning and the number of texts and blocks
// removed. Messages that hold nothing else are left out. ms is not changed.
func WithoutReasoning(ms []chat.Message) (out []chat.Message, dropped int) {
	return withoutReasoning(ms, func(*chat.Message) bool { return true })
}

// WithoutSigned is WithoutReasoning for messages whose reasoning is signed or encrypted, which
// providers bind to the account and the user that it was written for.
func WithoutSigned(ms []chat.Message) (out []chat.Message, dropped int) {
	return withoutReasoning(ms, func(m *chat.Message) bool {
		meta := m.Meta(1)
		return meta.Signed()
	})
}

func withoutReasoning(ms []chat.Message, drop func(*chat.Message) bool) (out []chat.Message, dropped int) {
	out = make([]chat.Message, 0, len(ms))
	for i := range ms {
		n := 0
		m := ms[i]
		if drop(&m) {
			n = countReasoning(&m)
			m = m.WithoutReasoning()
		}
		dropped += n
		if n > 0 && len(m.ToolCalls) == 0 && len(m.Content.Parts) == 0 && m.Content.Text == "" {
			continue
		}
		out = append(out, m)
	}
	return out, dropped
}

// countReasoning returns the number of texts and blocks that are reasoning.
func countReasoning(m *chat.Message) (n int) {
	if m.Reasoning != "" {
		n++
	}
	for _, key := range chat.ReasoningKeys {
		if raw := m.Extra[key]; raw != nil && !blank(raw) {
			n++
		}
	}
	for _, p := range m.Content.Parts {
		if p.IsReasoning() {
			n++
		}
	}
	return n
}

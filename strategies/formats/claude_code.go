package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// claudeCode reads a session file of Claude Code. Lines of type user and assistant
// are messages; several lines of one API message (a block each) become one. Lines
// of sub-agents are sessions of their own. What follows a message that the user
// went back behind is left out, as the program does.
type claudeCode struct {
	main  *claudeSession
	subs  []*claudeSession
	byKey map[string]*claudeSession
	roots map[string]string // of a sidechain: uuid of a line to that of its root
	title string
}

func newClaudeCode() decoder {
	return &claudeCode{main: newClaudeSession(""), byKey: map[string]*claudeSession{}, roots: map[string]string{}}
}

// claudeSession is a conversation of the file.
type claudeSession struct {
	id, agent string
	common    object // what the lines have in common: that of the first which has it
	messages  []claudeMessage
	at        map[string]int  // uuid of a line to the number of its message, 0 for the start
	ids       map[string]bool // uuids of lines that are messages
	next      int             // number of the next message, from 1; they are never used again
	compact   json.RawMessage
	prompts   []int // numbers of what the user said
	report    ReadReport
}

func newClaudeSession(agent string) *claudeSession {
	return &claudeSession{agent: agent, common: object{}, at: map[string]int{}, ids: map[string]bool{}}
}

// claudeMessage is a message and the line it comes from.
type claudeMessage struct {
	chat.Message
	line, api object   // what is left of the line and of its message
	apiID     string   // lines with one id are one message
	joined    []string // uuids of further lines
	parent    string
	number    int
	values    int // lines
}

// claudeCommon are the keys that say where a session ran: they are kept once.
var claudeCommon = []string{"cwd", "version", "gitBranch", "userType", "slug", "entrypoint"}

func (d *claudeCode) add(value []byte) (*Session, error) {
	o, err := parseObject(value)
	if err != nil {
		return nil, err
	}
	typ := o.takeString("type")
	if typ == "" {
		return nil, errors.New("type: missing; want user, assistant or another kind of line")
	}
	side := o.takeTrue("isSidechain")
	s := d.main
	if side && (typ == "user" || typ == "assistant") {
		s = d.sidechain(o)
	}
	if s.id == "" {
		s.id = o.string("sessionId")
	}
	s.report.Values++
	switch {
	case rawjson.Kind(o["message"]) == '{' && (typ == "user" || typ == "assistant"):
		if err := s.message(typ, o); err != nil {
			s.report.Values--
			return nil, err
		}
		if s != d.main {
			d.main.report.Values++
			d.main.report.other("sidechain")
		}
		return nil, nil
	case typ == "system":
		if sub := o.string("subtype"); sub != "" {
			typ += ":" + sub
		}
		if raw := o["compactMetadata"]; raw != nil {
			s.compact = raw
		}
	case typ == "summary":
		d.title = o.string("summary")
	}
	s.follow(o)
	s.report.other(typ)
	return nil, nil
}

// sidechain returns the session of a sub-agent's line: by the agent's id, or by the
// line that it began with.
func (d *claudeCode) sidechain(o object) *claudeSession {
	key := o.string("agentId")
	if key == "" {
		uuid := o.string("uuid")
		key = d.roots[o.string("parentUuid")]
		if key == "" {
			key = uuid
		}
		d.roots[uuid] = key
	}
	s := d.byKey[key]
	if s == nil {
		s = newClaudeSession(key)
		d.byKey[key] = s
		d.subs = append(d.subs, s)
	}
	return s
}

// follow notes that a line which is no message stands behind its parent. One that
// has none begins the file, or a part of it whose place is not known.
func (s *claudeSession) follow(o object) {
	uuid := o.string("uuid")
	if uuid == "" {
		return
	}
	if n, known := s.at[o.string("parentUuid")]; known {
		s.at[uuid] = n
	} else if s.next == 0 {
		s.at[uuid] = 0
	}
}

// parentOf returns the index of the message a line follows, -1 for the start; known is
// false where that is nowhere in the session.
func (s *claudeSession) parentOf(o object) (index int, known bool) {
	n, ok := s.at[o.string("parentUuid")]
	if !ok || n == 0 {
		return -1, ok
	}
	return slices.BinarySearchFunc(s.messages, n, func(m claudeMessage, n int) int { return m.number - n })
}

func (s *claudeSession) message(typ string, o object) error {
	api := o.object("message")
	delete(o, "message")
	role := api.takeString("role")
	if role == "" {
		role = typ
	}
	ms, err := fromBlocks(chat.Role(role), api.take("content"))
	if err != nil {
		return err
	}
	parent, known := s.parentOf(o)
	if s.joins(role, api.string("id"), ms) {
		s.join(ms[0], o)
		return nil
	}
	isPrompt := role == string(chat.RoleUser) && ms[0].Role == chat.RoleUser
	if isPrompt && known {
		s.rewind(parent)
	}
	s.report.Messages++
	m := claudeMessage{apiID: api.takeString("id"), api: api, line: o, values: 1}
	uuid := o.takeString("uuid")
	if s.ids[uuid] {
		o["uuid"] = rawjson.Quote(uuid) // written twice; two messages cannot have one id
		uuid = ""
	}
	at := o.takeTime("timestamp")
	last := len(s.messages) - 1
	if rawjson.Kind(o.take("parentUuid")) == '"' && known && parent >= 0 && parent != last {
		m.parent = s.messages[parent].ID
	}
	s.take(&m)
	for i, one := range ms {
		m := m
		m.Message = one
		m.CreatedAt = at
		if m.ID = uuid; i > 0 {
			m.values, m.parent, m.line, m.api = 0, "", nil, nil
			if uuid != "" {
				m.ID = fmt.Sprintf("%s#%d", uuid, i+1)
			}
		} else {
			s.flags(&m)
		}
		s.next++
		m.number = s.next
		s.messages = append(s.messages, m)
	}
	if uuid != "" {
		s.at[uuid] = s.next
		s.ids[uuid] = true
	}
	if isPrompt {
		s.prompts = append(s.prompts, s.next)
	}
	return nil
}

// take takes what is the session's from a line, and counts what is left out.
func (s *claudeSession) take(m *claudeMessage) {
	o := m.line
	if o.string("sessionId") == s.id {
		delete(o, "sessionId")
	}
	if s.agent != "" && o.string("agentId") == s.agent {
		delete(o, "agentId")
	}
	for _, key := range claudeCommon {
		raw, ok := o[key]
		if ok && s.common[key] == nil {
			s.common[key] = raw
		}
		if ok && string(raw) == string(s.common[key]) {
			delete(o, key)
		}
	}
	s.report.drop(o, "toolUseResult")
	if m.api.string("type") == "message" {
		delete(m.api, "type")
	}
}

// flags moves what any reader may want to know to the Extra of the message.
func (s *claudeSession) flags(m *claudeMessage) {
	if m.line.takeTrue("isMeta") {
		setExtra(&m.Extra, "is_meta", isTrue)
	}
	if m.line.takeTrue("isCompactSummary") {
		setExtra(&m.Extra, "is_compact_summary", isTrue)
		if s.compact != nil {
			m.line["compactMetadata"] = s.compact
		}
		s.compact = nil
	}
}

// joins reports whether a line is a further part of the last message: of one API
// message, with nothing but results of it between.
func (s *claudeSession) joins(role, apiID string, ms []chat.Message) bool {
	if role != string(chat.RoleAssistant) || apiID == "" || len(ms) != 1 {
		return false
	}
	i := s.lastSaid()
	return i >= 0 && s.messages[i].apiID == apiID && s.messages[i].Role == chat.RoleAssistant &&
		(i == len(s.messages)-1 || len(ms[0].ToolCalls) > 0)
}

// lastSaid returns the index of the last message that is no result.
func (s *claudeSession) lastSaid() int {
	i := len(s.messages) - 1
	for i >= 0 && s.messages[i].Role == chat.RoleTool {
		i--
	}
	return i
}

// join adds a line to the message that it is a part of.
func (s *claudeSession) join(part chat.Message, o object) {
	i := s.lastSaid()
	m := &s.messages[i]
	if uuid := o.string("uuid"); uuid != "" {
		m.joined = append(m.joined, uuid)
		s.at[uuid] = m.number
		s.ids[uuid] = true
	}
	switch parts := append(asParts(m.Content), asParts(part.Content)...); {
	case len(parts) == 0:
		m.Content = chat.Content{Null: true}
	case len(parts) == 1 && isPlain(parts[0]):
		m.Content = chat.TextContent(parts[0].Text)
	default:
		m.Content = chat.Content{Parts: parts}
	}
	m.ToolCalls = append(m.ToolCalls, part.ToolCalls...)
	m.values++
	s.report.other("joined")
}

// rewind takes out what the user has left by going back to the message at parent:
// the prompts behind it and all that follows them.
func (s *claudeSession) rewind(parent int) {
	number := 0
	if parent >= 0 {
		number = s.messages[parent].number
	}
	left, _ := slices.BinarySearch(s.prompts, number+1)
	if left == len(s.prompts) {
		return
	}
	n := 0
	for _, m := range s.messages[parent+1:] {
		n += m.values
		if m.values > 0 {
			s.report.Messages--
			count(&s.report.Other, "joined", 1-m.values)
		}
	}
	count(&s.report.Other, "abandoned", n)
	s.messages = s.messages[:parent+1]
	s.prompts = s.prompts[:left]
}

func (d *claudeCode) end() []Session {
	var out []Session
	for _, s := range append([]*claudeSession{d.main}, d.subs...) {
		if len(s.messages) == 0 && (len(d.subs) > 0 || s.report.Values == 0) {
			continue // a file of sub-agents alone
		}
		out = append(out, s.session(d.main.id, d.title))
	}
	if len(d.main.messages) == 0 && len(out) > 0 && len(d.subs) > 0 {
		r := &out[0].Report
		for kind, n := range d.main.report.Other {
			if kind != "sidechain" {
				count(&r.Other, kind, n)
				r.Values += n
			}
		}
	}
	return out
}

// session makes the session of what has been gathered.
func (s *claudeSession) session(file, title string) Session {
	out := Session{Report: s.report}
	out.ID = s.id
	for i := len(s.messages) - 1; i >= 0 && out.Model == ""; i-- {
		if m := s.messages[i]; m.Role == chat.RoleAssistant && m.api.string("model") != "<synthetic>" {
			out.Model = m.api.string("model")
		}
	}
	common := object{}
	maps.Copy(common, s.common)
	if s.agent != "" {
		if file == "" {
			file = s.id
		}
		out.ID = file + "/" + s.agent
		common["sessionId"], common["agentId"], common["isSidechain"] = rawjson.Quote(file), rawjson.Quote(s.agent), isTrue
	}
	setExtra(&out.Extra, "claude_code", common.raw())
	if s.agent == "" {
		setExtra(&out.Extra, "title", quoteIf(title))
	}
	out.Messages = make([]chat.Message, len(s.messages))
	for i, m := range s.messages {
		out.Messages[i] = m.finish(out.Model)
	}
	return out
}

// finish puts what is left of the line into the message.
func (m claudeMessage) finish(model string) chat.Message {
	if m.line == nil {
		return m.Message
	}
	if m.apiID != "" {
		m.api["id"] = rawjson.Quote(m.apiID)
	}
	if m.api.string("model") == model {
		delete(m.api, "model")
	}
	if len(m.api) > 0 {
		m.line["message"] = m.api.raw()
	}
	if m.joined != nil {
		uuids := make([]json.RawMessage, len(m.joined))
		for i, uuid := range m.joined {
			uuids[i] = rawjson.Quote(uuid)
		}
		m.line["joinedUuids"] = list(uuids)
	}
	mergeExtra(&m.Message, "claude_code", m.line)
	if m.parent != "" {
		setExtra(&m.Extra, "parent_id", rawjson.Quote(m.parent))
	}
	return m.Message
}

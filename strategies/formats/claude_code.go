package formats

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// claudeCode reads a session file of Claude Code. Lines of type user and assistant are
// messages; several lines of one API message (a block each) become one. Lines of sub-agents
// are sessions of their own. If the user went back to an earlier message, the messages after
// it are left out, as in the program.
type claudeCode struct {
	main  *claudeSession
	subs  []*claudeSession
	byKey map[string]*claudeSession
	roots map[string]string // in sidechains: uuid of a line to that of its root
	title string
}

func newClaudeCode() decoder {
	return &claudeCode{main: newClaudeSession(""), byKey: map[string]*claudeSession{}, roots: map[string]string{}}
}

// claudeSession is a conversation of the file.
type claudeSession struct {
	id, agent string
	common    object // claudeCommon of the first line that has them
	messages  []claudeMessage
	at        map[string]int      // uuid of a line to the number of its message, 0 for the start
	ids       map[string]bool     // uuids of lines that are messages
	bodies    map[string][32]byte // hashes of the messages of lines, by uuid
	queued    []claudeQueued
	next      int // number of the next message, from 1; numbers are not reused
	compact   json.RawMessage
	prompts   []int // numbers of the user's messages
	report    ReadReport
}

func newClaudeSession(agent string) *claudeSession {
	return &claudeSession{agent: agent, common: object{}, at: map[string]int{}, ids: map[string]bool{}, bodies: map[string][32]byte{}}
}

// claudeMessage is a message and the line it comes from.
type claudeMessage struct {
	chat.Message
	line, api object   // the remaining fields of the line and of its message
	apiID     string   // lines with the same id are one message
	joined    []string // uuids of further lines
	parent    string
	number    int
	values    int // lines
	first     int // line of the file
}

// claudeCommon lists the keys that describe where a session ran; they are kept once.
var claudeCommon = []string{"cwd", "version", "gitBranch", "userType", "slug", "entrypoint"}

func (d *claudeCode) add(value []byte, line int) (*Session, error) {
	o, err := rawjson.ParseObject(value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRecord, err)
	}
	typ := o.TakeString("type")
	if typ == "" {
		return nil, fmt.Errorf("%w: type: missing; want user, assistant or another kind of line", errNoRecord)
	}
	side := o.TakeTrue("isSidechain")
	queued := own(o, "attachment")
	if typ != "attachment" || queued.String("type") != "queued_command" || blank(queued["prompt"]) {
		queued = nil
	}
	isMessage := typ == "user" || typ == "assistant"
	s := d.main
	if side && (isMessage || queued != nil) {
		s = d.sidechain(o)
	}
	if s.id == "" {
		s.id = o.String("sessionId")
	}
	s.report.Values++
	s.report.line, d.main.report.line = line, line
	switch {
	case queued != nil:
		typ = "user"
		o.Set("message", rawjson.Build("role", typ, "content", queued.Take("prompt")).JSON(), "attachment", queued.JSON())
		mode, origin := queued.String("commandMode"), own(queued, "origin").String("kind")
		if cmp.Or(mode, "prompt") != "prompt" || cmp.Or(origin, "human") != "human" {
			o["isMeta"] = isTrue // another program's
		}
		fallthrough
	case isMessage:
		if err := s.message(typ, o, queued != nil); err != nil {
			s.report.Values--
			return nil, err
		}
		if s != d.main {
			d.main.report.Values++
			d.main.report.other("sidechain")
		}
		return nil, nil
	case typ == "system":
		if sub := o.String("subtype"); sub != "" {
			typ += ":" + sub
		}
		if raw := o["compactMetadata"]; raw != nil {
			s.compact = raw
		}
	case typ == "attachment":
		typ += ":" + own(o, "attachment").String("type")
	case typ == "queue-operation":
		s.queue(o)
	case typ == "summary":
		d.title = o.String("summary")
	}
	s.follow(o)
	s.report.other(typ)
	return nil, nil
}

// sidechain returns the session of a sub-agent's line, by the agent's id or by the first line
// of its chain.
func (d *claudeCode) sidechain(o object) *claudeSession {
	key := o.String("agentId")
	if key == "" {
		uuid := o.String("uuid")
		key = cmp.Or(d.roots[o.String("parentUuid")], uuid)
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

// follow records the message that a line without a message follows. A line without a known
// parent counts only at the start of the file.
func (s *claudeSession) follow(o object) {
	uuid := o.String("uuid")
	if uuid == "" {
		return
	}
	if n, known := s.at[o.String("parentUuid")]; known {
		s.at[uuid] = n
	} else if s.next == 0 {
		s.at[uuid] = 0
	}
}

// parentOf returns the index of the message that a line follows, -1 for the start. known
// reports whether the parent is in the session.
func (s *claudeSession) parentOf(o object) (index int, known bool) {
	n, ok := s.at[o.String("parentUuid")]
	if !ok || n == 0 {
		return -1, ok
	}
	return s.index(n)
}

// index returns the index of the message with that number, or of the next one.
func (s *claudeSession) index(number int) (i int, found bool) {
	return slices.BinarySearchFunc(s.messages, number, func(m claudeMessage, n int) int { return m.number - n })
}

func (s *claudeSession) message(typ string, o object, queued bool) error {
	api := o.Object("message")
	if k := rawjson.Kind(api["content"]); k != '"' && k != '[' {
		return fmt.Errorf("message: content: want a string or a list, got %s", rawjson.KindName(api["content"]))
	}
	delete(o, "message")
	role := cmp.Or(api.TakeString("role"), typ)
	if role != typ {
		return fmt.Errorf("message: role: want %s as the type of the line, got %.40q", typ, role)
	}
	ms, err := fromBlocks(chat.Role(role), api.Take("content"))
	if err != nil {
		return err
	}
	for i := range ms {
		if err := ms[i].Validate(); err != nil {
			return fmt.Errorf("message: %w", err)
		}
	}
	if s.repeats(o.String("uuid"), ms) {
		s.report.other("duplicate")
		return nil
	}
	parent, known := s.parentOf(o)
	if s.joins(role, api.String("id"), ms) {
		s.join(ms[0], o)
		return nil
	}
	isPrompt := role == string(chat.RoleUser) && ms[0].Role == chat.RoleUser
	if isPrompt && known && !queued {
		s.rewind(parent)
	}
	for i := range ms {
		if ms[i].Role == chat.RoleUser {
			s.dequeue(ms[i].Content.String(), !queued && o["isMeta"] == nil && o["isCompactSummary"] == nil)
		}
	}
	s.report.Messages++
	m := claudeMessage{apiID: api.TakeString("id"), api: api, line: o, values: 1, first: s.report.line}
	uuid := o.TakeString("uuid")
	if s.ids[uuid] {
		o["uuid"] = rawjson.Quote(uuid) // repeated; ids of messages are unique
		uuid = ""
	}
	at := takeTime(o, "timestamp")
	last := len(s.messages) - 1
	if rawjson.Kind(o.Take("parentUuid")) == '"' && known && parent >= 0 && parent != last {
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

// repeats reports whether a line with that uuid and these messages was read, and records it.
func (s *claudeSession) repeats(uuid string, ms []chat.Message) bool {
	if uuid == "" {
		return false
	}
	var all []byte
	for i := range ms {
		all = ms[i].AppendJSON(all)
	}
	sum := sha256.Sum256(all)
	was, known := s.bodies[uuid]
	s.bodies[uuid] = sum
	if !known || was != sum {
		return false
	}
	_, found := s.index(s.at[uuid])
	return found // else the user has left it
}

// take removes the session's fields from a line, and counts the fields that are dropped.
func (s *claudeSession) take(m *claudeMessage) {
	o := m.line
	if o.String("sessionId") == s.id {
		delete(o, "sessionId")
	}
	if s.agent != "" && o.String("agentId") == s.agent {
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
	if m.api.String("type") == "message" {
		delete(m.api, "type")
	}
}

// flags moves the flags of a line to the Extra of the message.
func (s *claudeSession) flags(m *claudeMessage) {
	takeFlag(m.line, "isMeta", &m.Message, "is_meta")
	if takeFlag(m.line, "isCompactSummary", &m.Message, "is_compact_summary") {
		if s.compact != nil {
			m.line["compactMetadata"] = s.compact
		}
		s.compact = nil
	}
}

// joins reports whether a line is a further part of the last message: of the same API
// message, with only its results between.
func (s *claudeSession) joins(role, apiID string, ms []chat.Message) bool {
	if role != string(chat.RoleAssistant) || apiID == "" || len(ms) != 1 {
		return false
	}
	i := s.lastSaid()
	return i >= 0 && s.messages[i].apiID == apiID && s.messages[i].Role == chat.RoleAssistant &&
		(i == len(s.messages)-1 || len(ms[0].ToolCalls) > 0)
}

// lastSaid returns the index of the last message that is not a result.
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
	if uuid := o.String("uuid"); uuid != "" {
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

// rewind removes the messages after parent, to which the user went back, if there are prompts
// among them.
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
	s.report.others("abandoned", n, s.messages[parent+1].first)
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

// session returns the session of the messages read.
func (s *claudeSession) session(file, title string) Session {
	out := Session{Report: s.report}
	out.ID = s.id
	for i := len(s.messages) - 1; i >= 0 && out.Model == ""; i-- {
		if m := s.messages[i]; m.Role == chat.RoleAssistant && m.api.String("model") != "<synthetic>" {
			out.Model = m.api.String("model")
		}
	}
	common := object{}
	maps.Copy(common, s.common)
	if s.agent != "" {
		file = cmp.Or(file, s.id)
		out.ID = file + "/" + s.agent
		common.Set("sessionId", file, "agentId", s.agent, "isSidechain", isTrue)
	}
	setExtra(&out.Extra, "claude_code", common.JSON())
	if s.agent == "" {
		setExtra(&out.Extra, "title", quoteIf(title))
	}
	s.takeQueued(&out.Report)
	out.Messages = make([]chat.Message, len(s.messages))
	for i, m := range s.messages {
		out.Messages[i] = m.finish(out.Model)
	}
	return out
}

// finish stores the remaining fields of the line in the message.
func (m claudeMessage) finish(model string) chat.Message {
	if m.line == nil {
		return m.Message
	}
	m.api.Set("id", quoteIf(m.apiID))
	if m.api.String("model") == model {
		delete(m.api, "model")
	}
	m.line.Set("message", m.api.JSON())
	if m.joined != nil {
		m.line["joinedUuids"] = rawjson.Quote(m.joined)
	}
	mergeExtra(&m.Message, "claude_code", m.line)
	if m.parent != "" {
		setExtra(&m.Extra, "parent_id", rawjson.Quote(m.parent))
	}
	return m.Message
}

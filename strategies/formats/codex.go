package formats

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// codex reads a rollout file of Codex: lines {"timestamp", "type", "payload"}, or items
// alone as its first versions wrote them. The session's instructions are its system message.
// A compaction is a user message with the summary; turns that were rolled back are left out.
type codex struct {
	items  items
	s      chat.Session
	meta   bool
	turns  []int // indexes of the groups before seen that begin a turn
	seen   int
	known  map[string]bool // items by their content (see itemKey)
	ids    map[string]bool // keys of items with an id
	events []*codexEvent
	report ReadReport
}

// codexEvent is a user_message event that no item has repeated yet.
type codexEvent struct {
	text  string
	at    time.Time
	line  int
	group int // that it stands before
}

func newCodex() decoder { return &codex{known: map[string]bool{}, ids: map[string]bool{}} }

func (d *codex) add(value []byte, line int) (*Session, error) {
	o, err := rawjson.ParseObject(value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRecord, err)
	}
	d.report.line, d.items.line = line, line
	if err := d.line(o, value); err != nil {
		return nil, err
	}
	d.report.Values++
	return nil, nil
}

func (d *codex) line(o object, value []byte) error {
	typ := o.String("type")
	at := takeTime(o, "timestamp")
	d.items.at = at
	payload := o.Object("payload")
	switch {
	case payload == nil && slices.Contains([]string{"session_meta", "response_item", "compacted", "turn_context", "event_msg"}, typ):
		d.report.other(typ)
	case payload == nil && typ == "" && o["record_type"] != nil:
		d.report.other("state")
	case payload == nil && typ == "" && o["id"] != nil && o["role"] == nil:
		if !at.IsZero() {
			o["timestamp"] = timestamp(at) // of the session, not of a line
		}
		d.sessionMeta(o)
	case payload == nil && !isItem(typ) && (typ != "" || o["role"] == nil):
		return fmt.Errorf("%w: neither a line of a rollout nor an item of one", errNoRecord)
	case payload == nil:
		return d.item(o, value)
	case typ == "session_meta":
		d.sessionMeta(payload)
	case typ == "response_item":
		return d.item(payload, o["payload"])
	case typ == "compacted":
		return d.compacted(payload)
	case typ == "turn_context":
		if model := payload.String("model"); model != "" {
			d.s.Model = model
		}
		d.report.other(typ)
	case typ == "event_msg":
		sub := payload.String("type")
		d.report.other("event_msg:" + sub)
		var turns int
		if sub == "user_message" {
			d.event(payload.String("message"))
		}
		if sub == "thread_rolled_back" && json.Unmarshal(rawjson.OrNull(payload["num_turns"]), &turns) == nil {
			d.rollBack(turns)
		}
	default:
		d.report.other(typ)
	}
	return nil
}

func (d *codex) sessionMeta(o object) {
	if d.meta { // of the session that this one was forked from
		d.report.other("session_meta")
		return
	}
	d.meta = true
	d.s.ID = o.TakeString("id")
	instructions := o.TakeString("instructions")
	if base := o.Object("base_instructions"); instructions == "" && len(base) == 1 && base.String("text") != "" {
		delete(o, "base_instructions")
		instructions = base.String("text")
	}
	setExtra(&d.s.Extra, "codex", o.JSON())
	if instructions == "" {
		d.report.other("session_meta")
		return
	}
	d.items.begin(chat.Message{Role: chat.RoleSystem, Content: chat.TextContent(instructions), CreatedAt: d.items.at})
	d.report.Messages++
}

func (d *codex) item(o object, raw json.RawMessage) error {
	typ := itemType(o)
	if !isItem(typ) {
		d.report.other("response_item:" + cmp.Or(typ, "without a type"))
		return nil
	}
	key := itemKey(typ, o, raw)
	if id := o.String("id"); id != "" && (typ == "message" || o["call_id"] != nil) {
		if d.ids[id+key] {
			d.report.other("duplicate") // by a session that was resumed
			return nil
		}
		d.ids[id+key] = true
	}
	d.known[key] = true
	isUser := o.String("role") == string(chat.RoleUser)
	began, err := d.items.add(o, raw)
	switch {
	case err != nil:
		return fmt.Errorf("item: %w", err)
	case began:
		d.report.Messages++
	default:
		d.report.other("joined")
	}
	if isUser {
		d.removeEvent()
	}
	return nil
}

// itemKey returns a key that items with the same text or call share, whatever their ids.
func itemKey(typ string, o object, raw json.RawMessage) string {
	content := string(raw)
	switch id := o.String("call_id"); {
	case typ == "message":
		if c, err := readContent(o["content"], fromItemPart); err == nil {
			content = o.String("role") + " " + cmp.Or(strings.TrimSpace(c.String()), string(o["content"]))
		}
	case id != "":
		content = id
	case o.String("encrypted_content") != "":
		content = o.String("encrypted_content")
	}
	sum := sha256.Sum256([]byte(typ + " " + content))
	return string(sum[:])
}

// event records a text of the user from an event. An item of the user before or after it
// repeats it, unless the item was never written.
func (d *codex) event(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	e := &codexEvent{text: text, at: d.items.at, line: d.report.line, group: len(d.items.groups)}
	recent := d.items.groups[max(0, len(d.items.groups)-20):]
	for _, whole := range []bool{true, false} {
		for i := range slices.Backward(recent) {
			if g := &recent[i]; g.repeats(g.Content.String(), e, whole) {
				e, g.repeated = g.repeated, e
				d.wait(e)
				return
			}
		}
	}
	d.wait(e)
}

// wait records an event, nil for none, as one that no item has repeated yet.
func (d *codex) wait(e *codexEvent) {
	if e != nil {
		at, _ := slices.BinarySearchFunc(d.events, e.line, func(x *codexEvent, line int) int { return x.line - line })
		d.events = slices.Insert(d.events, at, e)
	}
}

// removeEvent removes the event that the last item of the user repeats.
func (d *codex) removeEvent() {
	g := &d.items.groups[len(d.items.groups)-1]
	content := g.Content.String()
	for _, whole := range []bool{true, false} {
		for i, e := range slices.Backward(d.events) {
			if g.repeats(content, e, whole) {
				g.repeated = e
				d.events = slices.Delete(d.events, i, i+1)
				return
			}
		}
	}
}

// repeats reports whether an item of the user with that content repeats an event: as a whole, even
// if it already repeats another, or within other text.
func (g *itemGroup) repeats(content string, e *codexEvent, whole bool) bool {
	content, text := strings.TrimSpace(content), strings.TrimSpace(e.text)
	switch {
	case g.Role != chat.RoleUser:
		return false
	case whole:
		return content == text && (g.repeated == nil || strings.TrimSpace(g.repeated.text) != text)
	}
	return g.repeated == nil && !isContext(content) && strings.Contains(content, text)
}

// compacted reads a compaction: its summary, and the items that stand only in the history that
// it puts in the place of the former one.
func (d *codex) compacted(o object) error {
	summary := o.TakeString("message")
	history := o.Take("replacement_history")
	before := len(d.items.groups)
	if blank(history) {
		history = json.RawMessage("[]")
	}
	last := -1 // group of the message of the user that ends the history, if it stands only there
	d.items.parted = true
	left := 0
	err := objects(history, "replacement_history", func(item object, raw json.RawMessage) error {
		typ, role := itemType(item), chat.Role(item.String("role"))
		text := ""
		if c, err := readContent(item["content"], fromItemPart); err == nil {
			text = c.String()
		}
		key := itemKey(typ, item, raw)
		isUser := typ == "message" && role == chat.RoleUser
		last = -1
		switch {
		case d.known[key], summary != "" && strings.Contains(text, summary), isUser && d.shortened(text):
			return nil
		case typ != "message" && outputs[typ] == "" && !strings.HasSuffix(typ, "_call_output"),
			typ == "message" && (!isUser && role != chat.RoleAssistant || isContext(text) || strings.TrimSpace(text) == ""):
			left++ // written by the program, or for one model to read
			return nil
		}
		d.known[key] = true
		n := len(d.items.groups)
		if _, err := d.items.add(item, raw); err != nil {
			left++
			return nil //nolint:nilerr // an item of a copy
		}
		if isUser {
			last = n
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := before; i < len(d.items.groups); i++ {
		d.items.groups[i].values, d.items.groups[i].resultLines = 0, 0
	}
	if summary != "" {
		d.items.begin(chat.Message{Role: chat.RoleUser, Content: chat.TextContent(summary), CreatedAt: d.items.at})
		last = len(d.items.groups) - 1
		d.items.groups[last].values = 0
	}
	if last >= 0 {
		m := &d.items.groups[last].Message
		setFlag(m, "is_compact_summary")
		mergeExtra(m, "codex", o)
	}
	if left > 0 {
		d.report.begins(count(&d.report.Dropped, "replacement_history", left), d.report.line)
	}
	d.items.parted = true
	if len(d.items.groups) == before {
		d.report.other("compacted")
		return nil
	}
	d.items.groups[before].values = 1
	d.report.Messages++
	return nil
}

// cutOut matches the mark that Codex writes for the middle of a long message.
var cutOut = regexp.MustCompile(`…\d+ (tokens|chars) truncated…`)

// shortened reports whether a text is a message of the user without its middle.
func (d *codex) shortened(text string) bool {
	at := cutOut.FindStringIndex(text)
	if at == nil {
		return false
	}
	head, tail := strings.TrimSpace(text[:at[0]]), strings.TrimSpace(text[at[1]:])
	return slices.ContainsFunc(d.items.groups, func(g itemGroup) bool {
		text := strings.TrimSpace(g.Content.String())
		return g.Role == chat.RoleUser && strings.HasPrefix(text, head) && strings.HasSuffix(text, tail)
	})
}

// contextPrefixes begin the user messages that Codex itself writes; they are not turns.
var contextPrefixes = []string{"<environment_context>", "<user_instructions>", "# AGENTS.md"}

func isContext(text string) bool {
	return slices.ContainsFunc(contextPrefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}

// rollBack removes the last turns.
func (d *codex) rollBack(turns int) {
	gs := d.items.groups
	for ; d.seen < len(gs); d.seen++ {
		if gs[d.seen].Role == chat.RoleUser && !isContext(gs[d.seen].Content.String()) {
			d.turns = append(d.turns, d.seen)
		}
	}
	turns = min(turns, len(d.turns))
	if turns <= 0 {
		return
	}
	at := d.turns[len(d.turns)-turns]
	d.turns, d.seen = d.turns[:len(d.turns)-turns], at
	n := 0
	for _, g := range gs[at:] {
		n += g.values + g.resultLines
		d.report.Messages -= min(1, g.values) + g.resultLines
		count(&d.report.Other, "joined", min(1, g.values)-g.values)
		for _, c := range g.ToolCalls {
			if d.items.open[c.ID] >= at {
				delete(d.items.open, c.ID)
			}
		}
	}
	d.report.others("abandoned", n, gs[at].line)
	d.events = slices.DeleteFunc(d.events, func(e *codexEvent) bool { return e.group > at })
	d.items.groups = gs[:at]
}

func (d *codex) end() []Session {
	for _, e := range slices.Backward(d.events) {
		m := chat.Message{Role: chat.RoleUser, Content: chat.TextContent(e.text), CreatedAt: e.at}
		d.items.groups = slices.Insert(d.items.groups, e.group, itemGroup{Message: m})
		d.report.Messages++
		d.report.others("event_msg:user_message", -1, 0)
	}
	d.s.Messages = d.items.messages()
	return gathered(d.s, d.report)
}

// encodeCodex writes the session's line, one with its model, and a line per item.
func encodeCodex(e *encoder, s chat.Session) {
	ms := s.Messages
	meta := own(s.Extra, "codex")
	e.sessionExtra(s, "codex")
	delete(meta, "id")
	meta.Set("id", quoteIf(s.ID))
	var at time.Time
	if len(ms) > 0 {
		at = ms[0].CreatedAt
	}
	if len(ms) > 0 && isInstructions(ms[0]) && ms[0].Content.String() != "" {
		e.envelope(&ms[0], "created_at")
		meta.Set("base_instructions", rawjson.Build("text", ms[0].Content.String()).JSON())
		ms = ms[1:]
	}
	e.rollout("session_meta", meta, at)
	if s.Model != "" {
		e.rollout("turn_context", object{"model": rawjson.Quote(s.Model)}, at)
	}
	for len(ms) > 0 {
		n := slices.IndexFunc(ms, func(m chat.Message) bool { return m.Role == chat.RoleUser && flagged(&m, "is_compact_summary") })
		if n < 0 {
			n = len(ms)
		}
		e.encodeItems(ms[:n], []string{"created_at"}, func(item object, m *chat.Message) {
			e.rollout("response_item", item, m.CreatedAt)
		})
		if n == len(ms) {
			return
		}
		e.compacted(&ms[n])
		ms = ms[n+1:]
	}
}

func (e *encoder) compacted(m *chat.Message) {
	e.envelope(m, "created_at", "is_compact_summary", "codex")
	parts := m.Content.Parts
	if parts != nil && (len(parts) != 1 || !isPlain(parts[0])) || m.Content.String() == "" {
		e.lose("parts")
	}
	o := own(m.Extra, "codex")
	o.Set("message", m.Content.String())
	e.rollout("compacted", o, m.CreatedAt)
}

func (e *encoder) rollout(typ string, payload object, at time.Time) {
	e.line(rawjson.Build("timestamp", timestamp(at), "type", typ, "payload", rawjson.OrNull(payload.JSON())).JSON())
}

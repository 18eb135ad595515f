package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/rawjson"
)

// codex reads a rollout file of Codex: lines {"timestamp", "type", "payload"}, or
// the items themselves as its first versions wrote them. The session's
// instructions are its system message. A compaction is a user message with the
// summary; turns that were rolled back are left out.
type codex struct {
	items  items
	s      chat.Session
	meta   bool
	turns  []int // indexes of the groups that begin a turn, of those before seen
	seen   int
	report ReadReport
}

func newCodex() decoder { return &codex{} }

func (d *codex) add(value []byte) (*Session, error) {
	o, err := parseObject(value)
	if err != nil {
		return nil, err
	}
	if err := d.line(o, value); err != nil {
		return nil, err
	}
	d.report.Values++
	return nil, nil
}

func (d *codex) line(o object, value []byte) error {
	typ := o.string("type")
	at := o.takeTime("timestamp")
	payload := o.object("payload")
	switch {
	case payload == nil && typ == "" && o["record_type"] != nil:
		d.report.other("state")
	case payload == nil && typ == "" && o["id"] != nil && o["role"] == nil:
		if !at.IsZero() {
			o["timestamp"] = timestamp(at) // of the session, not of a line
		}
		return d.sessionMeta(o, at)
	case payload == nil && typ == "" && o["role"] == nil:
		return errors.New("neither a line of a rollout (no type) nor an item of one")
	case payload == nil && slices.Contains([]string{"session_meta", "response_item", "compacted", "turn_context", "event_msg"}, typ):
		d.report.other(typ)
	case payload == nil:
		return d.item(o, value, at)
	case typ == "session_meta":
		return d.sessionMeta(payload, at)
	case typ == "response_item":
		return d.item(payload, o["payload"], at)
	case typ == "compacted":
		d.compacted(payload, at)
	case typ == "turn_context":
		if model := payload.string("model"); model != "" {
			d.s.Model = model
		}
		d.report.other(typ)
	case typ == "event_msg":
		sub := payload.string("type")
		d.report.other("event_msg:" + sub)
		var turns int
		if sub == "thread_rolled_back" && json.Unmarshal(orNull(payload["num_turns"]), &turns) == nil {
			d.rollBack(turns)
		}
	default:
		d.report.other(typ)
	}
	return nil
}

func (d *codex) sessionMeta(o object, at time.Time) error {
	if d.meta { // that of the session this one was forked from
		d.report.other("session_meta")
		return nil
	}
	d.meta = true
	d.s.ID = o.takeString("id")
	instructions := o.takeString("instructions")
	if base := o.object("base_instructions"); instructions == "" && len(base) == 1 && base.string("text") != "" {
		delete(o, "base_instructions")
		instructions = base.string("text")
	}
	setExtra(&d.s.Extra, "codex", o.raw())
	if instructions == "" {
		d.report.other("session_meta")
		return nil
	}
	m := chat.Message{Role: chat.RoleSystem, Content: chat.TextContent(instructions), CreatedAt: at}
	d.items.groups = append(d.items.groups, itemGroup{Message: m, values: 1})
	d.report.Messages++
	return nil
}

func (d *codex) item(o object, raw json.RawMessage, at time.Time) error {
	if typ := o.string("type"); typ == "ghost_snapshot" || typ == "other" {
		d.report.other("response_item:" + typ)
		return nil
	}
	began, err := d.items.add(o, raw, at)
	switch {
	case err != nil:
		return fmt.Errorf("item: %w", err)
	case began:
		d.report.Messages++
	default:
		d.report.other("joined")
	}
	return nil
}

func (d *codex) compacted(o object, at time.Time) {
	summary := o.takeString("message")
	d.report.drop(o, "replacement_history")
	if summary == "" {
		d.report.other("compacted")
		return
	}
	m := chat.Message{Role: chat.RoleUser, Content: chat.TextContent(summary), CreatedAt: at}
	setExtra(&m.Extra, "is_compact_summary", isTrue)
	mergeExtra(&m, "codex", o)
	d.items.groups = append(d.items.groups, itemGroup{Message: m, values: 1})
	d.report.Messages++
}

// contextPrefixes begin what Codex itself says as the user: that is no turn.
var contextPrefixes = []string{"<environment_context>", "<user_instructions>", "# AGENTS.md"}

// rollBack takes out the last turns.
func (d *codex) rollBack(turns int) {
	gs := d.items.groups
	for ; d.seen < len(gs); d.seen++ {
		text := gs[d.seen].Content.String()
		if gs[d.seen].Role == chat.RoleUser && !slices.ContainsFunc(contextPrefixes, func(p string) bool { return strings.HasPrefix(text, p) }) {
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
		n += g.values + len(g.results)
		d.report.Messages -= 1 + len(g.results)
		count(&d.report.Other, "joined", 1-g.values)
		for _, c := range g.ToolCalls {
			if d.items.open[c.ID] >= at {
				delete(d.items.open, c.ID)
			}
		}
	}
	count(&d.report.Other, "abandoned", n)
	d.items.groups = gs[:at]
}

func (d *codex) end() []Session {
	d.s.Messages = d.items.messages()
	s := Session{Session: d.s, Report: d.report}
	return s.ended()
}

// encodeCodex writes the session's line, one with its model, and a line per item.
func encodeCodex(e *encoder, s chat.Session) error {
	ms := s.Messages
	meta := object(s.Extra).own("codex")
	e.sessionExtra(s, "codex")
	delete(meta, "id")
	if s.ID != "" {
		meta["id"] = rawjson.Quote(s.ID)
	}
	var at time.Time
	if len(ms) > 0 {
		at = ms[0].CreatedAt
	}
	if len(ms) > 0 && isInstructions(ms[0]) && ms[0].Content.String() != "" {
		e.envelope(&ms[0], "created_at")
		meta["base_instructions"] = object{"text": rawjson.Quote(ms[0].Content.String())}.raw()
		ms = ms[1:]
	}
	if err := e.rollout("session_meta", meta.raw(), at); err != nil {
		return err
	}
	if s.Model != "" {
		if err := e.rollout("turn_context", object{"model": rawjson.Quote(s.Model)}.raw(), at); err != nil {
			return err
		}
	}
	for len(ms) > 0 {
		n := slices.IndexFunc(ms, func(m chat.Message) bool { return m.Role == chat.RoleUser && flagged(&m, "is_compact_summary") })
		if n < 0 {
			n = len(ms)
		}
		err := e.encodeItems(ms[:n], []string{"created_at"}, func(item object, m *chat.Message) error {
			return e.rollout("response_item", item.raw(), m.CreatedAt)
		})
		if err != nil || n == len(ms) {
			return err
		}
		if err := e.compacted(&ms[n]); err != nil {
			return err
		}
		ms = ms[n+1:]
	}
	return nil
}

func (e *encoder) compacted(m *chat.Message) error {
	e.envelope(m, "created_at", "is_compact_summary", "codex")
	parts := m.Content.Parts
	if parts != nil && (len(parts) != 1 || !isPlain(parts[0])) || m.Content.String() == "" {
		e.lose("parts")
	}
	o := object(m.Extra).own("codex")
	o["message"] = rawjson.Quote(m.Content.String())
	return e.rollout("compacted", o.raw(), m.CreatedAt)
}

func (e *encoder) rollout(typ string, payload json.RawMessage, at time.Time) error {
	return e.line(build("timestamp", timestamp(at), "type", typ, "payload", orNull(payload)).done())
}

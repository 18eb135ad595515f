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

// codex reads a rollout file of Codex: lines {"timestamp", "type", "payload"}, or items
// alone as its first versions wrote them. The session's instructions are its system message.
// A compaction is a user message with the summary; turns that were rolled back are left out.
type codex struct {
	items  items
	s      chat.Session
	meta   bool
	turns  []int // indexes of the groups before seen that begin a turn
	seen   int
	report ReadReport
}

func newCodex() decoder { return &codex{} }

func (d *codex) add(value []byte) (*Session, error) {
	o, err := rawjson.ParseObject(value)
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
	typ := o.String("type")
	at := takeTime(o, "timestamp")
	d.items.at = at
	payload := o.Object("payload")
	switch {
	case payload == nil && typ == "" && o["record_type"] != nil:
		d.report.other("state")
	case payload == nil && typ == "" && o["id"] != nil && o["role"] == nil:
		if !at.IsZero() {
			o["timestamp"] = timestamp(at) // of the session, not of a line
		}
		d.sessionMeta(o)
	case payload == nil && typ == "" && o["role"] == nil:
		return errors.New("neither a line of a rollout (no type) nor an item of one")
	case payload == nil && slices.Contains([]string{"session_meta", "response_item", "compacted", "turn_context", "event_msg"}, typ):
		d.report.other(typ)
	case payload == nil:
		return d.item(o, value)
	case typ == "session_meta":
		d.sessionMeta(payload)
	case typ == "response_item":
		return d.item(payload, o["payload"])
	case typ == "compacted":
		d.compacted(payload)
	case typ == "turn_context":
		if model := payload.String("model"); model != "" {
			d.s.Model = model
		}
		d.report.other(typ)
	case typ == "event_msg":
		sub := payload.String("type")
		d.report.other("event_msg:" + sub)
		var turns int
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
	if typ := o.String("type"); typ == "ghost_snapshot" || typ == "other" {
		d.report.other("response_item:" + typ)
		return nil
	}
	began, err := d.items.add(o, raw)
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

func (d *codex) compacted(o object) {
	summary := o.TakeString("message")
	d.report.drop(o, "replacement_history")
	if summary == "" {
		d.report.other("compacted")
		return
	}
	m := chat.Message{Role: chat.RoleUser, Content: chat.TextContent(summary), CreatedAt: d.items.at}
	setFlag(&m, "is_compact_summary")
	mergeExtra(&m, "codex", o)
	d.items.begin(m)
	d.report.Messages++
}

// contextPrefixes begin the user messages that Codex itself writes; they are not turns.
var contextPrefixes = []string{"<environment_context>", "<user_instructions>", "# AGENTS.md"}

// rollBack removes the last turns.
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

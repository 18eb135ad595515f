package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// session is the session of a call.
type session struct {
	store.SessionRow
	count tokens.Counter
}

// open returns the session, or an error that names it, as a wrong one would have no hits either.
func (h *History) open(ctx context.Context) (*session, error) {
	row, err := h.Store.Session(ctx, h.Key)
	if err != nil {
		return nil, err
	}
	return &session{row, tokens.ForModel(row.Model)}, nil
}

// name returns the session as answers name it.
func (s *session) name() string {
	return fmt.Sprintf("session %q of tenant %q", clip(s.Session), clip(s.Tenant))
}

// cost returns the tokens of a part of an answer.
func (s *session) cost(v any) chat.Tokens {
	raw, _ := json.Marshal(v)
	return s.count.Text(string(raw))
}

// clip bounds a name that an application chose.
func clip(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "…"
}

// Answer has the fields that the answers of all tools have.
type Answer struct {
	Notice string `json:"notice"`
	Scope  string `json:"scope" jsonschema:"what was searched or read"`
	// LeftOut is "nothing" if the answer is whole.
	LeftOut string    `json:"left_out" jsonschema:"what is not in this answer, or nothing"`
	Next    *NextCall `json:"next,omitempty" jsonschema:"the call that goes on"`
}

// NextCall is a call of a tool.
type NextCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

func (s *session) answer(scope string, args ...any) Answer {
	return Answer{Notice: noticeOfData, Scope: fmt.Sprintf(scope, args...) + " of " + s.name(), LeftOut: "nothing"}
}

// Entry is a message of the session.
type Entry struct {
	Seq     chat.Seq    `json:"seq"`
	ID      string      `json:"id,omitempty"`
	Role    chat.Role   `json:"role"`
	Name    string      `json:"name,omitempty"`
	CallID  string      `json:"call_id,omitempty" jsonschema:"the call that a tool result answers"`
	Tokens  chat.Tokens `json:"tokens" jsonschema:"of the whole message"`
	InView  bool        `json:"in_context" jsonschema:"whether the message is in your context"`
	Run     int64       `json:"excluded_by,omitempty" jsonschema:"the compaction that took it out"`
	Summary string      `json:"summarized_by,omitempty" jsonschema:"the summary in its place"`
	At      *time.Time  `json:"created_at,omitempty"`
	Text    string      `json:"text"`
	Calls   []EntryCall `json:"calls,omitempty"`
	Missing string      `json:"missing,omitempty" jsonschema:"why the text is not here, or not all of it"`
}

// EntryCall is a call of a tool in a message.
type EntryCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// entry returns a message from a byte of its words on, as much of it as costs no more than a budget,
// and the byte where the rest begins, 0 for none. Words are the text and then the arguments of calls.
func (s *session) entry(m *store.Stored, from int, budget chat.Tokens) (e Entry, rest int) {
	text, size := m.Content.String(), 0
	whole := Entry{
		Seq: m.Seq, ID: clip(m.ID), Role: m.Role, Name: clip(m.Name), CallID: clip(m.ToolCallID), Tokens: m.Tokens, InView: m.Included,
		Run: m.ExcludedBy, Summary: clip(m.SummarizedBy),
	}
	if !m.CreatedAt.IsZero() {
		whole.At = &m.CreatedAt
	}
	size = len(text)
	for _, c := range m.ToolCalls {
		size += len(c.Arguments) + 1 // so that a call without arguments has a place, too
	}
	if m.Purged {
		whole.Missing = "its words are not stored any more, or are in an archive that cannot be read: `compactor doctor` says which"
	} else if n := m.Content.Media(); n > 0 {
		whole.Missing = fmt.Sprintf("%d images or files", n)
	}
	cut := func(to int) Entry {
		e := whole
		e.Text = part(text, from, to)
		at := len(text)
		for _, c := range m.ToolCalls {
			if at+len(c.Arguments) >= from && at < to {
				e.Calls = append(e.Calls, EntryCall{clip(c.ID), clip(c.Name), part(c.Arguments, from-at, to-at)})
			}
			at += len(c.Arguments) + 1
		}
		if from > 0 || to < size {
			e.Missing = strings.TrimPrefix(fmt.Sprintf("%s; bytes %d to %d of %d are here", whole.Missing, min(from, size), to, size), "; ")
		}
		return e
	}
	const bytesPerToken = 10 // hardly any text has more
	high := min(size, from+int(budget)*bytesPerToken)
	if e = cut(high); s.cost(e) <= budget {
		return e, after(high, size)
	}
	low := min(from+4, size) // at least a character, so that a reader goes on
	for low+1 < high {
		if middle := (low + high) / 2; s.cost(cut(middle)) <= budget {
			low = middle
		} else {
			high = middle
		}
	}
	return cut(low), after(low, size)
}

func after(at, size int) int {
	if at >= size {
		return 0
	}
	return at
}

// part returns a part of a text. Its bounds move back to the beginning of a character, so that parts
// behind one another are the whole.
func part(text string, from, to int) string {
	bound := func(at int) int {
		at = max(0, min(at, len(text)))
		for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
			at--
		}
		return at
	}
	from, to = bound(from), bound(to)
	return text[from:max(from, to)]
}

package chat

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Newer models bind signed and encrypted reasoning to everything before it: their providers
// reject it, or drop it, once that has changed. So the view holds such reasoning only where
// everything before it is as it was when the reasoning was written (I15). A change of the
// view takes away that of all messages after the change which existed then
// (StaleReasoning); the messages themselves stay. What precedes the reasoning of an open tool
// loop must not change, since a provider wants that reasoning back (OpenReasoning).
//
// Whether a message existed when the view changed is known, but not on which view it was
// written: an answer that is appended after a change counts as written on the new view.
// Reasoning that another model has signed is treated the same.

// ReasoningKeys are the keys of a message that hold reasoning: its text, structured reasoning
// as gateways send it, and the blocks and items of providers as hosts keep them. The SQL
// functions reasoning_keys and parse_messages have the same; a test compares them.
var ReasoningKeys = []string{
	"reasoning", "reasoning_content", "reasoning_text", "reasoning_details", "reasoning_items", "reasoning_opaque", "reasoning_signature",
	"thinking", "thinking_blocks", "thinking_signature", "redacted_thinking", "codex_reasoning_items", "encrypted_content", "thought_signature",
}

// signature matches a key that holds a signature or encrypted data, at any depth. The SQL
// function parse_messages has the same expression.
var signature = regexp.MustCompile(`"[A-Za-z_]*([sS]ignature|[eE]ncrypted_?[cC]ontent|[dD]ata|opaque|redacted_thinking)"[ \t\n\r]*:[ \t\n\r]*"[^"]`)

// reasoningFlags returns HasReasoning and PlainReasoning, as far as they apply.
func (m Message) reasoningFlags() Flags {
	var has, signed bool
	see := func(raw json.RawMessage) {
		has = true
		signed = signed || signature.Match(raw)
	}
	has = m.Reasoning != ""
	for _, key := range ReasoningKeys {
		if raw := m.Extra[key]; filled(raw) {
			see(slices.Concat([]byte(`"`+key+`":`), raw))
		}
	}
	for _, p := range m.Content.Parts {
		if p.IsReasoning() {
			see(p.Raw)
		}
	}
	switch {
	case !has:
		return 0
	case signed:
		return HasReasoning
	}
	return HasReasoning | PlainReasoning
}

// filled reports whether a raw value is a non-empty array, object or string.
func filled(raw json.RawMessage) bool {
	switch s := strings.TrimSpace(string(raw)); {
	case s == "", s == "null", s == `""`:
		return false
	case s[0] == '[' || s[0] == '{':
		return strings.TrimSpace(s[1:len(s)-1]) != ""
	default:
		return s[0] == '"'
	}
}

// WithoutReasoning returns the message without its reasoning. Content that held nothing else
// becomes null. m is not changed.
func (m Message) WithoutReasoning() Message {
	m.Reasoning, m.ReasoningKey = "", ""
	if slices.ContainsFunc(ReasoningKeys, func(key string) bool { return m.Extra[key] != nil }) {
		m.Extra = maps.Clone(m.Extra)
		for _, key := range ReasoningKeys {
			delete(m.Extra, key)
		}
	}
	if m.Content.Parts != nil {
		m.Content.Parts = slices.DeleteFunc(slices.Clone(m.Content.Parts), Part.IsReasoning)
		if len(m.Content.Parts) == 0 {
			m.Content = Content{Null: true}
		}
	}
	return m
}

// Signed reports whether the message holds reasoning that is signed or encrypted.
func (m *Meta) Signed() bool { return m.Flags&(HasReasoning|PlainReasoning) == HasReasoning }

// HoldsOnlyReasoning reports whether nothing is left of m without its reasoning, whatever its
// kind and place.
func (m *Meta) HoldsOnlyReasoning() bool {
	return m.Role == RoleAssistant && m.Calls == 0 && m.Flags&(HasText|HasReasoning|HasMedia) == HasReasoning
}

// WithoutReasoning returns the metadata of the message without its reasoning. ok is false if
// that leaves nothing, so that the message is not in the view.
func (m Meta) WithoutReasoning() (rest Meta, ok bool) {
	ok = !m.HoldsOnlyReasoning()
	m.Flags &^= HasReasoning | PlainReasoning
	m.Tokens -= m.ReasoningTokens
	m.ReasoningTokens = 0
	return m, ok
}

// StaleReasoning returns the messages whose reasoning leaves a view that has changed at
// position from: the signed messages at and after it. The ranges also hold messages
// without signed reasoning, so that they are few. metas may be in any order.
func StaleReasoning(metas []Meta, from Seq) Ranges {
	type signed struct {
		seq   Seq
		stale bool
	}
	var all []signed
	for i := range metas {
		if m := &metas[i]; m.Signed() {
			all = append(all, signed{m.Seq, m.Position >= from})
		}
	}
	slices.SortFunc(all, func(a, b signed) int { return cmp.Compare(a.seq, b.seq) })
	var out Ranges
	for i, m := range all {
		switch {
		case !m.stale:
		case i > 0 && all[i-1].stale:
			out[len(out)-1].Hi = m.seq + 1
		default:
			out = append(out, Range{m.seq, m.seq + 1})
		}
	}
	return out
}

// OpenReasoning returns the position of the last message with signed reasoning in the open
// tool loop of a view, 0 if there is none. A loop is open while the last message, results
// and reasoning aside, makes calls; it began with the last user message. The SQL function
// open_reasoning does the same.
func OpenReasoning(view []Meta) Seq {
	open, last := false, Seq(0)
	for i := range slices.Backward(view) {
		m := &view[i]
		open = open || isCall(m)
		asked := m.Role == RoleUser && (m.Kind != KindSummary || m.Has(Moved))
		if asked || !open && m.Role != RoleTool && !m.HoldsOnlyReasoning() {
			break
		}
		if last == 0 && m.Signed() {
			last = m.Position
		}
	}
	if !open {
		return 0
	}
	return last
}

// Past is a view of the past: the one on which the messages after Since were written, up
// to the Since of the next. Live is open-ended. Out are the messages without their signed
// reasoning.
type Past struct {
	Since     Seq
	Live, Out Ranges
}

// CheckReasoning returns the signed reasoning in a view that was written on another view
// than the one before it. log is the metadata of all messages as they were written, in view
// order; now is the view, past are all those that preceded it, in order.
func CheckReasoning(log []Meta, now Past, past []Past) []Violation {
	var out []Violation
	for k, then := range past {
		end := Open
		if k+1 < len(past) {
			end = past[k+1].Since
		}
		// The prefix differs for messages after differs, and for those before newest.
		differs, newest := Open, Seq(0)
		for i := range log {
			m := &log[i]
			is := now.shows(m)
			written := m.Seq > then.Since && m.Seq <= end
			if is == showsAll && m.Signed() && written && (differs < m.Seq || newest > m.Seq) {
				out = append(out, Violation{Index: i, Seq: m.Seq, Code: ViolationStaleReasoning})
			}
			if is != then.shows(m) {
				differs = min(differs, m.Seq)
			}
			if is != showsNothing {
				newest = max(newest, m.Seq)
			}
		}
	}
	slices.SortFunc(out, func(a, b Violation) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// The parts of a message that a view shows.
const (
	showsNothing = iota
	showsRest    // all but its reasoning
	showsAll
)

func (p Past) shows(m *Meta) int {
	switch {
	case !p.Live.Has(m.Seq):
		return showsNothing
	case !m.Signed() || !p.Out.Has(m.Seq):
		return showsAll
	case m.HoldsOnlyReasoning():
		return showsNothing
	}
	return showsRest
}

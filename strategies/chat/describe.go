package chat

import (
	"encoding/json"
	"strings"
	"unicode"
)

// Meta returns the metadata of m as the source message with number seq. The caller sets
// Tokens and the flags Paired (see Pairer and Describe) and Estimated.
func (m Message) Meta(seq Seq) Meta {
	return Meta{
		Seq: seq, Position: seq, Kind: KindSource, Role: m.Role,
		Flags: m.Flags(), Calls: len(m.ToolCalls),
	}
}

// Flags returns the flags that follow from the message alone: HasText, HasReasoning and
// HasMedia.
func (m Message) Flags() Flags {
	var f Flags
	if m.Content.hasText() {
		f |= HasText
	}
	if m.hasReasoning() {
		f |= HasReasoning
	}
	if m.Content.Media() > 0 {
		f |= HasMedia
	}
	return f
}

// CallIDs returns the ids of the message's tool calls, in order.
func (m Message) CallIDs() []string {
	if len(m.ToolCalls) == 0 {
		return nil
	}
	ids := make([]string, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		ids[i] = c.ID
	}
	return ids
}

// Describe returns the metadata of a whole history, numbered from 1 and with
// Paired set where a result answers its call. Tokens are zero.
func Describe(ms []Message) []Meta {
	var p Pairer
	out := make([]Meta, len(ms))
	for i := range ms {
		out[i] = p.Describe(&ms[i], Seq(i+1))
	}
	return out
}

func (c Content) hasText() bool {
	if c.Parts == nil {
		return !blank(c.Text)
	}
	for _, p := range c.Parts {
		if !blank(p.Text) {
			return true
		}
	}
	return false
}

func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsSpace(r) }) < 0
}

// hasReasoning reports whether the message has reasoning text, structured reasoning as some
// gateways send it in reasoning_details, or a content part that is reasoning.
func (m Message) hasReasoning() bool {
	if m.Reasoning != "" {
		return true
	}
	for _, key := range []string{"reasoning", "reasoning_content", "reasoning_details"} {
		if filled(m.Extra[key]) {
			return true
		}
	}
	for _, p := range m.Content.Parts {
		if p.IsReasoning() {
			return true
		}
	}
	return false
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

package chat

import (
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

// Flags returns the flags that follow from the message alone: HasText, HasReasoning,
// PlainReasoning and HasMedia.
func (m Message) Flags() Flags {
	f := m.reasoningFlags()
	if m.Content.hasText() {
		f |= HasText
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

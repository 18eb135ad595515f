package summary

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/str"
)

// stretch is messages that stay together in one prompt, with their size.
type stretch struct {
	messages []*chat.Message
	size     int
}

// stretches returns the groups of messages: a part of a conversation ends between two of them.
func stretches(messages []*chat.Message) []stretch {
	metas := make([]chat.Meta, len(messages))
	for i, m := range messages {
		metas[i] = m.Meta(chat.Seq(i + 1))
	}
	var out []stretch
	for _, g := range chat.Groups(metas) {
		s := stretch{messages: messages[g.Start:g.End]}
		for _, m := range s.messages {
			s.size += sizeOf(m)
		}
		out = append(out, s)
	}
	return out
}

// take is as many stretches from the front as have room, one at least. Where that one
// alone is too long, its messages are cut in the middle; cut is how many tokens went.
func take(all []stretch, room int) (messages []*chat.Message, rest []stretch, cut int) {
	n, size := 0, 0
	for n < len(all) && (n == 0 || size+all[n].size <= room) {
		size += all[n].size
		messages = append(messages, all[n].messages...)
		n++
	}
	if n == 1 && size > room {
		short := shortened(messages, room)
		return short.messages, all[1:], size - short.size
	}
	return messages, all[n:], 0
}

// shortened cuts the middle out of the longest messages until all have room.
func shortened(messages []*chat.Message, room int) stretch {
	// The most that every message may have is found by halving.
	lo, hi := 0, room*octetsPerToken
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if fitted(messages, mid).size <= room {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return fitted(messages, lo)
}

// fitted cuts texts and arguments to about so many octets each.
func fitted(messages []*chat.Message, octets int) stretch {
	out := stretch{messages: make([]*chat.Message, len(messages))}
	for i, m := range messages {
		c := *m
		if text := m.Content.String(); len(text) > octets {
			c.Content = chat.TextContent(middleOut(text, octets))
		}
		for k, call := range m.ToolCalls {
			if len(call.Arguments) <= octets {
				continue
			}
			if k == 0 || &c.ToolCalls[0] == &m.ToolCalls[0] {
				c.ToolCalls = append([]chat.ToolCall(nil), m.ToolCalls...)
			}
			c.ToolCalls[k].Arguments, c.ToolCalls[k].Raw = middleOut(call.Arguments, octets), nil
		}
		out.messages[i] = &c
		out.size += sizeOf(&c)
	}
	return out
}

// Clip returns messages whose texts and arguments have at most about limit bytes each: the
// middle of longer ones is cut out of a copy.
func Clip(messages []*chat.Message, limit int) []*chat.Message {
	return fitted(messages, limit).messages
}

// middleOut keeps the head and the tail of a text.
func middleOut(s string, octets int) string {
	if octets <= len(str.Gap)+8 {
		return ""
	}
	keep := (octets - len(str.Gap)) / 2
	head, tail := s[:keep], s[len(s)-keep:]
	// No half of a character at either end.
	return strings.ToValidUTF8(head, "") + str.Gap + strings.ToValidUTF8(tail, "")
}

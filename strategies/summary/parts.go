package summary

import (
	"sort"
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/internal/text"
)

// messageGroup holds messages that stay together in one prompt, and their tokens.
type messageGroup struct {
	messages []*chat.Message
	size     int
}

// messageGroups splits messages into groups; parts end between two of them.
func messageGroups(messages []*chat.Message) []messageGroup {
	var out []messageGroup
	for _, g := range groupsOf(messages) {
		part := messages[g.Start:g.End]
		out = append(out, messageGroup{part, messagesTokens(part)})
	}
	return out
}

func groupsOf(messages []*chat.Message) []chat.Group {
	metas := make([]chat.Meta, len(messages))
	for i, m := range messages {
		metas[i] = m.Meta(chat.Seq(i + 1))
	}
	return chat.Groups(metas)
}

// nextPart returns the messages of as many leading groups as fit into budget tokens, at
// least one, and the remaining groups. A single group that is too large has its messages
// shortened; cut is the number of tokens removed.
func nextPart(all []messageGroup, budget int) (messages []*chat.Message, rest []messageGroup, cut int) {
	n, size := 0, 0
	for n < len(all) && (n == 0 || size+all[n].size <= budget) {
		size += all[n].size
		messages = append(messages, all[n].messages...)
		n++
	}
	if n == 1 && size > budget {
		short := shortened(messages, budget)
		return short.messages, all[1:], size - short.size
	}
	return messages, all[n:], 0
}

// shortened cuts the middle out of the longest messages until all fit into budget tokens.
func shortened(messages []*chat.Message, budget int) messageGroup {
	limit := sort.Search(budget*bytesPerToken, func(n int) bool { return clip(messages, n+1).size > budget })
	return clip(messages, limit)
}

// clip cuts texts and arguments to about limit bytes each.
func clip(messages []*chat.Message, limit int) messageGroup {
	out := messageGroup{messages: make([]*chat.Message, len(messages))}
	for i, m := range messages {
		c := *m
		if text := m.Content.String(); len(text) > limit {
			c.Content = chat.TextContent(cutMiddle(text, limit))
		}
		for k, call := range m.ToolCalls {
			if len(call.Arguments) <= limit {
				continue
			}
			if k == 0 || &c.ToolCalls[0] == &m.ToolCalls[0] {
				c.ToolCalls = append([]chat.ToolCall(nil), m.ToolCalls...)
			}
			c.ToolCalls[k].Arguments, c.ToolCalls[k].Raw = cutMiddle(call.Arguments, limit), nil
		}
		out.messages[i] = &c
		out.size += messageTokens(&c)
	}
	return out
}

// Clip returns messages whose texts and arguments have at most about limit bytes each: the
// middle of longer ones is cut out of a copy.
func Clip(messages []*chat.Message, limit int) []*chat.Message {
	return clip(messages, limit).messages
}

// cutMiddle keeps the head and the tail of a text, about limit bytes in all.
func cutMiddle(s string, limit int) string {
	if limit <= len(text.Gap)+8 {
		return ""
	}
	keep := (limit - len(text.Gap)) / 2
	head, tail := s[:keep], s[len(s)-keep:]
	// Drop partial characters at the cuts.
	return strings.ToValidUTF8(head, "") + text.Gap + strings.ToValidUTF8(tail, "")
}

package summary

import (
	"slices"
	"sort"

	"github.com/sessionstore/compactor/strategies/chat"
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
	c := newClipper(messages)
	limit := sort.Search(budget*bytesPerToken, func(n int) bool { return c.clip(n+1).size > budget })
	return c.clip(limit)
}

// clipper shortens messages. kept are the lines of each that survive if there is room.
type clipper struct {
	messages []*chat.Message
	kept     [][][2]int
}

func newClipper(messages []*chat.Message) clipper {
	c := clipper{messages, make([][][2]int, len(messages))}
	for i, m := range messages {
		if m.Role == chat.RoleTool {
			c.kept[i] = failing(m.Content.String())
		}
	}
	return c
}

// clip cuts texts and arguments to about limit bytes each.
func (c clipper) clip(limit int) messageGroup {
	out := messageGroup{messages: make([]*chat.Message, len(c.messages))}
	for i, m := range c.messages {
		short := *m
		if text := m.Content.String(); len(text) > limit {
			short.Content = shownContent(cutMiddle(text, limit, c.kept[i]))
		}
		for k, call := range m.ToolCalls {
			if len(call.Arguments) <= limit {
				continue
			}
			if k == 0 || &short.ToolCalls[0] == &m.ToolCalls[0] {
				short.ToolCalls = slices.Clone(m.ToolCalls)
			}
			short.ToolCalls[k].Arguments, short.ToolCalls[k].Raw = cutMiddle(call.Arguments, limit, nil), nil
		}
		out.messages[i] = &short
		out.size += messageTokens(&short)
	}
	return out
}

// shownContent returns what is left of a text, null if that is nothing: a prompt distinguishes it
// from an empty text.
func shownContent(rest string) chat.Content {
	if rest == "" {
		return chat.Content{Null: true}
	}
	return chat.TextContent(rest)
}

// Clip returns messages whose texts and arguments have at most about limit bytes each: the
// middle of longer ones is cut out of a copy.
func Clip(messages []*chat.Message, limit int) []*chat.Message {
	return newClipper(messages).clip(limit).messages
}

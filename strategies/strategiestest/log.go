// Package strategiestest generates conversations on which tests and compactor bench run
// and measure strategies. It is not part of the product.
package strategiestest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// Characters is the length of each message of an Agent log.
const Characters = 200

// screen is a part with a small image.
var screen = json.RawMessage(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("QUJD", 1_000) + `"}}`)

// Log holds a conversation with its metadata, as a store does. It is safe for concurrent
// use.
type Log struct {
	messages []chat.Message
	entries  []plan.Entry
	tokens   chat.Tokens
	loaded   atomic.Int64
}

// Agent returns the log of an agent: n messages of Characters each. It begins with a
// system prompt; each turn has a user message (every tenth with an image), reasoning, two
// parallel tool calls with their results, another read of the same file, and an answer.
func Agent(n int) *Log {
	ms := make([]chat.Message, 0, n+8)
	fill := func(s string) string { return s + strings.Repeat("word ", Characters/5)[:Characters-len(s)] }
	text := func(r chat.Role, s string) chat.Message {
		return chat.Message{Role: r, Content: chat.TextContent(fill(s))}
	}
	call := func(ids ...string) chat.Message {
		m := chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}}
		for _, id := range ids {
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{
				ID: id, Type: "function", Name: "read_file",
				Arguments: fmt.Sprintf(`{"path":"src/%s.go","note":%q}`, id[:1], strings.Repeat("x", (Characters-40)/len(ids))),
			})
		}
		return m
	}
	result := func(id string, i int) chat.Message {
		return chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(fill(fmt.Sprintf("result %d: ", i)))}
	}
	ms = append(ms, text(chat.RoleSystem, "Be helpful. "))
	for i := 0; len(ms) < n; i++ {
		a, b, c := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i), fmt.Sprintf("c%d", i)
		question := text(chat.RoleUser, fmt.Sprintf("question %d: ", i))
		if i%10 == 0 {
			question.Content = chat.Content{Parts: []chat.Part{{Type: "text", Text: question.Content.Text}, {
				Type: "image_url", Raw: screen,
			}}}
		}
		ms = append(ms, question,
			chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, Reasoning: fill("")},
			call(a, b), result(a, i), result(b, i), call(c), result(c, i), text(chat.RoleAssistant, fmt.Sprintf("answer %d: ", i)))
	}
	return Of(ms[:n])
}

// Of returns a log of messages that are all included in the view.
func Of(ms []chat.Message) *Log {
	l := &Log{messages: ms, entries: make([]plan.Entry, len(ms))}
	for i, m := range chat.Describe(ms) {
		m.Tokens = tokens.Chars4{}.Message(&ms[i])
		l.tokens += m.Tokens
		l.entries[i] = plan.Entry{Meta: m, Included: true}
	}
	return l
}

// Transcript returns a new transcript of the log without content.
func (l *Log) Transcript() *plan.Transcript {
	return &plan.Transcript{Entries: l.entries, Counter: tokens.Chars4{}}
}

// Load returns the content of messages; pipelines call it.
func (l *Log) Load(_ context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
	out := make(map[chat.Seq]*chat.Message, len(seqs))
	n := 0
	for _, q := range seqs {
		m := &l.messages[q-1]
		out[q] = m
		n += contentBytes(m)
	}
	l.loaded.Add(int64(n))
	return out, nil
}

// Loaded returns the number of bytes of content that Load returned.
func (l *Log) Loaded() int64 { return l.loaded.Load() }

func contentBytes(m *chat.Message) int {
	n := len(m.Content.Text) + len(m.Reasoning)
	for _, p := range m.Content.Parts {
		n += len(p.Text) + len(p.Raw)
	}
	for _, c := range m.ToolCalls {
		n += len(c.Arguments)
	}
	return n
}

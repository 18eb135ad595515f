package backlog

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// writer writes the messages of one session.
type writer struct {
	*gen
	messages  []chat.Message
	number    int
	now       time.Time
	tokens    int
	window    int
	reasoning bool

	// system and turn are set by script.
	system func() string
	turn   func()
	// call makes one tool call with its result.
	call func() (chat.ToolCall, string)
}

// script chooses what the session is about.
func (w *writer) script(app, topic string) {
	if app == Coding {
		c := newCoding(w, topic)
		w.system, w.turn, w.call = c.system, c.task, c.step
		return
	}
	s := newSupport(w, topic)
	w.system, w.turn, w.call = s.system, s.turn, s.lookup
}

// add appends a message that comes after a pause of about so long.
func (w *writer) add(m chat.Message, pause time.Duration) {
	w.number++
	m.ID = fmt.Sprintf("m-%04d", w.number)
	w.now = w.now.Add(time.Millisecond + time.Duration(float64(pause)*(0.3+w.r.ExpFloat64())).Truncate(time.Millisecond))
	m.CreatedAt = w.now
	n := utf8.RuneCountInString(m.Content.Text) + utf8.RuneCountInString(m.Reasoning)
	for _, c := range m.ToolCalls {
		n += len(c.Name) + len(c.Arguments)
	}
	w.tokens += n/4 + 4
	w.messages = append(w.messages, m)
}

func (w *writer) user(text string) {
	w.add(chat.Message{Role: chat.RoleUser, Content: chat.TextContent(text)}, 4*time.Minute)
}

func (w *writer) assistant(text string) {
	w.add(chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(text)}, 4*time.Second)
}

// batch adds an assistant message that makes the calls, and their results.
func (w *writer) batch(n int, text, reasoning string) {
	calls, results := make([]chat.ToolCall, n), make([]string, n)
	for i := range n {
		for range 3 { // the same call twice at once is rare
			calls[i], results[i] = w.call()
			if i == 0 || calls[i].Name+calls[i].Arguments != calls[i-1].Name+calls[i-1].Arguments {
				break
			}
		}
	}
	w.calls(calls, text, reasoning)
	for i, c := range calls {
		w.result(c, results[i])
	}
}

func (w *writer) calls(calls []chat.ToolCall, text, reasoning string) {
	m := chat.Message{Role: chat.RoleAssistant, ToolCalls: calls, Content: chat.Content{Null: true}}
	if text != "" {
		m.Content = chat.TextContent(text)
	}
	if reasoning != "" {
		m.Reasoning, m.ReasoningKey = reasoning, "reasoning_content"
	}
	w.add(m, 3*time.Second)
}

func (w *writer) result(c chat.ToolCall, text string) {
	w.add(chat.Message{Role: chat.RoleTool, ToolCallID: c.ID, Content: chat.TextContent(text)}, 2*time.Second)
}

// defect leaves a mark that real logs have.
func (w *writer) defect(kind string) {
	call, result := w.call()
	if kind == AbandonedCall {
		w.calls([]chat.ToolCall{call}, "", "")
		w.user(w.line("user_interrupts"))
		w.assistant(w.line("assistant_resumes"))
		return
	}
	w.result(call, result)
	w.assistant(w.line("assistant_resumes"))
}

func (w *writer) toolCall(name, arguments string) chat.ToolCall {
	return chat.ToolCall{ID: w.fill("call_~id24~"), Type: "function", Name: name, Arguments: arguments}
}

// size is the length of one tool result in characters: mostly short, at most an
// eighth of the window.
func (w *writer) size(median int) int {
	n := float64(median) * math.Exp(0.8*w.r.NormFloat64())
	return int(min(n, float64(w.window)/8*4))
}

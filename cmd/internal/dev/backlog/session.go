package backlog

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/chat"
)

// writer generates the messages of one session.
type writer struct {
	r          *rand.Rand
	words      vocabulary
	app, topic string
	window     int // of the model; limits the length of one list
	// facts holds words fixed for a session, scope words fixed for one text, and subject
	// the scope of the current turns.
	facts, scope, subject map[string]string

	messages  []chat.Message
	number    int
	now       time.Time
	tokens    int
	reasoning bool
}

// newWriter returns the writer of a session of kind "app/topic", or of a random kind for "".
func newWriter(seed uint64, number int, kind string) *writer {
	w := &writer{words: vocabulary{}, facts: map[string]string{}, subject: map[string]string{}, now: time.Unix(0, 0).UTC()}
	w.r = rand.New(rand.NewPCG(seed, uint64(number))) //nolint:gosec // reproducible
	w.words.read("words")
	w.app, w.topic, _ = strings.Cut(cmp.Or(kind, w.pick("session")), "/")
	w.words.read(w.app)
	w.words.read(w.topic)
	w.renew("facts")
	w.focus()
	return w
}

// focus chooses the subject of the next turns, such as a file or a booking.
func (w *writer) focus() {
	w.scope = map[string]string{}
	w.fill(w.pick("subject"))
	w.subject = w.scope
	w.renew("focus")
}

// turn adds a question, tool calls and the answer.
func (w *writer) turn() {
	talk := w.pick("talk")
	if w.r.IntN(2) == 0 {
		w.focus()
	}
	if len(w.messages) > 1 && w.r.IntN(3) == 0 {
		talk = cmp.Or(w.pick("follow"), talk)
	}
	question, answer, _ := strings.Cut(talk, "\n>>\n")
	scope := maps.Clone(w.subject)
	w.scope = scope
	w.say(chat.RoleUser, w.fill(question), "")
	for range w.count("steps") {
		w.batch()
	}
	w.scope = scope
	w.say(chat.RoleAssistant, w.fill(answer), "")
}

func (w *writer) count(list string) int {
	n, _ := strconv.Atoi(w.pick(list))
	return n
}

// batch adds an assistant message with one or more distinct calls, and their results.
func (w *writer) batch() {
	m := chat.Message{Role: chat.RoleAssistant}
	results := map[string]string{}
	for range w.count("calls") {
		c, result := w.step()
		if _, twice := results[c.Name+c.Arguments]; !twice {
			m.ToolCalls = append(m.ToolCalls, c)
			results[c.Name+c.Arguments] = result
		}
	}
	if w.reasoning {
		m.Reasoning = w.line("thinking")
	}
	m.Content = chat.TextContent(w.line("saying"))
	w.add(m)
	for _, c := range m.ToolCalls {
		w.say(chat.RoleTool, results[c.Name+c.Arguments], c.ID)
	}
}

// step returns a tool call and its result. An entry of the list consists of the name of
// the tool, its arguments and its result.
func (w *writer) step() (chat.ToolCall, string) {
	w.renew("fresh")
	w.reset()
	call, result, _ := strings.Cut(w.pick("step"), "\n>>\n")
	name, arguments, _ := strings.Cut(call, "\n")
	return chat.ToolCall{ID: w.fill("call_~id24~"), Type: "function", Name: name, Arguments: w.fill(arguments)}, w.fill(result)
}

// defect adds a defect found in real logs.
func (w *writer) defect(kind string) {
	call, result := w.step()
	if kind == "abandoned_call" {
		w.add(chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{call}})
		w.say(chat.RoleUser, w.line("user_interrupts"), "")
	} else {
		w.say(chat.RoleTool, result, call.ID)
	}
	w.say(chat.RoleAssistant, w.line("assistant_resumes"), "")
}

func (w *writer) say(role chat.Role, text, call string) {
	w.add(chat.Message{Role: role, ToolCallID: call, Content: chat.TextContent(text)})
}

// add appends a message after a random pause, which is longer before user messages.
func (w *writer) add(m chat.Message) {
	pause := 3 * time.Second
	if m.Role == chat.RoleUser {
		pause = 4 * time.Minute
	}
	w.number++
	m.ID = fmt.Sprintf("m-%04d", w.number)
	w.now = w.now.Add(time.Millisecond + time.Duration(float64(pause)*(0.3+w.r.ExpFloat64())).Truncate(time.Millisecond))
	m.CreatedAt = w.now
	m.Content.Null = m.Content.Text == ""
	if m.Reasoning != "" {
		m.ReasoningKey = "reasoning_content"
	}
	n := utf8.RuneCountInString(m.Content.Text) + utf8.RuneCountInString(m.Reasoning)
	for _, c := range m.ToolCalls {
		n += len(c.Name) + len(c.Arguments)
	}
	w.tokens += n/4 + 4
	w.messages = append(w.messages, m)
}

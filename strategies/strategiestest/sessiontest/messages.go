package sessiontest

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Sys returns a system message; the functions below are short forms for tables too.
func Sys(s string) chat.Message { return Text(chat.RoleSystem, s) }

func User(s string) chat.Message { return Text(chat.RoleUser, s) }

func Says(s string) chat.Message { return Text(chat.RoleAssistant, s) }

func Text(r chat.Role, s string) chat.Message {
	return chat.Message{Role: r, Content: chat.TextContent(s)}
}

func Thinks(s string) chat.Message {
	return chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, Reasoning: s}
}

// Calls makes a call message; a name and an id of a call are both that id.
func Calls(ids ...string) chat.Message {
	m := chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}}
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: id, Type: "function", Name: "do_" + id, Arguments: "{}"})
	}
	return m
}

func Result(id, s string) chat.Message {
	return chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(s)}
}

// Call makes a call message of (id, name, arguments).
func Call(parts ...string) chat.Message {
	m := chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}}
	for i := 0; i < len(parts); i += 3 {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: parts[i], Type: "function", Name: parts[i+1], Arguments: parts[i+2]})
	}
	return m
}

// From gives a message a source.
func From(source string, m chat.Message) chat.Message {
	m.SourceID = source
	return m
}

func called(id, name, arguments string) chat.Message {
	m := Calls(id)
	m.ToolCalls[0].Name, m.ToolCalls[0].Arguments = name, arguments
	return m
}

func Workday() []chat.Message {
	return []chat.Message{
		Sys("be good"),
		User("fix the build"),
		Says("I will look"),
		called("1", "read_file", `{"path":"main.go"}`), Result("1", strings.Repeat("package main\n", 40)),
		called("2", "terminal", `{"command":"go build"}`), Result("2", "ok"),
		Says("it builds now"),
		User("now the tests"),
		called("3", "terminal", `{"command":"go test"}`), Result("3", "FAIL"),
		Says("two fail"),
		User("fix those too"),
		Says("on it"),
	}
}

// Talk has a system message, two tool calls and the last user message.
func Talk() []chat.Message {
	return []chat.Message{
		Sys("be good"),                       // 1
		User("first"),                        // 2
		Calls("a", "b"),                      // 3
		Result("a", "ra"), Result("b", "rb"), // 4, 5
		Says("done"), // 6
		User("next"), // 7
		Thinks("hm"), // 8
		Calls("c"),   // 9
		Result("c", " \x1crc"),
		Says("bye"), // 11
	}
}

func Texts(ms []chat.Message) []string {
	out := make([]string, len(ms))
	for i := range ms {
		out[i] = string(ms[i].AppendJSON(nil))
	}
	return out
}

package sessiontest

import (
	"strings"

	"github.com/sessionstore/compactor/strategies/chat"
)

// Sys returns a system message.
func Sys(s string) chat.Message { return Text(chat.RoleSystem, s) }

// User returns a user message.
func User(s string) chat.Message { return Text(chat.RoleUser, s) }

// Says returns an assistant message.
func Says(s string) chat.Message { return Text(chat.RoleAssistant, s) }

// Text returns a message with string content.
func Text(r chat.Role, s string) chat.Message {
	return chat.Message{Role: r, Content: chat.TextContent(s)}
}

// Thinks returns an assistant message with reasoning alone.
func Thinks(s string) chat.Message {
	return chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}, Reasoning: s}
}

// Calls returns an assistant message with calls of these ids to tools named after them.
func Calls(ids ...string) chat.Message {
	m := chat.Message{Role: chat.RoleAssistant, Content: chat.Content{Null: true}}
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: id, Type: "function", Name: "do_" + id, Arguments: "{}"})
	}
	return m
}

// Result returns the tool message that answers a call.
func Result(id, s string) chat.Message {
	return chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(s)}
}

func called(id, name, arguments string) chat.Message {
	m := Calls(id)
	m.ToolCalls[0].Name, m.ToolCalls[0].Arguments = name, arguments
	return m
}

// Workday returns a conversation in which files are read and commands run.
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

// Talk returns 11 messages with three tool calls. The last user message is 7.
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

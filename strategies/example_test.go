package strategies_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// Compact messages in memory with a built-in strategy.
func ExampleCompact() {
	s, err := builtin.Registry().New("truncation", plan.Params{"metric": "tokens", "max_n": 30, "compact_to": 25})
	if err != nil {
		fmt.Println(err)
		return
	}
	says := func(role chat.Role, text string) chat.Message {
		return chat.Message{Role: role, Content: chat.TextContent(text)}
	}
	got, err := strategies.Compact(context.Background(), []chat.Message{
		says(chat.RoleSystem, "You answer in one word."),
		says(chat.RoleUser, "What is the capital of France?"),
		says(chat.RoleAssistant, "Paris."),
		says(chat.RoleUser, "And that of Norway?"),
		says(chat.RoleAssistant, "Oslo."),
	}, s, strategies.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range got.Messages {
		fmt.Println(m.Role, m.Content.Text)
	}
	fmt.Println(got.Before.IncludedTokens, "→", got.After.IncludedTokens, "tokens")
	// Output:
	// system You answer in one word.
	// user And that of Norway?
	// assistant Oslo.
	// 40 → 23 tokens
}

// A tool loop keeps its history in a Conversation and compacts it once it has grown.
func ExampleConversation() {
	window, err := builtin.Registry().New("sliding_window", plan.Params{"keep_last_groups": 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := strategies.NewConversation(strategies.Options{})
	c.Append(chat.Message{Role: chat.RoleUser, Content: chat.TextContent("Read all the files.")})
	for i := range 5 {
		id := fmt.Sprint("call-", i)
		c.Append(
			chat.Message{Role: chat.RoleAssistant, ToolCalls: []chat.ToolCall{{ID: id, Name: "read", Arguments: "{}"}}},
			chat.Message{Role: chat.RoleTool, ToolCallID: id, Content: chat.TextContent(fmt.Sprint("file ", i))},
		)
		if _, size := c.Size(); size < 60 {
			continue
		}
		if _, err := c.Compact(context.Background(), window); err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, m := range c.View() {
		if m.Role != chat.RoleAssistant {
			fmt.Println(m.Content.Text)
		}
	}
	fmt.Println(len(c.Excluded()), "messages are excluded")
	// Output:
	// Read all the files.
	// file 3
	// file 4
	// 6 messages are excluded
}

// Build the pipeline of a policy, as the worker does. Without a model the summary is an
// extract of the conversation.
func ExampleBuild() {
	p := policy.Default()
	p.WindowTokens = 8000
	limits := p.Limits("my-model", nil)
	pipeline, _, err := strategies.Build(builtin.Registry(), p, limits, summary.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := strategies.NewConversation(strategies.Options{})
	for i := range 100 {
		question, answer := fmt.Sprintf("Question %d?", i), strings.Repeat("A long answer. ", 20)
		c.Append(
			chat.Message{Role: chat.RoleUser, Content: chat.TextContent(question)},
			chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent(answer)},
		)
		if _, size := c.Size(); !limits.Over(size) {
			continue
		}
		report, err := c.Compact(context.Background(), pipeline)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("within the target:", report.After.IncludedTokens <= limits.Target)
	}
	// Output:
	// within the target: true
}

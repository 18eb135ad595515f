package store_test

import (
	"context"
	"log"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// An application that compacts on the way to the model and back, with its history in
// the store: the preset "chat".
func ExampleStore_History() {
	ctx := context.Background()
	st, err := store.Open(ctx, store.Config{URL: "postgres://localhost/app"})
	if err != nil {
		log.Print(err)
		return
	}
	defer st.Close()
	registry := strategies.Builtin()
	before, err := registry.New("sliding_window", plan.Params{"keep_last_groups": 20})
	if err != nil {
		log.Print(err)
		return
	}
	after, err := registry.New("tool_result", plan.Params{"keep_last_tool_call_groups": 1})
	if err != nil {
		log.Print(err)
		return
	}
	provider, err := strategies.NewProvider(strategies.ProviderConfig{
		Sources: []strategies.Source{strategies.NewSource("chat", st.History(store.Key{Session: "chat-42"}, "gpt-4o", "app"))},
		Before:  before, After: after,
	})
	if err != nil {
		log.Print(err)
		return
	}
	question := chat.Message{Role: chat.RoleUser, Content: chat.TextContent("And now?")}
	prompt, err := provider.Read(ctx, question)
	if err != nil {
		log.Print(err)
		return
	}
	answer := ask(prompt.Messages)
	if _, err := provider.Write(ctx, strategies.Exchange{Inputs: []chat.Message{question}, Outputs: answer}); err != nil {
		log.Print(err)
	}
}

// ask stands for the call of a model.
func ask([]chat.Message) []chat.Message { return nil }

package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/agent"
	"github.com/sessionstore/compactor/strategies/builtin"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/plan"
)

// An application appends the messages of a conversation and sends the view to its model.
// TestExamples runs it on a fresh database.
func ExampleStore_View() {
	ctx := context.Background()
	st, err := store.Open(ctx, store.Config{URL: os.Getenv("DATABASE_URL")})
	if err != nil {
		log.Print(err)
		return
	}
	defer st.Close()
	key := store.Key{Session: "chat-1"}
	seqs, _, err := st.Append(ctx, key, "gpt-4o", []store.NewMessage{
		{Message: chat.Message{ID: "m1", Role: chat.RoleUser, Content: chat.TextContent("Hello")}},
		{Message: chat.Message{ID: "m2", Role: chat.RoleAssistant, Content: chat.TextContent("Hi.")}},
	})
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("appended", seqs)
	view, revision, err := st.View(ctx, key)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("revision", revision)
	for _, m := range view {
		body, err := json.Marshal(m.Body()) // as strict providers refuse id and created_at
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(m.ID, string(body))
	}
}

// An application compacts before and after each call of the model, with its history in
// the store: the preset "chat". TestExamples runs it on a fresh database.
func ExampleStore_History() {
	ctx := context.Background()
	st, err := store.Open(ctx, store.Config{URL: os.Getenv("DATABASE_URL")})
	if err != nil {
		log.Print(err)
		return
	}
	defer st.Close()
	registry := builtin.Registry()
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
	history := st.History(store.Key{Session: "chat-42"}, "gpt-4o", "app")
	provider, err := agent.NewProvider(agent.ProviderConfig{
		Sources: []agent.Source{agent.NewSource("chat", history)},
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
	answer := callModel(prompt.Messages)
	if _, err := provider.Write(ctx, agent.Exchange{Inputs: []chat.Message{question}, Outputs: answer}); err != nil {
		log.Print(err)
		return
	}
	stored, err := history.Load(ctx, false)
	if err != nil {
		log.Print(err)
		return
	}
	for _, r := range stored.Records {
		fmt.Println(r.Seq, r.Message.Role)
	}
}

// callModel stands for the request to a model.
func callModel([]chat.Message) []chat.Message {
	return []chat.Message{{Role: chat.RoleAssistant, Content: chat.TextContent("Now we are done.")}}
}

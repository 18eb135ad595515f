// Command go is an application that appends to a session, reads its view and asks
// for a compaction.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

func run(ctx context.Context) error {
	db, err := store.Open(ctx, store.Config{URL: os.Getenv("DATABASE_URL")})
	if err != nil {
		return err
	}
	defer db.Close()
	session := store.Key{Session: "support-4711"}
	if _, _, err = db.Append(ctx, session, "gpt-4o", []store.NewMessage{
		{Message: chat.Message{ID: "m1", Role: chat.RoleUser, Content: chat.TextContent("Where is my order?")}},
		{Message: chat.Message{ID: "m2", Role: chat.RoleAssistant, Content: chat.TextContent("On its way.")}},
	}); err != nil {
		return err
	}
	view, _, err := db.View(ctx, session)
	if err != nil {
		return err
	}
	prompt := make([]chat.Message, len(view))
	for i, m := range view {
		prompt[i] = m.Body() // strict providers refuse id and created_at
	}
	body, err := json.Marshal(prompt)
	if err != nil {
		return err
	}
	fmt.Println("prompt:", string(body))
	asked, err := db.Request(ctx, session, store.TriggerApplication, "example", store.Options{})
	fmt.Println("run:", asked)
	return err
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

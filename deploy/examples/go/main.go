// Command go is an application that appends to a session, reads its view and asks
// for a compaction.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

func main() {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Config{URL: os.Getenv("DATABASE_URL")})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	session := store.Key{Session: "support-4711"}
	_, _, err = db.Append(ctx, session, "gpt-4o", []store.NewMessage{
		{Message: chat.Message{ID: "m1", Role: chat.RoleUser, Content: chat.TextContent("Where is my order?")}},
		{Message: chat.Message{ID: "m2", Role: chat.RoleAssistant, Content: chat.TextContent("On its way.")}},
	})
	if err != nil {
		log.Fatal(err)
	}
	view, _, err := db.View(ctx, session)
	fmt.Println("prompt:", view, err)
	run, err := db.Request(ctx, session, store.TriggerApplication, "example", store.Options{})
	fmt.Println("run:", run, err)
}

package cli

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

func TestEraseAsksAndTells(t *testing.T) {
	t.Parallel()
	db := compacted(t)
	id := decode[struct{ Messages []struct{ ID string } }](t, invoke(t, db, "view", "chat-0", "--full", "--json").want(t, 0)).Messages[0].ID
	golden(t, "erase_dry_run", invoke(t, db, "erase", "message", "chat-0", id, "--note", "request 8", "--dry-run").want(t, 0).stdout)
	invoke(t, db, "erase", "message", "chat-0", id, "--dry-run").want(t, exitUsage, "--note")
	invoke(t, db, "erase", "message", "chat-0", id, "--note", "request 8").want(t, exitUsage, "standard input is not a terminal", "--yes")
	invoke(t, db, "erase", "message", "chat-0", "none", "--note", "request 8", "--yes").want(t, exitNotFound, "no source message 'none'")
	no := &Env{Environ: db, Stdin: strings.NewReader("n\n"), asks: true}
	invokeWith(t, no, "erase", "session", "chat-1", "--note", "request 9").want(t, 0, "Erase them for good? [y/N]", "nothing was changed")
	invoke(t, db, "erase", "list").want(t, 0, "no erasures of tenant default")

	golden(t, "erase_message", invoke(t, db, "erase", "message", "chat-0", id, "--note", "request 8", "--yes").want(t, 0).stdout)
	invoke(t, db, "erase", "session", "chat-1", "--note", "request 9", "--yes").want(t, 0, "erased: 49 messages")
	invoke(t, db, "view", "chat-1", "--full").want(t, 0, "[erased]")
	golden(t, "erase_tenant", invoke(t, db, "erase", "tenant", "--note", "contract ended").want(t, 0).stdout)
	golden(t, "erase_list", scrubBulk(scrubTimes(invoke(t, db, "erase", "list").want(t, 0).stdout)))
	invoke(t, db, "erase", "confirm", "8", "--tenant", "other", "--yes").want(t, exitNotFound, "there is no erasure 8 of tenant other")
	invokeWith(t, &Env{Environ: db, Stdin: strings.NewReader("n\n"), asks: true}, "erase", "confirm", "8").
		want(t, 0, "Erase the 3 sessions with 147 messages of tenant default for good? [y/N]", "nothing was changed")
	st, err := store.Open(t.Context(), store.Config{URL: strings.TrimPrefix(db[0], "DATABASE_URL=")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Admin.ConfirmErasure(t.Context(), 8, "default", "ada"); err != nil { // and then it dies
		t.Fatal(err)
	}
	invoke(t, db, "doctor").want(t, 0, "of tenant default has not ended", "compactor erase confirm 8 --tenant default")
	done := decode[store.Erasure](t, invoke(t, db, "erase", "confirm", "8", "--yes", "--json").want(t, 0))
	if done.Sessions != 3 || done.EndedAt.IsZero() || done.Messages != 97 {
		t.Errorf("%+v", done)
	}
	invoke(t, db, "erase", "confirm", "8", "--yes").want(t, exitRefused, "erasure 8 has ended")
	invoke(t, db, "doctor").want(t, 0)
}

func TestEraseNamesWhatTheApplicationStoredAfterTheWords(t *testing.T) {
	t.Parallel()
	db := compacted(t)
	st, err := store.Open(t.Context(), store.Config{URL: strings.TrimPrefix(db[0], "DATABASE_URL=")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	k := store.Key{Session: "said"}
	say := func(id, text string) store.NewMessage {
		return store.NewMessage{Message: chat.Message{ID: id, Role: chat.RoleUser, Content: chat.TextContent(text)}}
	}
	if _, _, err := st.Append(t.Context(), k, "", []store.NewMessage{say("m1", "my number is 4711"), say("m2", "and what is it?")}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Replace(t.Context(), k, 0, []store.NewMessage{say("s1", "He said: my number is 4711."), say("s2", "He gave a number."), say("m2", "and what is it?")}, ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := st.Append(t.Context(), k, "", []store.NewMessage{say("m3", "as I said, my number is 4711")}); err != nil {
		t.Fatal(err)
	}
	lines := []string{
		"message s1 of session said: would be erased too, as", "message s2 of session said: would be left, as the application stored it", "message m3 of session said: would be left, as words of them stand in it",
	}
	invoke(t, db, "erase", "message", "said", "m1", "--note", "x", "--dry-run").want(t, 0, append(lines, "would erase: 2 messages, 0 summaries")...)
	dry := invoke(t, db, "erase", "message", "said", "m1", "--note", "x", "--dry-run", "--json").want(t, 0, `"dry_run": true`, `"would_erase": {`)
	for _, done := range []string{"erased", "confirmed", "ended_at", `"id"`} {
		if strings.Contains(dry.stdout, done) {
			t.Errorf("a dry run says %s: %s", done, dry.stdout)
		}
	}
	preview := decode[struct{ Preview store.Erasure }](t, dry).Preview
	if len(preview.Repeats) != 3 {
		t.Errorf("%+v", preview)
	}
	invoke(t, db, "erase", "message", "said", "m1", "--note", "x", "--yes").want(t, 0, append(lines, "erased: 2 messages", "left: 2 messages that hold words of them, or may")...)
	if got := invoke(t, db, "view", "said", "--full").want(t, 0); strings.Count(got.stdout, "4711") != 1 {
		t.Errorf("%s", got.stdout)
	}
	invoke(t, db, "erase", "list", "--json").want(t, 0, `"message": "s2"`)
}

package cli

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
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
	if _, err := st.ConfirmErasure(t.Context(), 8, "default", "ada"); err != nil { // and then it dies
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

package store

import (
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/chat"
)

// A message that is imported without a time has none, wherever it is read, and what has to act at
// some time takes that of the import. A message that is appended without one is as old as that.
func TestImportsInventNoTimes(t *testing.T) {
	s, k := freshSession(t)
	said := time.Date(2024, 5, 15, 12, 0, 0, 0, time.UTC)
	dated := user("m2", "b")
	dated.CreatedAt = said
	must2(s.Import(t.Context(), k, "", []NewMessage{user("m1", "a"), dated, assistant("m3", "c")}))(t)
	must2(s.Import(t.Context(), k, "", []NewMessage{user("m4", "d")}))(t) // one alone, by the other way
	add(t, s, k, assistant("m5", "e"))
	add(t, s, k, user("m6", "f"), assistant("m7", "g"))

	check := func(what string, k Key, at func(seq chat.Seq) time.Time) {
		t.Helper()
		for seq, want := range map[chat.Seq]bool{1: true, 2: false, 3: true, 4: true, 5: false, 6: false, 7: false} {
			got := at(seq)
			if got.IsZero() != want || seq == 2 && !got.Equal(said) || seq > 4 && time.Since(got) > time.Hour {
				t.Errorf("%s of %s, message %d: %s", what, k.Session, seq, got)
			}
		}
	}
	all := func(k Key) {
		t.Helper()
		view, _, err := s.View(t.Context(), k)
		noError(t, err)
		check("view", k, func(seq chat.Seq) time.Time { return view[seq-1].CreatedAt })
		log := must(s.All(t.Context(), k))(t)
		check("log", k, func(seq chat.Seq) time.Time { return log[seq-1].CreatedAt })
		sid := one[int64](t, s, `SELECT sid FROM compactor.sessions WHERE id = $1`, k.Session)
		read := must(s.Worker.Messages(t.Context(), sid, []chat.Seq{1, 2, 3, 4, 5, 6, 7}))(t)
		check("content", k, func(seq chat.Seq) time.Time { return read[seq].CreatedAt })
		for _, from := range []string{`compactor.view('default', $1)`, `compactor.messages WHERE session = $1`} {
			if got := one[string](t, s, `SELECT string_agg((created_at IS NULL)::text, ' ' ORDER BY seq) FROM `+from, k.Session); got != "true false true true false false false" {
				t.Errorf("%s of %s has no time: %s", from, k.Session, got)
			}
		}
	}
	all(k)
	if idle := one[time.Duration](t, s, `SELECT now() - last_message_at FROM compactor.sessions`); idle > time.Hour {
		t.Errorf("idle for %s", idle)
	}
	fork := Key{Session: "fork"}
	must(s.Fork(t.Context(), k, fork.Session, ""))(t)
	all(fork)
	must(s.Admin.Erase(t.Context(), k, []string{"m1", "m2"}, "note", "o", false))(t)
	all(k)
	wantConsistent(t, s)
}

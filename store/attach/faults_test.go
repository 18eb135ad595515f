package attach_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/attach"
	"github.com/sessionstore/compactor/store/storetest"
)

// calls is a table with calls and results.
func callsWorld(t *testing.T, mode string) *world {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id serial PRIMARY KEY, chat text NOT NULL, sender text NOT NULL, body text NOT NULL, calls jsonb, answers text)`)
	s := generic
	s.Time, s.ToolCalls, s.ToolCallID, s.OnDelete = "", "calls", "answers", mode
	w.attach(s)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'system', 'be kind'), ('c', 'human', 'question')`)
	w.exec(`INSERT INTO messages (chat, sender, body, calls) VALUES ('c', 'bot', '', '[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]')`)
	w.exec(`INSERT INTO messages (chat, sender, body, answers) VALUES ('c', 'tool', 'result a', 'a'), ('c', 'tool', 'result b', 'b')`)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'bot', 'answer')`)
	w.drain()
	return w
}

// A call that is erased by an operator leaves no result without its call in the view.
func TestAnErasedCallLeavesNoOrphan(t *testing.T) {
	w := callsWorld(t, attach.Exclude)
	if _, err := w.st.Admin.Erase(t.Context(), store.Key{Session: "messages:c"}, []string{"3#1@1"}, "asked for", "", false); err != nil {
		t.Fatal(err)
	}
	got := w.rows(seen, "c")
	call, result := false, false
	for _, r := range got {
		call = call || strings.HasPrefix(r, "3 ")
		result = result || strings.HasPrefix(r, "4 ")
	}
	if result && !call {
		t.Error("results without their call")
	}
}

// The words of forks are erased, too.
func TestEraseReachesForks(t *testing.T) {
	w := some(t, 4, attach.Erase)
	w.exec(`SELECT compactor.fork('', 'messages:c', 'copy')`)
	w.exec(`DELETE FROM messages WHERE id = 2`)
	w.drain()
	w.want([]string{"0"}, bodies, "text 2")
}

// An archived session can be read through the view, and drained.
func TestArchivedSessions(t *testing.T) {
	for _, mode := range []string{attach.Exclude, attach.Erase} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			w.exec(chats)
			w.exec(`INSERT INTO messages (chat, sender, body, at) SELECT 'c', CASE i % 2 WHEN 1 THEN 'human' ELSE 'bot' END, 'text ' || i, now() - interval '90 days' FROM generate_series(1, 40) i`)
			s := generic
			s.OnDelete = mode
			w.attach(s)
			w.drain()
			w.exec(`DELETE FROM messages WHERE id BETWEEN 5 AND 30`)
			if mode == attach.Exclude {
				w.drain()
			} else {
				w.exec(`SELECT compactor.exclude('', 'messages:c', array(SELECT i || '#1@1' FROM generate_series(5, 30) i))`)
			}
			w.exec(`SET session_replication_role = replica; UPDATE compactor.runs SET ended_at = ended_at - interval '90 days', started_at = started_at - interval '90 days'; UPDATE compactor.sessions SET restored_at = NULL, view_changed_at = now() - interval '90 days'; SET session_replication_role = origin`)
			if stats, err := w.st.Admin.ArchiveSession(t.Context(), store.Key{Session: "messages:c"}, time.Minute); err != nil || stats.Messages == 0 {
				t.Fatalf("%+v %v", stats, err)
			}
			w.once("c")
			if err := w.drained(); err != nil {
				t.Error(err)
			}
			w.exec(`INSERT INTO messages (id, chat, sender, body) VALUES (6, 'c', 'bot', 'text 6')`)
			if err := w.drained(); err != nil {
				t.Error(err)
			}
			w.once("c")
			w.exec(`DELETE FROM messages WHERE chat = 'c'`)
			if err := w.drained(); err != nil {
				t.Error(err)
			}
			w.once("c")
			if mode == attach.Erase {
				w.want([]string{"0"}, bodies, "text")
			}
		})
	}
}

// A worker's login drains what an owner of the table attached, who is an operator, as the page says.
func TestLoginsOfWorkersAttachAndDrain(t *testing.T) {
	w := newWorld(t)
	dsn := w.app.Config().ConnString()
	if _, _, err := migrations.CreateRoles(t.Context(), dsn, "compactor"); err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(t.Context(), dsn, "compactor"); err != nil {
		t.Fatal(err)
	}
	owner, ownerDSN := storetest.Login(t, dsn, "compactor_worker")
	_, workerDSN := storetest.Login(t, dsn, "compactor_worker")
	w.exec(`DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO ` + owner + `', current_database()); END $$; GRANT CREATE ON SCHEMA public TO ` + owner)
	t.Cleanup(func() {
		_, _ = w.app.Exec(storetest.Context(t), `DROP OWNED BY `+owner+` CASCADE`)
	})
	w.exec(`SET ROLE ` + owner)
	w.exec(chats)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'one'), ('c', 'bot', 'two'), ('c', 'human', 'three')`)
	w.exec(`RESET ROLE`)
	st, err := store.Open(t.Context(), store.Config{URL: ownerDSN})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all := w.st
	w.st = st
	s := generic
	s.OnDelete = attach.Erase
	w.attach(s)
	worker, err := store.Open(t.Context(), store.Config{URL: workerDSN})
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	d := attach.NewDrainer(worker)
	drain := func() {
		t.Helper()
		if _, err := d.Drain(t.Context()); err != nil {
			t.Error("worker's drain:", err)
		}
	}
	drain()
	w.once("c")
	w.exec(`UPDATE messages SET body = 'edited' WHERE id = 2`)
	drain()
	w.exec(`DELETE FROM messages WHERE id = 1`)
	drain()
	w.want([]string{"0"}, `SELECT count(*) FROM compactor_messages.notes`)
	w.once("c")
	if n, first, err := w.att.Check(t.Context(), 5, true); err != nil || n > 0 {
		t.Error(n, first, err)
	}
	for name, st := range map[string]*store.Store{"worker": worker, "superuser": all} {
		a, err := attach.Get(t.Context(), st, "messages")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.Check(t.Context(), 5, true); err != nil {
			t.Error(name, "check:", err)
		}
		if _, err := a.Status(t.Context()); err != nil {
			t.Error(name, "status:", err)
		}
	}
	// What an application's login reads once a row has changed in the view is tried in package cli.
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Error("detach:", err)
	}
}

// Row-level security that is switched on later is not heeded by the view, which the status says.
func TestRowLevelSecurityThatComesLater(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	for _, on := range []bool{false, true} {
		if on {
			w.exec(`ALTER TABLE messages ENABLE ROW LEVEL SECURITY`)
		}
		if s, err := w.att.Status(t.Context()); err != nil || s.Fenced != on {
			t.Errorf("%+v %v, want %t", s, err, on)
		}
	}
}

// Another schema of the product, and a table in a schema with capitals and a dot.
func TestOtherSchemas(t *testing.T) {
	w := newWorld(t)
	dsn := w.app.Config().ConnString()
	if _, err := migrations.Up(t.Context(), dsn, "memory"); err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), store.Config{URL: dsn, Schema: "memory"})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	w.st = st
	w.exec(`CREATE SCHEMA "My App"; CREATE TABLE "My App"."Chat Messages" (id bigserial PRIMARY KEY, "Chat ID" uuid NOT NULL, "Role" text NOT NULL, "The Text" text NOT NULL)`)
	w.attach(attach.Spec{Table: "My App.Chat Messages", Session: "Chat ID", Role: "Role", Content: "The Text", OnDelete: attach.Erase})
	const insert = `INSERT INTO "My App"."Chat Messages" ("Chat ID", "Role", "The Text") VALUES ('7d8c1b9e-0000-4000-8000-000000000001', 'user', $1)`
	w.exec(insert, "one")
	w.drain()
	w.exec(insert, "two")
	w.drain()
	w.exec(`UPDATE "My App"."Chat Messages" SET "The Text" = 'edited' WHERE id = 1`)
	w.exec(`DELETE FROM "My App"."Chat Messages" WHERE id = 2`)
	w.drain()
	w.want([]string{"1 edited"}, `SELECT id, "The Text" FROM memory_chat_messages."Chat Messages" ORDER BY id`)
	w.whole()
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	w.exec(`CREATE SCHEMA "a.b"; CREATE TABLE "a.b".t (id bigserial PRIMARY KEY, chat text NOT NULL, role text NOT NULL, content text NOT NULL); SET search_path = "a.b"`)
}

// Keys with # and @, sessions with / and :, names that are prefixes.
func TestOddKeysAndSessions(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id text PRIMARY KEY, chat text NOT NULL, sender text NOT NULL, body text NOT NULL)`)
	w.exec(`CREATE TABLE "messages_a" (LIKE messages INCLUDING ALL)`)
	s := generic
	s.Time = ""
	w.attach(s)
	first := w.att
	s.Table = "public.messages_a"
	w.attach(s)
	second := w.att
	for i, chat := range []string{"c", "c:d", "c/d", "", " ", "ü€", "a#1@1", strings.Repeat("x", 300)} {
		for j, key := range []string{"k", "k#1@1", "k#1", "@", "", "'"} {
			w.exec(`INSERT INTO messages VALUES ($1, $2, 'human', 'one')`, fmt.Sprintf("%s%d-%d", key, i, j), chat)
			w.exec(`INSERT INTO messages_a VALUES ($1, $2, 'human', 'one')`, fmt.Sprintf("%s%d-%d", key, i, j), chat)
		}
		w.att = first
		w.drain()
		w.once(chat)
		w.att = second
		w.drain()
	}
	w.att = first
	w.whole()
	d := attach.NewDrainer(w.st)
	for _, k := range []string{"messages:c:d", "messages_a:c", "messages:", "messages:not there"} {
		if ok, err := d.DrainKey(t.Context(), store.Key{Session: k}); !ok || err != nil {
			t.Error(k, ok, err)
		}
	}
}

// A session of the log whose id is no session of the table, such as a fork, is refreshed without an error.
func TestASessionThatIsNotOfTheTable(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id serial PRIMARY KEY, chat int NOT NULL, sender text NOT NULL, body text NOT NULL)`)
	s := generic
	s.Time = ""
	w.attach(s)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES (1, 'human', 'one')`)
	w.drain()
	w.exec(`SELECT compactor.fork('', 'messages:1', 'messages:1-copy')`)
	if _, err := attach.NewDrainer(w.st).DrainKey(t.Context(), store.Key{Session: "messages:1-copy"}); err != nil {
		t.Error(err)
	}
}

// The first touch of a session races with its writers.
func TestFirstTouchRacesWithWriters(t *testing.T) {
	w := newWorld(t)
	w.exec(chats)
	w.exec(`INSERT INTO messages (chat, sender, body) SELECT 'c' || i % 20, 'human', 'text ' || i FROM generate_series(1, 2000) i`)
	w.attach(generic)
	var wg sync.WaitGroup
	for n := range 2 {
		c := w.connect()
		wg.Go(func() {
			for i := range 200 {
				_, err := c.Exec(t.Context(), `INSERT INTO messages (chat, sender, body) VALUES ($1, 'human', 'new')`, fmt.Sprint("c", (i+n)%20))
				if err == nil {
					_, err = c.Exec(t.Context(), `UPDATE messages SET body = body || '!' WHERE id = $1`, i*7+n+1)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 20 {
				if _, _, err := w.att.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 60 {
		chat := fmt.Sprint("c", i%20)
		w.want(nil, `WITH t AS (SELECT id FROM messages WHERE chat = $1), v AS (SELECT id FROM compactor_messages.messages WHERE chat = $1)
			(SELECT id, 'missing' FROM t EXCEPT SELECT id, 'missing' FROM v) UNION ALL SELECT id, 'twice' FROM v GROUP BY id HAVING count(*) > 1`, chat)
	}
	wg.Wait()
	w.drain()
	w.drain()
	for i := range 20 {
		w.once(fmt.Sprint("c", i))
	}
	w.whole()
}

func TestPinnedRows(t *testing.T) {
	w := some(t, 4, attach.Exclude)
	w.exec(`SELECT compactor.pin('', 'messages:c', '{2#1@1}'::text[])`)
	w.exec(`UPDATE messages SET body = 'edited' WHERE id = 2`)
	w.drain()
	w.once("c")
	w.want([]string{"2#1@2"}, `SELECT m.id FROM compactor.sessions s JOIN compactor.message_log m ON m.sid = s.sid AND s.pinned @> m.seq`)
}

// All of it through PgBouncer in transaction mode.
func TestPgBouncer(t *testing.T) {
	w := newWorld(t)
	w.exec(chats)
	w.exec(`INSERT INTO messages (chat, sender, body) SELECT 'c' || i % 10, 'human', 'text ' || i FROM generate_series(1, 200) i`)
	st, err := store.Open(t.Context(), store.Config{URL: storetest.PgBouncer(t, w.app.Config().ConnString())})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	w.st = st
	s := generic
	s.OnDelete = attach.Erase
	w.attach(s)
	w.drain()
	w.exec(`UPDATE messages SET body = body || '!' WHERE id % 3 = 0; DELETE FROM messages WHERE id % 7 = 0`)
	w.drain()
	w.once("c1")
	w.whole()
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Error(err)
	}
}

// What was deleted before the detach is erased.
func TestDetachErasesWhatWasDeleted(t *testing.T) {
	w := some(t, 4, attach.Erase)
	w.exec(`DELETE FROM messages WHERE id = 2`)
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	w.want([]string{"0"}, bodies, "text 2")
}

// A crash between the erasure and the rest of the drain.
func TestACrashBehindTheErasure(t *testing.T) {
	w := some(t, 4, attach.Erase)
	w.exec(`DELETE FROM messages WHERE id IN (2, 3); INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'new')`)
	if _, err := w.st.Admin.Erase(t.Context(), store.Key{Session: "messages:c"}, []string{"2#1@1"}, "rows were deleted", "attach", false); err != nil {
		t.Fatal(err)
	}
	w.drain()
	w.once("c")
	w.whole()
	w.want([]string{"0"}, bodies, "text 2")
	w.want([]string{"0"}, bodies, "text 3")
}

// The text of a fault repeats words of the row.
func TestEraseTakesTheTextOfAFault(t *testing.T) {
	w := some(t, 2, attach.Erase)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'Jane Secret', 'hello')`)
	w.drain()
	w.exec(`DELETE FROM messages WHERE id = 3`)
	w.drain()
	w.want(nil, `SELECT key, fault FROM compactor_messages.rows WHERE fault LIKE '%Secret%'`)
}

// A row that moves to another session of an erasing attachment.
func TestARowThatMovesIsErasedWhereItWas(t *testing.T) {
	w := some(t, 4, attach.Erase)
	w.exec(`UPDATE messages SET chat = 'd' WHERE id = 4`)
	w.once("c")
	w.once("d")
	w.drain()
	w.once("c")
	w.once("d")
	w.want([]string{"1"}, bodies, "text 4")
	w.exec(`UPDATE messages SET chat = 'c' WHERE id = 4`)
	w.drain()
	w.once("c")
	w.once("d")
	w.want([]string{"1"}, bodies, "text 4")
	w.whole()
}

// A column that is added while the view is there.
func TestAColumnIsAdded(t *testing.T) {
	w := some(t, 4, attach.Exclude)
	w.exec(`ALTER TABLE messages ADD COLUMN rating int NOT NULL DEFAULT 5`)
	w.exec(`UPDATE messages SET body = 'edited' WHERE id = 2; INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'x')`)
	w.once("c")
	w.drain()
	w.once("c")
}

// An edit that the log refuses, of a row that was in it.
func TestARefusedEditIsAFault(t *testing.T) {
	for name, edit := range map[string]string{
		"a result without a call id": `UPDATE messages SET sender = 'tool' WHERE id = 2`,
	} {
		t.Run(name, func(t *testing.T) {
			w := some(t, 4, attach.Erase)
			w.exec(edit)
			w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('z', 'human', 'of another session')`)
			if err := w.drained(); err != nil {
				t.Errorf("drain: %.300s", err)
			}
			w.want([]string{"1 user of another session"}, log, "z")
			w.want([]string{"1", "2", "3", "4"}, `SELECT id FROM compactor_messages.messages WHERE chat = 'c' ORDER BY id`)
			w.exec(`DELETE FROM messages WHERE id = 2`)
			_ = w.drained()
			w.want([]string{"0"}, bodies, "text 2")
		})
	}
}

// A key that is unique in some rows alone names no row.
func TestAPartialUniqueIndexIsRefused(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (nr int NOT NULL, chat text NOT NULL, sender text NOT NULL, body text NOT NULL, at timestamptz DEFAULT now(), live bool DEFAULT false); CREATE UNIQUE INDEX ON messages (nr) WHERE live`)
	s := generic
	s.Key = "nr"
	if _, err := attach.NewPlan(t.Context(), w.st, s); !errors.Is(err, store.ErrInvalid) {
		t.Error(err)
	}
}

// A row that was streamed in more than a hundred drains is read again after another attach.
func TestAStreamedRowAfterAnotherAttach(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	for i := range 102 {
		w.exec(`UPDATE messages SET body = $1 WHERE id = 2`, fmt.Sprintf("words up to %d", i))
		if err := w.att.DrainSession(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	w.attach(generic)
	w.drain()
	w.whole()
}

// A table that is missing keeps no other attachment from being read, and its status says what is wrong.
func TestOneBrokenAttachmentStopsNoOther(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	first := w.att
	w.exec(`CREATE TABLE others (LIKE messages INCLUDING ALL)`)
	s := generic
	s.Table = "public.others"
	w.attach(s)
	w.drain()
	w.exec(`ALTER TABLE messages RENAME COLUMN body TO words`)
	w.exec(`INSERT INTO messages (chat, sender, words) VALUES ('c', 'human', 'three')`)
	w.exec(`INSERT INTO others (id, chat, sender, body) VALUES (1, 'o', 'human', 'of others')`)
	d := attach.NewDrainer(w.st)
	if _, err := d.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "body") {
		t.Errorf("the drain does not say which column is missing: %v", err)
	}
	w.want([]string{"of others"}, `SELECT content FROM compactor.messages WHERE session = 'others:o'`)
	_, _, err := first.Check(t.Context(), 5, false)
	if err == nil || !strings.Contains(err.Error(), "body") {
		t.Error("check does not say which column is missing:", err)
	}
	w.exec(`SELECT * FROM compactor_messages.messages WHERE chat = 'c'`)
}

// A drain that is killed in its transaction, and one that is killed behind the erasure, are made again.
func TestKilledDrains(t *testing.T) {
	w := some(t, 100, attach.Erase)
	c := w.connect()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 40 {
			_, _ = c.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'compactor'`)
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // a pause between kills
		}
	}()
	for i := range 20 {
		w.exec(`DELETE FROM messages WHERE id = $1`, 3*i+2)
		w.exec(`UPDATE messages SET body = body || '!' WHERE id = $1`, 3*i+1)
		w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'new')`)
		_ = w.drained()
	}
	<-done
	_ = w.drained()
	w.drain()
	w.once("c")
	w.whole()
	w.want([]string{"120"}, `SELECT count(*) FROM compactor.view('', 'messages:c') v RIGHT JOIN compactor_messages.rows r ON r.ids[1] = v.id`)
	w.want([]string{"100"}, `SELECT count(*) FROM compactor.view('', 'messages:c')`)
}

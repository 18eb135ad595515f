package attach_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/attach"
)

// connect opens another connection of the application.
func (w *world) connect() *pgx.Conn {
	w.Helper()
	c, err := pgx.ConnectConfig(w.Context(), w.app.Config())
	if err == nil {
		_, err = c.Exec(w.Context(), `SET search_path = public`)
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close(context.WithoutCancel(w.Context())) })
	return c
}

func TestAnApplicationWithoutRightsWritesAndReads(t *testing.T) {
	w := newWorld(t)
	role := fmt.Sprintf("app_%d", w.app.PgConn().PID())
	w.exec(chats)
	w.exec(`CREATE ROLE ` + role + ` NOLOGIN`)
	t.Cleanup(func() {
		_, _ = w.app.Exec(context.WithoutCancel(t.Context()), `RESET ROLE; DROP OWNED BY `+role+`; DROP ROLE `+role)
	})
	w.exec(`GRANT USAGE ON SCHEMA public TO ` + role + `; GRANT ALL ON messages, messages_id_seq TO ` + role)
	w.attach(generic)
	w.exec(`SET ROLE ` + role)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'one'), ('c', 'bot', 'two')`)
	w.exec(`UPDATE messages SET body = 'three' WHERE id = 2`)
	w.drain()
	w.want([]string{"1 human one", "2 bot three"}, seen, "c")
	if _, err := w.app.Exec(t.Context(), `SELECT * FROM compactor_messages.rows`); err == nil {
		t.Error("the application reads the map of rows")
	}
	w.exec(`DELETE FROM messages; TRUNCATE messages`)
}

func TestEveryWayInIsNoted(t *testing.T) {
	w := newWorld(t)
	w.exec(chats)
	w.attach(generic)
	_, err := w.app.CopyFrom(t.Context(), pgx.Identifier{"messages"}, []string{"chat", "sender", "body"}, pgx.CopyFromRows([][]any{{"c", "human", "one"}, {"c", "bot", "two"}}))
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`INSERT INTO messages (id, chat, sender, body) VALUES (2, 'c', 'bot', 'twice'), (50, 'c', 'human', 'upsert') ON CONFLICT (id) DO UPDATE SET body = excluded.body`)
	w.exec(`INSERT INTO messages (id, chat, sender, body) SELECT 51, 'c', 'bot', 'of a CTE'`)
	w.exec(`BEGIN; INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'rolled back'); ROLLBACK`)
	w.exec(`BEGIN; SAVEPOINT a; INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'rolled back'); ROLLBACK TO a; COMMIT`)
	w.exec(`UPDATE messages SET chat = 'd' WHERE id = 51`) // to another conversation
	w.drain()
	w.want([]string{"user one", "assistant twice", "user upsert"}, `SELECT role, message->>'content' FROM compactor.view('', 'messages:c')`)
	w.want([]string{"assistant of a CTE"}, `SELECT role, message->>'content' FROM compactor.view('', 'messages:d')`)
	w.whole()
}

func TestPartitionsAreNoted(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id bigint GENERATED ALWAYS AS IDENTITY, chat text NOT NULL, sender text NOT NULL, body text NOT NULL, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (at, id)) PARTITION BY RANGE (at)`)
	w.exec(`CREATE TABLE messages_1 PARTITION OF messages FOR VALUES FROM (MINVALUE) TO ('2030-01-01'); CREATE TABLE messages_2 PARTITION OF messages DEFAULT`)
	s := generic
	s.Key, s.Order = "id", []string{"at", "id"}
	w.attach(s)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'by the table')`)
	w.exec(`INSERT INTO messages_1 (id, chat, sender, body) OVERRIDING SYSTEM VALUE VALUES (2000, 'c', 'bot', 'by its partition')`)
	w.exec(`UPDATE messages SET body = 'edited' WHERE id = 2000`)
	w.exec(`INSERT INTO messages_1 (id, chat, sender, body) OVERRIDING SYSTEM VALUE VALUES (2001, 'c', 'human', 'gone')`)
	w.exec(`DELETE FROM messages_1 WHERE id = 2001`)
	w.drain()
	w.want([]string{"user by the table", "assistant edited"}, `SELECT role, message->>'content' FROM compactor.view('', 'messages:c')`)
	w.whole()
}

func TestATableWithRowLevelSecurityGetsNoView(t *testing.T) {
	w := newWorld(t)
	w.exec(chats)
	w.exec(`ALTER TABLE messages ENABLE ROW LEVEL SECURITY`)
	w.attach(generic)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'one')`)
	w.drain()
	w.want([]string{"1 user one"}, log, "c")
	w.want(nil, `SELECT relname FROM pg_class WHERE relnamespace = 'compactor_messages'::regnamespace AND relkind = 'v'`)
}

func TestWritersAreNeitherSerializedNorHeldUp(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	a, b := w.connect(), w.connect()
	for _, c := range []*pgx.Conn{a, b} {
		if _, err := c.Exec(t.Context(), `BEGIN ISOLATION LEVEL SERIALIZABLE`); err != nil {
			t.Fatal(err)
		}
	}
	write := func(c *pgx.Conn, chat, body string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), `INSERT INTO messages (chat, sender, body) VALUES ($1, 'human', $2)`, chat, body); err != nil {
			t.Fatal(err)
		}
	}
	write(a, "c", "of a")
	write(b, "d", "of b")
	write(a, "d", "of a") // in another order than b: no deadlock
	write(b, "c", "of b")
	w.drain() // waits for neither
	w.want([]string{"1 user text 1", "2 assistant text 2"}, log, "c")
	for _, c := range []*pgx.Conn{b, a} {
		if _, err := c.Exec(t.Context(), `COMMIT`); err != nil {
			t.Fatal(err)
		}
	}
	w.drain()
	w.want([]string{"1 user text 1", "2 assistant text 2", "3 user of a", "4 user of b"}, log, "c")
}

func TestConcurrentDrainsReadARowOnce(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				if err := w.att.DrainSession(t.Context(), "c"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 30 {
		w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', $1)`, fmt.Sprint(i))
		// Each moment, the view has each row once.
		w.want([]string{fmt.Sprint(i + 3)}, `SELECT count(*) FROM compactor_messages.messages WHERE chat = 'c'`)
	}
	wg.Wait()
	w.drain()
	w.want([]string{"32"}, `SELECT count(*) FROM compactor.messages`)
	w.whole()
}

func TestAttachWaitsForWritersInShortTurns(t *testing.T) {
	w := newWorld(t)
	w.exec(chats)
	c := w.connect()
	if _, err := c.Exec(t.Context(), `BEGIN; INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'open')`); err != nil {
		t.Fatal(err)
	}
	p, err := attach.NewPlan(t.Context(), w.st, generic)
	if err != nil {
		t.Fatal(err)
	}
	attached := make(chan error, 1)
	go func() {
		var err error
		w.att, err = p.Apply(context.WithoutCancel(t.Context()), w.st)
		attached <- err
	}()
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'meanwhile')`) // waits for a second at most
	if _, err := c.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := <-attached; err != nil {
		t.Fatal(err)
	}
	w.drain()
	w.want([]string{"1 user open", "2 user meanwhile"}, log, "c")
}

func TestATableThatCannotBeAttachedIsRefused(t *testing.T) {
	w := newWorld(t)
	w.exec(chats)
	w.exec(`CREATE TABLE keyless (chat text, sender text, body text)`)
	w.exec(`CREATE TABLE agent_messages (id serial PRIMARY KEY, session_id varchar, message_data text, created_at timestamp)`)
	w.exec(`INSERT INTO agent_messages (session_id, message_data) VALUES ('s', '{"role": "user", "__enc__": 1, "payload": "x"}')`)
	with := func(change func(*attach.Spec)) attach.Spec {
		s := generic
		change(&s)
		return s
	}
	for want, s := range map[string]attach.Spec{
		"there is no table nothing":          with(func(s *attach.Spec) { s.Table = "nothing" }),
		"--on-delete":                        with(func(s *attach.Spec) { s.OnDelete = "" }),
		"want keep, exclude or erase":        with(func(s *attach.Spec) { s.OnDelete = "drop" }),
		"has no column author":               with(func(s *attach.Spec) { s.Role = "author" }),
		"name its columns, --role":           with(func(s *attach.Spec) { s.Role = "" }),
		"no unique index":                    with(func(s *attach.Spec) { s.Table, s.Key, s.Time = "keyless", "chat", "" }),
		"encrypted by the application":       {Table: "agent_messages", OnDelete: attach.Keep},
		"no table of an application":         with(func(s *attach.Spec) { s.Table = "compactor.message_log" }),
		"want user, assistant, system":       with(func(s *attach.Spec) { s.Roles = map[string]string{"x": "robot"} }),
		"no preset \"own\"":                  with(func(s *attach.Spec) { s.Preset = "own" }),
		"want up to 40":                      with(func(s *attach.Spec) { s.Name = "Über" }),
		"a tenant or the column that has it": with(func(s *attach.Spec) { s.Tenant, s.TenantColumn = "t", "chat" }),
	} {
		_, err := attach.NewPlan(t.Context(), w.st, s)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, store.ErrInvalid) && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	w.attach(generic)
	if _, err := attach.NewPlan(t.Context(), w.st, generic); !errors.Is(err, store.ErrInUse) {
		t.Errorf("attached twice: %v", err)
	}
}

// A name or a condition with a quote in it is no SQL of its own.
func TestNamesAreQuoted(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE "odd ""table" ("id;" serial PRIMARY KEY, "ch'at" text, "se""nder" text, "bo dy" text, kind text)`)
	w.exec(`INSERT INTO "odd ""table" ("ch'at", "se""nder", "bo dy", kind) VALUES ('c', 'user', 'o''ne', 'it''s'), ('c', 'user', 'two', 'other')`)
	w.attach(attach.Spec{Table: `public.odd "table`, Session: "ch'at", Role: `se"nder`, Content: "bo dy", OnDelete: attach.Keep, Where: `kind = 'it''s'`})
	w.drain()
	w.want([]string{"1 user o'ne"}, `SELECT seq, role, content FROM compactor.messages`)
	w.want([]string{"1 c user o'ne it's"}, `SELECT * FROM compactor_odd_table."odd ""table"`)
	w.exec(`UPDATE "odd ""table" SET kind = 'it''s' WHERE "id;" = 2`)
	w.drain()
	w.want([]string{"1", "2"}, `SELECT "id;" FROM compactor_odd_table."odd ""table" ORDER BY 1`)
	w.whole()
}

func TestTenantsOfRowsAreKeptApart(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id serial PRIMARY KEY, org text, chat text NOT NULL, sender text NOT NULL, body text NOT NULL)`)
	s := generic
	s.TenantColumn, s.Time = "org", ""
	w.attach(s)
	w.exec(`INSERT INTO messages (org, chat, sender, body) VALUES ('acme', 'a', 'human', 'one'), ('umbrella', 'b', 'human', 'two'), (NULL, 'n', 'human', 'three')`)
	w.drain()
	w.want([]string{"acme messages:a", "default messages:n", "umbrella messages:b"}, `SELECT tenant, id FROM compactor.sessions ORDER BY 1`)
	w.exec(`SET compactor.tenant = 'acme'`)
	_, err := w.app.Exec(t.Context(), `SELECT * FROM compactor_messages.messages WHERE chat = 'b'`)
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" {
		t.Errorf("a connection of one tenant reads the view of another: %v", err)
	}
}

// A program with one login writes by the view, too.
func TestWritesThroughTheView(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, chat text NOT NULL, sender text NOT NULL, body text NOT NULL DEFAULT 'empty', length int GENERATED ALWAYS AS (length(body)) STORED)`)
	role := fmt.Sprintf("app_w_%d", w.app.PgConn().PID())
	w.exec(`CREATE ROLE ` + role + ` NOLOGIN`)
	t.Cleanup(func() {
		_, _ = w.app.Exec(context.WithoutCancel(t.Context()), `RESET ROLE; DROP OWNED BY `+role+`; DROP ROLE `+role)
	})
	s := generic
	s.Time = ""
	w.attach(s)
	w.exec(`GRANT USAGE ON SCHEMA public TO ` + role + `; GRANT SELECT, INSERT, DELETE ON messages TO ` + role + `; GRANT USAGE ON SEQUENCE messages_id_seq TO ` + role)
	if st, err := w.att.Status(t.Context()); err != nil || len(st.Ungranted) != 1 || st.Ungranted[0] != role {
		t.Fatalf("%+v %v", st, err)
	}
	if err := w.att.Grant(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st, err := w.att.Status(t.Context()); err != nil || len(st.Ungranted) > 0 {
		t.Fatalf("%+v %v", st, err)
	}
	w.exec(`SET ROLE ` + role + `; SET search_path = compactor_messages, public`)
	w.exec(`CREATE TABLE IF NOT EXISTS messages (id int)`)
	w.want([]string{"1 5"}, `INSERT INTO messages (chat, sender) VALUES ('c', 'human') RETURNING id, length`)
	for i := range 8 {
		w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', $1, $2)`, []string{"bot", "human"}[i%2], fmt.Sprint("text ", i))
	}
	w.drain()
	// Two messages in place of the first six, as a summary has it: a row of the view stands for those behind it.
	w.exec(`RESET ROLE`)
	w.exec(`SELECT compactor.replace_view('', 'messages:c', revision, (SELECT json_agg(m) FROM json_array_elements(messages) WITH ORDINALITY e(m, n) WHERE n IN (1, 7, 8, 9)), '', seen) FROM compactor.view_with_revision('', 'messages:c')`)
	w.exec(`SET ROLE ` + role)
	w.want([]string{"1", "7", "8", "9"}, `SELECT id FROM messages WHERE chat = 'c' ORDER BY id`)
	w.exec(`DELETE FROM messages WHERE chat = 'c' AND id = 7`)
	w.want([]string{"8"}, `SELECT count(*) FROM public.messages`)
	w.exec(`DELETE FROM messages WHERE chat = 'c' AND id = 1`)
	w.want([]string{"8", "9"}, `SELECT id FROM public.messages ORDER BY id`)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'new')`)
	w.exec(`DELETE FROM messages WHERE chat = 'c'`)
	w.want(nil, `SELECT id FROM public.messages`)
	w.drain()
	w.exec(`RESET ROLE`)
	w.want(nil, log, "c")
	w.exec(`SET ROLE ` + role)
	w.exec(`CREATE TABLE of_a_migration (id int)`) // it is in the schema of the attachment
	if err := w.att.Detach(t.Context(), false); !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), "of_a_migration") {
		t.Errorf("detach: %v", err)
	}
	w.exec(`DROP TABLE of_a_migration; RESET ROLE`)
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Error(err)
	}
	w.want([]string{"messages"}, `SELECT labels->>'attachment' FROM compactor.sessions`)
}

// A run that applies between the two statements of an edit overtakes the drain, which is made again: see store.ErrStale.
func TestDrainsBesideChangesOfTheView(t *testing.T) {
	w := some(t, 6, attach.Exclude)
	other, stop := w.connect(), make(chan struct{})
	changed := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				changed <- nil
				return
			default:
			}
			// The same messages: a new revision, as a run makes one.
			_, err := other.Exec(context.WithoutCancel(t.Context()), `SELECT compactor.replace_view('', 'messages:c', revision, messages, 'run', seen) FROM compactor.view_with_revision('', 'messages:c')`)
			if pg, ok := errors.AsType[*pgconn.PgError](err); err != nil && (!ok || pg.Code != "40001" && pg.Code != "40P01") {
				changed <- err
				return
			}
		}
	}()
	for i := range 25 {
		w.exec(`UPDATE messages SET body = $1 WHERE id = 2`, fmt.Sprint("edit ", i))
		if _, _, err := w.att.Drain(t.Context()); err != nil {
			t.Errorf("edit %d: %v", i, err)
		}
	}
	close(stop)
	if err := <-changed; err != nil {
		t.Error(err)
	}
	w.drain()
	w.once("c")
	w.want([]string{"user text 1", "assistant edit 24", "user text 3", "assistant text 4", "user text 5", "assistant text 6"},
		`SELECT role, message->>'content' FROM compactor.view('', 'messages:c')`)
	w.whole()
}

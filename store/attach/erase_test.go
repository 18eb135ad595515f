package attach_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/attach"
)

// bodies counts the stored bodies that have a text.
const bodies = `SELECT count(*) FROM compactor.message_body WHERE body LIKE '%' || $1 || '%'`

// once fails unless the view of a session has just the rows of the table.
func (w *world) once(chat string) {
	w.Helper()
	w.want(w.rows(`SELECT id, sender, body FROM public.messages WHERE chat = $1 ORDER BY id`, chat), seen, chat)
}

// repair has all rows read again that a check finds to differ.
func (w *world) repair() {
	w.Helper()
	if _, _, err := w.att.Check(w.Context(), 5, true); err != nil {
		w.Error(err)
	}
	w.drain()
}

// Words of an earlier version of a row that is deleted are erased with it.
func TestEraseTakesEarlierVersions(t *testing.T) {
	w := some(t, 4, attach.Erase)
	w.exec(`UPDATE messages SET body = 'my secret' WHERE id = 2`)
	w.drain()
	w.exec(`UPDATE messages SET body = 'redacted' WHERE id = 2`)
	w.drain()
	w.exec(`DELETE FROM messages WHERE id = 2`)
	w.drain()
	w.want([]string{"0"}, bodies, "redacted")
	w.want([]string{"0"}, bodies, "my secret")
	w.want([]string{"0"}, bodies, "text 2")
}

// A row that is first edited into no message (a fault) and then deleted is erased.
func TestEraseTakesARowThatBecameAFault(t *testing.T) {
	w := some(t, 4, attach.Erase)
	w.exec(`UPDATE messages SET sender = 'narrator' WHERE id = 2`)
	w.drain()
	w.exec(`DELETE FROM messages WHERE id = 2`)
	w.drain()
	w.want([]string{"0"}, bodies, "text 2")
}

// A row that becomes empty and is then deleted.
func TestEraseTakesARowThatBecameEmpty(t *testing.T) {
	w := some(t, 4, attach.Erase)
	w.exec(`UPDATE messages SET body = '' WHERE id = 2`)
	w.drain()
	w.exec(`DELETE FROM messages WHERE id = 2`)
	w.drain()
	w.want([]string{"0"}, bodies, "text 2")
}

// Rows that were deleted while the table was detached ("detach, migrate, attach") leave the log as others do.
func TestRowsDeletedWhileDetached(t *testing.T) {
	for _, mode := range []string{attach.Exclude, attach.Erase} {
		t.Run(mode, func(t *testing.T) {
			w := some(t, 4, mode)
			if err := w.att.Detach(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			w.exec(`DELETE FROM messages WHERE id = 2`)
			s := generic
			s.OnDelete = mode
			w.attach(s)
			w.drain()
			if mode == attach.Erase {
				w.want([]string{"0"}, bodies, "text 2")
			}
			w.whole()
			w.want([]string{"1 user text 1", "3 user text 3", "4 assistant text 4"}, log, "c")
		})
	}
}

// Rows that were edited while the table was detached take their place when it is attached again.
func TestRowsEditedWhileDetached(t *testing.T) {
	w := some(t, 4, attach.Exclude)
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE messages SET body = 'another' WHERE id = 2`)
	w.attach(generic)
	w.drain()
	w.want([]string{"user text 1", "assistant another", "user text 3", "assistant text 4"}, `SELECT role, message->>'content' FROM compactor.view('', 'messages:c')`)
}

// Digests of erased words are nowhere.
func TestEraseTakesDigests(t *testing.T) {
	w := some(t, 4, attach.Erase)
	w.exec(`DELETE FROM messages WHERE id = 2`)
	w.drain()
	w.want(nil, `SELECT key, digest, digests FROM compactor_messages.rows WHERE key = '2' AND (digest IS NOT NULL OR cardinality(digests) > 0)`)
}

// What an operator erases stays erased through edits of other rows, checks with repair, detach and attach.
func TestOperatorsErasureStays(t *testing.T) {
	w := some(t, 4, attach.Exclude)
	if _, err := w.st.Admin.Erase(t.Context(), store.Key{Session: "messages:c"}, []string{"2#1@1"}, "asked for", "", false); err != nil {
		t.Fatal(err)
	}
	w.want([]string{"0"}, bodies, "text 2")
	w.repair()
	w.want([]string{"0"}, bodies, "text 2")
	w.repair()
	w.exec(`UPDATE messages SET body = 'another' WHERE id = 3`)
	w.drain()
	w.want([]string{"0"}, bodies, "text 2")
	w.exec(`UPDATE messages SET sender = 'AI' WHERE id = 2`)
	w.drain()
	w.want([]string{"0"}, bodies, "text 2")
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	w.attach(generic)
	w.drain()
	w.want([]string{"0"}, bodies, "text 2")
}

func TestOperatorsErasureOfASession(t *testing.T) {
	w := some(t, 4, attach.Exclude)
	if _, err := w.st.Admin.Erase(t.Context(), store.Key{Session: "messages:c"}, nil, "asked for", "", false); err != nil {
		t.Fatal(err)
	}
	w.want([]string{"0"}, bodies, "text")
	w.repair()
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'new')`)
	w.drain()
	w.want([]string{"0"}, bodies, "text")
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	w.attach(generic)
	w.drain()
	w.want([]string{"0"}, bodies, "text")
}

// A session that the backfill finds locked is read later.
func TestBackfillComesBackToABusySession(t *testing.T) {
	w := some(t, 4, attach.Exclude)
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), store.Config{URL: w.app.Config().ConnString(), LockTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	w.st = st
	w.attach(generic)
	c := w.connect()
	if _, err := c.Exec(t.Context(), `BEGIN; SELECT FROM compactor.sessions WHERE id = 'messages:c' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	_, _, _ = w.att.Drain(t.Context()) // as a scheduler, while a run applies or an erasure lasts
	if _, err := c.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
	w.drain()
	w.once("c")
	w.whole()
}

// Keys and sessions of type char(n): Laravel's ulid() is char(26).
func TestKeysOfTypeChar(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id char(26) PRIMARY KEY, chat text NOT NULL, sender text NOT NULL, body text NOT NULL)`)
	s := generic
	s.Time = ""
	w.exec(`INSERT INTO messages VALUES ('01ARZ3NDEKTSV4RRFFQ69G5FAV', 'c', 'human', 'one')`)
	w.attach(s)
	w.drain()
	w.exec(`INSERT INTO messages VALUES ('01ARZ3NDEKTSV4RRFFQ69G5FAW', 'c', 'bot', 'two')`)
	w.drain()
	w.exec(`UPDATE messages SET body = 'edited' WHERE body = 'one'`)
	w.drain()
	w.once("c")
	w.want([]string{"user edited", "assistant two"}, `SELECT role, message->>'content' FROM compactor.view('', 'messages:c')`)
}

func TestSessionsOfTypeChar(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id serial PRIMARY KEY, chat char(36) NOT NULL, sender text NOT NULL, body text NOT NULL)`)
	s := generic
	s.Time = ""
	w.attach(s)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('7d8c1b9e-0000-4000-8000-000000000001', 'human', 'one')`)
	w.drain()
	w.once("7d8c1b9e-0000-4000-8000-000000000001")
}

// Types of the public schema: citext, a domain, an enum.
func TestTypesOfOtherSchemas(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE DOMAIN chat_id AS text`)
	w.exec(`CREATE TABLE messages (id serial PRIMARY KEY, chat chat_id NOT NULL, sender text NOT NULL, body text NOT NULL)`)
	s := generic
	s.Time = ""
	w.attach(s)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'one')`)
	w.drain()
	w.once("c")
}

// A condition on columns with usual names.
func TestConditionOnTheRole(t *testing.T) {
	for _, where := range []string{`role <> 'log'`, `content <> ''`, `key IS NULL`, `session IS NULL`} {
		t.Run(where, func(t *testing.T) {
			w := newWorld(t)
			w.exec(`CREATE TABLE messages (id serial PRIMARY KEY, chat text NOT NULL, role text NOT NULL, content text NOT NULL, key text, session text)`)
			s := attach.Spec{Table: "public.messages", Preset: "generic", Session: "chat", Role: "role", Content: "content", OnDelete: attach.Keep, Where: where}
			w.attach(s)
			w.exec(`INSERT INTO messages (chat, role, content) VALUES ('c', 'user', 'one')`)
			w.drain()
			w.want([]string{"1 user one"}, log, "c")
		})
	}
}

// drained drains as the scheduler does, a few times, whatever it says.
func (w *world) drained() (err error) {
	for range 3 {
		_, _, err = w.att.Drain(w.Context())
	}
	return err
}

// A row that cannot be read keeps no other session from the log.
func TestARowThatCannotBeReadHoldsUpNoOthers(t *testing.T) {
	for name, poison := range map[string]string{
		"key":  `INSERT INTO messages (nr, chat, sender, body) VALUES (NULL, 'a', 'human', 'no key')`,
		"time": `INSERT INTO messages (nr, chat, sender, body, at) VALUES (9, 'a', 'human', 'some time', 'infinity')`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.exec(`CREATE TABLE messages (nr int UNIQUE, chat text NOT NULL, sender text NOT NULL, body text NOT NULL, at timestamptz NOT NULL DEFAULT now())`)
			s := generic
			s.Key = "nr"
			w.attach(s)
			w.drain()
			w.exec(poison)
			w.exec(`INSERT INTO messages (nr, chat, sender, body) SELECT i, 'b' || i, 'human', 'text' FROM generate_series(10, 29) i`)
			_ = w.drained()
			w.want([]string{"20"}, `SELECT count(*) FROM compactor.sessions WHERE id LIKE 'messages:b%'`)
		})
	}
}

// An edit after the table was attached again, of a row that once said the same.
func TestEditsAfterAnotherAttach(t *testing.T) {
	w := some(t, 4, attach.Exclude)
	for _, text := range []string{"another", "text 2"} {
		w.exec(`UPDATE messages SET body = $1 WHERE id = 2`, text)
		w.drain()
	}
	if err := w.att.Detach(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	w.attach(generic)
	w.drain()
	w.exec(`UPDATE messages SET body = 'a third' WHERE id = 2`)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('z', 'human', 'of another session')`)
	if err := w.drained(); err != nil {
		t.Error("drain:", err)
	}
	w.want([]string{"1 user of another session"}, log, "z")
	w.want([]string{"user text 1", "assistant a third", "user text 3", "assistant text 4"}, `SELECT role, message->>'content' FROM compactor.view('', 'messages:c')`)
}

// A row that is created empty and filled later is in the view when it is filled, before a drain too.
func TestAFilledRowIsInTheViewAtOnce(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'bot', '')`)
	w.drain()
	w.exec(`UPDATE messages SET body = 'an answer' WHERE id = 3`)
	w.once("c")
}

// A row without text, such as one with an image in another column, stays in the view.
func TestAnEmptyRowStaysInTheView(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	w.exec(`INSERT INTO messages (chat, sender, body, extra) VALUES ('c', 'human', '', 'image.png')`)
	w.once("c")
	w.drain()
	w.once("c")
}

// A row that comes back is in the view once.
func TestARowThatComesBackIsInTheViewOnce(t *testing.T) {
	w := some(t, 4, attach.Keep)
	w.exec(`DELETE FROM messages WHERE id = 2`)
	w.drain()
	w.exec(`INSERT INTO messages (id, chat, sender, body) VALUES (2, 'c', 'bot', 'text 2')`)
	w.once("c")
}

// The application can rename a column and go on writing.
func TestARenamedColumnDoesNotFailWrites(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	w.exec(`ALTER TABLE messages RENAME COLUMN chat TO conversation`)
	if _, err := w.app.Exec(t.Context(), `INSERT INTO messages (conversation, sender, body) VALUES ('c', 'human', 'three')`); err != nil {
		t.Error("insert:", err)
	}
	if _, err := w.app.Exec(t.Context(), `DELETE FROM messages WHERE id = 1`); err != nil {
		t.Error("delete:", err)
	}
	if err := w.drained(); !errors.Is(err, store.ErrNotApplicable) {
		t.Errorf("the drain does not report it: %v", err)
	}
}

// A table that is renamed or dropped is reported.
func TestAMissingTableIsReported(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	w.exec(`ALTER TABLE messages RENAME TO messages_old`)
	w.exec(`INSERT INTO messages_old (chat, sender, body) VALUES ('c', 'human', 'three')`)
	d := attach.NewDrainer(w.st)
	if _, err := d.Drain(t.Context()); err == nil {
		t.Error("the drainer says nothing")
	}
}

// Rows of two tenants with one session id are kept apart.
func TestOneSessionIDOfTwoTenants(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id serial PRIMARY KEY, org text, chat text NOT NULL, sender text NOT NULL, body text NOT NULL)`)
	s := generic
	s.TenantColumn, s.Time = "org", ""
	w.attach(s)
	w.exec(`INSERT INTO messages (org, chat, sender, body) VALUES ('acme', '1', 'human', 'of acme'), ('umbrella', '1', 'human', 'of umbrella')`)
	w.drain()
	w.want([]string{"of acme"}, `SELECT content FROM compactor.messages WHERE tenant = 'acme'`)
}

// Rows that get another tenant leave the old one, and are listed: a session has one tenant.
func TestASessionThatMovesToAnotherTenant(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id serial PRIMARY KEY, org text, chat text NOT NULL, sender text NOT NULL, body text NOT NULL)`)
	s := generic
	s.TenantColumn, s.Time = "org", ""
	w.attach(s)
	w.exec(`INSERT INTO messages (org, chat, sender, body) VALUES ('acme', '1', 'human', 'one')`)
	w.drain()
	w.exec(`UPDATE messages SET org = 'umbrella'`)
	w.drain()
	w.want(nil, `SELECT tenant FROM compactor.messages WHERE NOT excluded`)
	if n, first, err := w.att.Check(t.Context(), 5, false); n != 1 || err != nil || !strings.Contains(first[0].Text, "another tenant") {
		t.Errorf("check: %d %v %v", n, first, err)
	}
}

// A session of more notes than one drain takes is read before a run of it.
func TestARunReadsAllNotesOfItsSession(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	w.exec(`INSERT INTO messages (chat, sender, body) SELECT 'c', 'human', 'text' FROM generate_series(1, 12000)`)
	if _, err := attach.NewDrainer(w.st).DrainKey(t.Context(), store.Key{Session: "messages:c"}); err != nil {
		t.Fatal(err)
	}
	w.want([]string{"0"}, `SELECT count(*) FROM compactor_messages.notes`)
}

// Notes of rows without a session do not stay for ever.
func TestNotesOfNoSessionGo(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id serial PRIMARY KEY, chat text, sender text NOT NULL, body text NOT NULL)`)
	s := generic
	s.Time = ""
	w.attach(s)
	w.exec(`INSERT INTO messages (sender, body) SELECT 'human', 'x' FROM generate_series(1, 100)`)
	w.drain()
	w.want([]string{"0"}, `SELECT count(*) FROM compactor_messages.notes`)
}

// A leaf partition gets no triggers that never fire.
func TestAPartitionIsRefused(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id bigint NOT NULL, chat text NOT NULL, sender text NOT NULL, body text NOT NULL) PARTITION BY HASH (id); CREATE TABLE p PARTITION OF messages FOR VALUES WITH (MODULUS 1, REMAINDER 0); CREATE UNIQUE INDEX ON p (id)`)
	s := generic
	s.Table, s.Key, s.Time = "p", "id", ""
	_, err := attach.NewPlan(t.Context(), w.st, s)
	if errors.Is(err, store.ErrInvalid) {
		return
	}
	w.attach(s)
	w.drain()
	w.exec(`INSERT INTO messages VALUES (1, 'c', 'human', 'one')`)
	w.drain()
	w.want([]string{"one"}, `SELECT content FROM compactor.messages`)
}

// What is printed is one transaction: rows that are written between its statements are in the log.
func TestThePrintedStatementsAreOneTransaction(t *testing.T) {
	w := newWorld(t)
	w.exec(chats)
	p, err := attach.NewPlan(t.Context(), w.st, generic)
	if err != nil {
		t.Fatal(err)
	}
	sql, err := p.Script("compactor")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(sql, "BEGIN;") {
		return
	}
	// As psql does it, each statement by itself: here with a drain of the scheduler and an insert before the last ones.
	before, after, _ := strings.Cut(sql, "-- Last, as these wait")
	w.exec(before)
	if w.att, err = attach.Get(t.Context(), w.st, "messages"); err != nil {
		t.Fatal(err)
	}
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'one')`)
	w.drain()
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'two')`)
	w.exec("--" + after)
	w.drain()
	w.once("c")
	w.want([]string{"1 user one", "2 user two"}, log, "c")
}

// A deletion that has to wait for the end of a tool loop does not keep the end from being read.
func TestEraseInAnOpenLoop(t *testing.T) { openLoop(t, attach.Erase) }

func TestExcludeInAnOpenLoop(t *testing.T) { openLoop(t, attach.Exclude) }

func openLoop(t *testing.T, mode string) {
	w := newWorld(t)
	w.exec(`CREATE TABLE agent_messages (id serial PRIMARY KEY, session_id varchar NOT NULL, message_data text NOT NULL, created_at timestamp DEFAULT CURRENT_TIMESTAMP NOT NULL)`)
	w.attach(attach.Spec{Table: "agent_messages", Preset: "agents-sdk", OnDelete: mode})
	item := func(s string) { w.exec(`INSERT INTO agent_messages (session_id, message_data) VALUES ('c', $1)`, s) }
	item(`{"role":"user","content":"first"}`)
	item(`{"role":"assistant","content":"answer"}`)
	item(`{"role":"user","content":"second"}`)
	item(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"abcabc"}`)
	item(`{"type":"function_call","call_id":"c1","name":"f","arguments":"{}","id":"fc_1"}`)
	w.drain()
	w.exec(`DELETE FROM agent_messages WHERE id = 2`)
	if err := w.drained(); err != nil {
		t.Error(err)
	}
	item(`{"type":"function_call_output","call_id":"c1","output":"18 C"}`)
	item(`{"role":"assistant","content":"done"}`)
	if err := w.drained(); err != nil {
		t.Error(err)
	}
	if mode == attach.Erase {
		w.want([]string{"0"}, bodies, "answer")
	}
	w.want([]string{"0"}, `SELECT count(*) FROM compactor_agent_messages.notes`)
	w.want([]string{"5"}, `SELECT count(*) FROM compactor.view('', 'agent_messages:c')`)
}

package attach_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/attach"
	"github.com/sessionstore/compactor/store/storetest"
)

// world is a database with a store and the connection of an application.
type world struct {
	testing.TB
	st  *store.Store
	app *pgx.Conn
	att *attach.Attachment
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return benchWorld(t)
}

func benchWorld(t testing.TB) *world {
	t.Helper()
	dsn := storetest.DB(t, "attach-"+migrations.Fingerprint(), func(ctx context.Context, dsn string) error {
		_, err := migrations.Up(ctx, dsn, migrations.DefaultSchema)
		return err
	})
	st, err := store.Open(t.Context(), store.Config{URL: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	app, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.Close(storetest.Context(t)) })
	w := &world{TB: t, st: st, app: app}
	w.exec(`SET search_path = public`) // without the schema of the login's name
	return w
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.app.Exec(w.Context(), sql, args...); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

// rows returns the rows of a query, each as its columns with spaces between.
func (w *world) rows(sql string, args ...any) (out []string) {
	w.Helper()
	rows, err := w.app.Query(w.Context(), sql, args...)
	if err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			w.Fatal(err)
		}
		text := make([]string, len(values))
		for i, v := range values {
			text[i] = fmt.Sprint(v)
		}
		out = append(out, strings.Join(text, " "))
	}
	if rows.Err() != nil {
		w.Fatalf("%s: %v", sql, rows.Err())
	}
	return out
}

func (w *world) want(want []string, sql string, args ...any) {
	w.Helper()
	if diff := cmp.Diff(want, w.rows(sql, args...)); diff != "" {
		w.Errorf("%s (-want +got):\n%s", sql, diff)
	}
}

func (w *world) attach(s attach.Spec) {
	w.Helper()
	p, err := attach.NewPlan(w.Context(), w.st, s)
	if err == nil {
		w.att, err = p.Apply(w.Context(), w.st)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// drain drains until nothing waits.
func (w *world) drain() {
	w.Helper()
	for {
		n, _, err := w.att.Drain(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// whole fails unless a check finds no difference.
func (w *world) whole() {
	w.Helper()
	n, first, err := w.att.Check(w.Context(), 5, false)
	if err != nil || n > 0 {
		w.Errorf("check: %d differences %v %v", n, first, err)
	}
}

const (
	chats = `CREATE TABLE messages (id serial PRIMARY KEY, chat text NOT NULL, sender text NOT NULL, body text NOT NULL, at timestamptz NOT NULL DEFAULT now(), extra text)`
	seen  = `SELECT id, sender, body FROM compactor_messages.messages WHERE chat = $1 ORDER BY id`
	log   = `SELECT seq, role, content FROM compactor.messages WHERE session = 'messages:' || $1 AND NOT excluded ORDER BY seq`
)

var generic = attach.Spec{
	Table: "public.messages", Preset: "generic", Session: "chat", Role: "sender", Content: "body", Time: "at", OnDelete: attach.Exclude,
}

func TestRowsOfBeforeAndAfterAreInTheLog(t *testing.T) {
	w := newWorld(t)
	w.exec(chats)
	w.exec(`INSERT INTO messages (chat, sender, body) SELECT 'c' || i % 300, CASE i / 300 % 2 WHEN 0 THEN 'human' ELSE 'bot' END, 'text ' || i FROM generate_series(0, 899) i`)
	w.attach(generic)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c7', 'bot', 'new'), ('fresh', 'human', 'hi')`)
	// Before a drain, the view has what the table has.
	w.want(w.rows(strings.ReplaceAll(seen, "compactor_messages.", ""), "c7"), seen, "c7")
	w.want(w.rows(strings.ReplaceAll(seen, "compactor_messages.", ""), "c8"), seen, "c8")
	w.want([]string{"902 human hi"}, seen, "fresh")
	w.drain()
	w.want([]string{"1 user text 7", "2 assistant text 307", "3 user text 607", "4 assistant new"}, log, "c7")
	w.want(w.rows(strings.ReplaceAll(seen, "compactor_messages.", ""), "c7"), seen, "c7")
	w.want([]string{"301"}, `SELECT count(*) FROM compactor.sessions`)
	w.want([]string{"0"}, `SELECT count(*) FROM compactor_messages.notes`)
	w.whole()
}

// some attaches a table with one session of n rows, of which the first is the user's, and drains them.
func some(t *testing.T, n int, onDelete string) *world {
	w := newWorld(t)
	w.exec(chats)
	w.exec(`INSERT INTO messages (chat, sender, body) SELECT 'c', CASE i % 2 WHEN 1 THEN 'human' ELSE 'bot' END, 'text ' || i FROM generate_series(1, $1) i`, n)
	s := generic
	s.OnDelete = onDelete
	w.attach(s)
	w.drain()
	return w
}

func TestAnEditedRowTakesItsPlace(t *testing.T) {
	w := some(t, 4, attach.Exclude)
	w.exec(`UPDATE messages SET body = 'another' WHERE id = 2`)
	w.exec(`UPDATE messages SET extra = 'a column that is no message'`)
	w.want([]string{"2"}, `SELECT DISTINCT key FROM compactor_messages.notes`)
	w.drain()
	w.want([]string{"user text 1", "assistant another", "user text 3", "assistant text 4"}, `SELECT role, message->>'content' FROM compactor.view('', 'messages:c')`)
	w.want([]string{"1#1@1 true", "2#1@1 false", "3#1@1 true", "4#1@1 true", "2#1@2 true"}, `SELECT id, NOT excluded FROM compactor.messages ORDER BY seq`)
	w.want([]string{"1 human text 1", "2 bot another", "3 human text 3", "4 bot text 4"}, seen, "c")
	w.whole()
}

func TestADeletedRowLeavesAndCanComeBack(t *testing.T) {
	w := some(t, 4, attach.Exclude)
	w.exec(`DELETE FROM messages WHERE id >= 3`)
	w.want([]string{"1 human text 1", "2 bot text 2"}, seen, "c") // before the drain, too
	w.drain()
	w.want([]string{"1 user text 1", "2 assistant text 2"}, log, "c")
	w.want([]string{"3 deleted_by_application", "4 deleted_by_application"}, `SELECT seq, exclude_reason FROM compactor.messages WHERE excluded ORDER BY seq`)
	w.exec(`INSERT INTO messages (id, chat, sender, body) VALUES (3, 'c', 'human', 'text 3'), (4, 'c', 'bot', 'other')`)
	w.drain()
	w.want([]string{"1#1@1", "2#1@1", "3#1@1", "4#1@2"}, `SELECT id FROM compactor.view('', 'messages:c')`)
	w.want([]string{"1 human text 1", "2 bot text 2", "3 human text 3", "4 bot other"}, seen, "c")
	w.exec(`DELETE FROM messages WHERE chat = 'c'`)
	w.drain()
	w.want(nil, log, "c")
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'again')`)
	w.drain()
	w.want([]string{"6 user again"}, log, "c")
	w.exec(`TRUNCATE messages`)
	w.drain()
	w.want(nil, log, "c")
	w.whole()
}

func TestKeepAndEraseOfDeletedRows(t *testing.T) {
	w := some(t, 4, attach.Keep)
	w.exec(`DELETE FROM messages WHERE id = 2`)
	w.drain()
	w.want([]string{"1 user text 1", "2 assistant text 2", "3 user text 3", "4 assistant text 4"}, log, "c")
	w.want([]string{"1 human text 1", "3 human text 3", "4 bot text 4"}, seen, "c")
	w.whole()
}

func TestEraseOfDeletedRows(t *testing.T) {
	w := some(t, 4, attach.Erase)
	w.exec(`DELETE FROM messages WHERE id = 2`)
	w.drain()
	w.want([]string{"1 user text 1", "3 user text 3", "4 assistant text 4"}, log, "c")
	w.want([]string{"0"}, `SELECT count(*) FROM compactor.message_body WHERE body LIKE '%text 2%'`)
	w.want([]string{"rows were deleted from public.messages"}, `SELECT note FROM compactor.erasures`)
	w.exec(`INSERT INTO messages (id, chat, sender, body) VALUES (2, 'c', 'bot', 'text 2')`) // what is erased does not come back as it was
	w.drain()
	w.want([]string{"1#1@1", "3#1@1", "4#1@1", "2#1@2"}, `SELECT id FROM compactor.view('', 'messages:c')`)
	w.whole()
}

func TestARowThatIsNoMessageIsAFault(t *testing.T) {
	w := some(t, 2, attach.Exclude)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'narrator', 'It rains.'), ('c', 'human', 'really?'), ('c', 'bot', '')`)
	w.drain()
	w.want([]string{"1 user text 1", "2 assistant text 2", "3 user really?"}, log, "c")
	w.want([]string{"1 human text 1", "2 bot text 2", "3 narrator It rains.", "4 human really?", "5 bot "}, seen, "c")
	n, first, err := w.att.Check(w.Context(), 5, false)
	if err != nil || n != 1 || len(first) != 1 || first[0].Key != "3" || !strings.Contains(first[0].Text, "narrator") {
		t.Errorf("check: %d %v %v", n, first, err)
	}
	w.exec(`UPDATE messages SET sender = 'bot' WHERE id = 3`)
	w.exec(`UPDATE messages SET body = 'Yes.' WHERE id = 5`) // created empty, filled later
	w.drain()
	w.want([]string{"1 human text 1", "2 bot text 2", "3 bot It rains.", "4 human really?", "5 bot Yes."}, seen, "c")
	if n, first, err = w.att.Check(w.Context(), 5, false); n != 1 || !strings.Contains(first[0].Text, "before an earlier row") {
		t.Errorf("check: %d %v %v", n, first, err)
	}
}

func TestRowsThatNoTriggerSawAreFound(t *testing.T) {
	w := some(t, 4, attach.Exclude)
	w.exec(`SET session_replication_role = replica`)
	w.exec(`DELETE FROM messages WHERE id = 2`)
	w.exec(`UPDATE messages SET body = 'another' WHERE id = 3`)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'new')`)
	w.exec(`SET session_replication_role = origin`)
	w.drain()
	n, first, err := w.att.Check(w.Context(), 5, true)
	want := []attach.Difference{{"c", "2", "is deleted, its messages are not"}, {"c", "3", "was changed"}, {"c", "5", "is not in the log"}}
	if diff := cmp.Diff(want, first); err != nil || n != 3 || diff != "" {
		t.Errorf("check: %d %v\n%s", n, err, diff)
	}
	w.drain()
	w.whole()
	w.want([]string{"1 human text 1", "3 human another", "4 bot text 4", "5 human new"}, seen, "c")
}

func TestDetachLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.exec(chats)
	objects := `SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgrelid = 'messages'::regclass
		UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_'
		UNION ALL SELECT 'acl ' || relacl::text FROM pg_class WHERE oid = 'messages'::regclass`
	before := w.rows(objects)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'hi')`)
	w.attach(generic)
	w.drain()
	if err := w.att.Detach(w.Context(), false); err != nil {
		t.Fatal(err)
	}
	w.want(before, objects)
	w.want([]string{"1 c human hi"}, `SELECT id, chat, sender, body FROM messages`)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'after')`)
	if all, err := attach.List(w.Context(), w.st); err != nil || len(all) > 0 {
		t.Errorf("list: %v %v", all, err)
	}
	w.attach(generic) // again, on the log that is there
	w.drain()
	w.want([]string{"1 user hi", "2 user after"}, log, "c")
	w.whole()
}

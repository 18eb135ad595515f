package attach_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sessionstore/compactor/store/attach"
	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// BenchmarkEditGrowth edits one row of a session, and the first half of its rows, before there are statistics of the log: the time must not
// grow faster than the session.
func BenchmarkEditGrowth(b *testing.B) {
	for name, where := range map[string]string{"one": `id = 100`, "half": `id <= (SELECT max(id) / 2 FROM messages)`} {
		b.Run(name, func(b *testing.B) {
			edits := 0
			growth.Report(b, 500, 8, func(n int) func() {
				w := benchWorld(b)
				w.exec(chats)
				w.exec(`INSERT INTO messages (chat, sender, body) SELECT 'c', CASE i % 2 WHEN 1 THEN 'human' ELSE 'bot' END, 'text ' || i FROM generate_series(1, $1) i`, n)
				w.attach(generic)
				w.drain()
				return func() {
					edits++
					w.exec(`UPDATE messages SET body = $1 WHERE `+where, fmt.Sprint("edited ", edits))
					w.drain()
				}
			})
		})
	}
}

// The view is read by a merge of messages and words, whatever the function that calls it has set. Postgres keeps the plan for
// later calls.
func TestTheViewIsReadByAMergeForEachCaller(t *testing.T) {
	w := some(t, 40, "keep")
	var plans []string
	c := w.app.Config().Copy()
	c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { plans = append(plans, n.Message) }
	conn, err := pgx.ConnectConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on; SET client_min_messages = log`); err != nil {
		t.Skip(err) // only superusers may
	}
	for _, sql := range []string{`SELECT * FROM compactor.attached_view('', 'messages:c')`, `SELECT * FROM compactor.view_text('', 'messages:c')`} {
		plans = nil
		if _, err := conn.Exec(t.Context(), `SET enable_mergejoin = off; `+sql); err != nil {
			t.Fatal(err)
		}
		read := strings.Join(plans, "\n")
		if !strings.Contains(read, "view_words") || !strings.Contains(read, "Merge ") {
			t.Errorf("%s:\n%s", sql, read)
		}
	}
}

// Edits in tool groups.
func TestEditsInToolGroups(t *testing.T) {
	w := callsWorld(t, attach.Exclude)
	w.exec(`UPDATE messages SET body = 'edited b' WHERE id = 5`)
	w.drain()
	w.once("c")
	w.want([]string{"1", "2", "3", "4", "5", "6"}, `SELECT split_part(id, '#', 1) FROM compactor.view('', 'messages:c')`)
	w.exec(`UPDATE messages SET body = 'edited a' WHERE id = 4`)
	w.drain()
	w.once("c")
	w.want([]string{"1", "2", "3", "4", "5", "6"}, `SELECT split_part(id, '#', 1) FROM compactor.view('', 'messages:c')`)
	w.exec(`UPDATE messages SET body = 'thinking' WHERE id = 3`)
	w.drain()
	w.once("c")
	w.want([]string{"1", "2", "3", "4", "5", "6"}, `SELECT split_part(id, '#', 1) FROM compactor.view('', 'messages:c')`)
	w.exec(`UPDATE messages SET body = 'be rude' WHERE id = 1`)
	w.drain()
	w.once("c")
	w.want([]string{"1", "2", "3", "4", "5", "6"}, `SELECT split_part(id, '#', 1) FROM compactor.view('', 'messages:c')`)
	w.exec(`UPDATE messages SET calls = '[{"id":"z","type":"function","function":{"name":"f","arguments":"{}"}}]', body = '' WHERE id = 3`)
	w.drain()
	t.Log(w.rows(seen, "c"))
	w.exec(`UPDATE messages SET sender = 'tool', answers = NULL WHERE id = 6`)
	if err := w.drained(); err != nil {
		t.Error(err)
	}
	t.Log(w.rows(seen, "c"))
}

// An edit of the only result of a call.
func TestAnEditedResult(t *testing.T) {
	w := newWorld(t)
	w.exec(`CREATE TABLE messages (id serial PRIMARY KEY, chat text NOT NULL, sender text NOT NULL, body text NOT NULL, calls jsonb, answers text)`)
	s := generic
	s.Time, s.ToolCalls, s.ToolCallID = "", "calls", "answers"
	w.attach(s)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'human', 'question')`)
	w.exec(`INSERT INTO messages (chat, sender, body, calls) VALUES ('c', 'bot', '', '[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]')`)
	w.exec(`INSERT INTO messages (chat, sender, body, answers) VALUES ('c', 'tool', 'result a', 'a')`)
	w.exec(`INSERT INTO messages (chat, sender, body) VALUES ('c', 'bot', 'answer')`)
	w.drain()
	w.once("c")
	w.exec(`UPDATE messages SET body = 'result a, edited' WHERE id = 3`)
	w.drain()
	w.want([]string{"user question", "assistant ", "tool result a, edited", "assistant answer"}, `SELECT role, coalesce(message->>'content', '') FROM compactor.view('', 'messages:c')`)
	w.once("c")
}

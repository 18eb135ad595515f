package attach_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sessionstore/compactor/strategies/strategiestest/growth"
)

// BenchmarkEditGrowth edits a row of a session before there are statistics of the log: the time must not grow faster than the session.
func BenchmarkEditGrowth(b *testing.B) {
	edits := 0
	growth.Report(b, 500, 8, func(n int) func() {
		w := benchWorld(b)
		w.exec(chats)
		w.exec(`INSERT INTO messages (chat, sender, body) SELECT 'c', CASE i % 2 WHEN 1 THEN 'human' ELSE 'bot' END, 'text ' || i FROM generate_series(1, $1) i`, n)
		w.attach(generic)
		w.drain()
		return func() {
			edits++
			w.exec(`UPDATE messages SET body = $1 WHERE id = 100`, fmt.Sprint("edited ", edits))
			w.drain()
		}
	})
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

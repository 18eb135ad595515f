package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store/storetest"
)

// longChat attaches a table of nine turns and summarizes the first five.
func longChat(t *testing.T, ddl, mode string) *application {
	a := newApplication(t, ddl)
	startWorker(t, a.db, nil)
	for n := range 9 {
		a.exec(`INSERT INTO chat (chat, role, body) VALUES ('c', 'user', $1), ('c', 'assistant', $2)`, fmt.Sprintf("question %d", n), strings.Repeat("An answer of some length. ", 60))
	}
	invoke(t, a.db, "attach", "chat", "--session=chat", "--role=role", "--content=body", "--on-delete="+mode, "--apply").want(t, 0)
	invoke(t, a.db, "compact", "chat:c", "--from=view", "--strategy", "summarization:target_count=8,threshold=0").want(t, 0, "applied")
	return a
}

const (
	chatTable = `CREATE TABLE chat (id serial PRIMARY KEY, chat text NOT NULL, role text NOT NULL, body text NOT NULL)`
	chatView  = `SELECT id || ' ' || left(body, 12) FROM compactor_chat.chat WHERE chat = 'c' ORDER BY id`
)

func (a *application) summarized(when string) {
	a.Helper()
	got := a.texts(chatView)
	n := 0
	for _, r := range got {
		if strings.Contains(r, "[CONVERSATI") || strings.Contains(r, "SUMMARY") {
			n++
		}
	}
	if n != 1 {
		a.Errorf("%s: %d summaries in the view: %q", when, n, got)
	}
}

// The summary stays while the deletion of the row whose key it has waits, and when only that row is deleted.
func TestTheSummaryOutlivesItsFirstRow(t *testing.T) {
	a := longChat(t, chatTable, "exclude")
	a.summarized("first")
	a.exec(`DELETE FROM chat WHERE id = 1`)
	a.summarized("before the drain")
	invoke(t, a.db, "compact", "chat:c", "--from=view", "--strategy", "strip_media")
	a.summarized("after the drain")
	a.exec(`UPDATE chat SET chat = 'd' WHERE id = 2`)
	a.summarized("moved, before the drain")
	a.exec(`DELETE FROM chat WHERE id <= 4`)
	a.summarized("before the drain")
}

// With keep, rows that a clean-up job deletes stay in the log, and so the summary in the view, once and before what comes after it.
func TestTheSummaryOfDeletedRowsThatAreKept(t *testing.T) {
	a := longChat(t, chatTable, "keep")
	a.exec(`DELETE FROM chat WHERE id <= 12`)
	invoke(t, a.db, "compact", "chat:c", "--from=view", "--strategy", "strip_media")
	a.summarized("after a clean-up")
	for _, r := range a.texts(`SELECT id::text FROM compactor_chat.chat WHERE chat = 'c' GROUP BY id HAVING count(*) > 1`) {
		t.Errorf("two rows have the key %s", r)
	}
	a.exec(`DELETE FROM chat`)
}

// A column in which no summary fits is refused.
func TestASummaryInANarrowColumn(t *testing.T) {
	a := newApplication(t, `CREATE TABLE chat (id serial PRIMARY KEY, chat text NOT NULL, role varchar(10) NOT NULL, body varchar(200) NOT NULL)`)
	invoke(t, a.db, "attach", "chat", "--session=chat", "--role=role", "--content=body", "--on-delete=keep").want(t, 2, "at most 200 characters")
}

// A table that is empty when it is attached, with roles of its own as an enum.
func TestASummaryInATableOfOwnRoles(t *testing.T) {
	for name, ddl := range map[string]string{
		"enum": `CREATE TYPE speaker AS ENUM ('human', 'bot'); CREATE TABLE chat (id serial PRIMARY KEY, chat text NOT NULL, role speaker NOT NULL, body text NOT NULL)`,
		"text": `CREATE TABLE chat (id serial PRIMARY KEY, chat text NOT NULL, role text NOT NULL CHECK (role IN ('human', 'bot')), body text NOT NULL)`,
	} {
		t.Run(name, func(t *testing.T) {
			a := newApplication(t, ddl)
			startWorker(t, a.db, nil)
			invoke(t, a.db, "attach", "chat", "--session=chat", "--role=role", "--content=body", "--on-delete=keep", "--apply").want(t, 0)
			for n := range 9 {
				a.exec(`INSERT INTO chat (chat, role, body) VALUES ('c', 'human', $1), ('c', 'bot', $2)`, fmt.Sprintf("question %d", n), strings.Repeat("An answer of some length. ", 60))
			}
			invoke(t, a.db, "attach", "chat", "--check")
			startRoles(t, a.db, nil, func(app *App) ([]Role, error) { s, err := app.SchedulerRole(); return []Role{s}, err })
			storetest.Await(t, "drained", func() bool { return len(a.texts(`SELECT id FROM compactor.sessions WHERE last_seq = 18`)) == 1 })
			invoke(t, a.db, "compact", "chat:c", "--from=view", "--strategy", "summarization:target_count=8,threshold=0").want(t, 0, "applied")
			a.summarized("own roles")
			if got := a.texts(`SELECT DISTINCT role::text FROM compactor_chat.chat ORDER BY 1`); strings.Join(got, " ") != "bot human" {
				t.Errorf("roles in the view: %q", got)
			}
		})
	}
}

// An application's login that may read the table alone reads a view with a summary.
func TestALoginWithoutRightsReadsASummary(t *testing.T) {
	for _, x := range []string{"generic", "vercel", "langchain"} {
		t.Run(x, func(t *testing.T) {
			p := attachedTables[x]
			a := newApplication(t, p.ddl...)
			startWorker(t, a.db, nil)
			for n := range 8 {
				for _, s := range p.turn {
					args := []any{fmt.Sprint(n), strings.Repeat("The warehouse in Leipzig holds nine of them. ", 30)}
					if !strings.Contains(s, "$2") {
						args = args[:1]
					}
					a.exec(s, args...)
				}
			}
			role := fmt.Sprintf("app3_%d", a.conn.PgConn().PID())
			a.exec(`CREATE ROLE ` + role + ` NOLOGIN`)
			t.Cleanup(func() {
				_, _ = a.conn.Exec(storetest.Context(t), `RESET ROLE; DROP OWNED BY `+role+`; DROP ROLE `+role)
			})
			a.exec(`GRANT USAGE ON SCHEMA public TO ` + role + `; GRANT SELECT ON "` + p.table + `" TO ` + role)
			invoke(t, a.db, append([]string{"attach", p.table, "--on-delete=keep", "--apply"}, p.flags...)...).want(t, 0)
			session := a.texts(`SELECT id FROM compactor.sessions`)[0]
			invoke(t, a.db, "compact", session, "--strategy", "preserve_recent_turns:turns=2").want(t, 0, "applied")
			schema := a.texts(`SELECT in_schema FROM compactor.attachments`)[0]
			a.exec(`SET ROLE ` + role)
			rows, _ := a.conn.Query(t.Context(), fmt.Sprintf(p.read, schema+`."`+p.table+`"`))
			if _, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
				t.Error(err)
			}
		})
	}
}

// The application's own escaped NUL in a row that a stub or a summary stands for.
func TestAnEscapedNULInARowThatIsShortened(t *testing.T) {
	for _, where := range []string{"question", "result"} {
		t.Run(where, func(t *testing.T) {
			p := attachedTables["agents-sdk"]
			a := newApplication(t, p.ddl...)
			startWorker(t, a.db, nil)
			for n := range 8 {
				for _, s := range p.turn {
					args := []any{fmt.Sprint(n), strings.Repeat("The warehouse in Leipzig holds nine of them. ", 30)}
					if !strings.Contains(s, "$2") {
						args = args[:1]
					}
					a.exec(s, args...)
				}
			}
			if where == "question" {
				a.exec(`UPDATE agent_messages SET message_data = '{"content":"nul \u0000 here","role":"user"}' WHERE id = 1`)
			} else {
				a.exec(`UPDATE agent_messages SET message_data = replace(message_data, 'Leipzig', 'Leip\u0000zig') WHERE message_data LIKE '%function_call_output%'`)
			}
			invoke(t, a.db, "attach", "agent_messages", "--on-delete=keep", "--apply").want(t, 0)
			if where == "question" {
				invoke(t, a.db, "compact", "agent_messages:s", "--strategy", "preserve_recent_turns:turns=2").want(t, 0, "applied")
			} else {
				invoke(t, a.db, "compact", "agent_messages:s", "--strategy", "compact_tool_results:keep_last_n=2,replacement=[{result_length} characters of {tool_name}]").want(t, 0, "applied")
			}
			rows, _ := a.conn.Query(t.Context(), fmt.Sprintf(p.read, "compactor_agent_messages.agent_messages"))
			got, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			if where == "question" && !strings.Contains(got[0], "SUMMARY") {
				t.Errorf("no summary: %s", clip(got))
			}
			if where == "result" && !strings.Contains(strings.Join(got, " "), "characters of") {
				t.Errorf("no stub: %s", clip(got))
			}
		})
	}
}

// Rows that were summarized, deleted and inserted again are in the view.
func TestSummarizedRowsThatComeBack(t *testing.T) {
	a := longChat(t, chatTable, "exclude")
	a.exec(`CREATE TABLE saved AS TABLE chat`)
	a.exec(`DELETE FROM chat`)
	drain := func() { invoke(t, a.db, "compact", "chat:c", "--from=view", "--strategy", "strip_media") }
	drain()
	if got := a.texts(chatView); len(got) > 0 {
		t.Errorf("%q", got)
	}
	a.exec(`INSERT INTO chat SELECT * FROM saved`)
	want := a.texts(`SELECT id || ' ' || left(body, 12) FROM chat WHERE chat = 'c' ORDER BY id`)
	if got := a.texts(chatView); strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("before a drain: %q, want %q", got, want)
	}
	drain()
	if got := a.texts(chatView); strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("after a drain: %q, want %q", got, want)
	}
}

// A table by its name, with capitals or with another --name, is found by --check and detach.
func TestATableByItsName(t *testing.T) {
	a := newApplication(t, `CREATE TABLE "Chat Log" (id serial PRIMARY KEY, chat text NOT NULL, role text NOT NULL, body text NOT NULL)`)
	invoke(t, a.db, "attach", "Chat Log", "--name=mine", "--session=chat", "--role=role", "--content=body", "--on-delete=keep", "--apply").want(t, 0)
	if r := invoke(t, a.db, "attach", "Chat Log", "--check"); r.code != 0 {
		t.Error(r)
	}
	if r := invoke(t, a.db, "detach", "Chat Log"); r.code != 0 {
		t.Error(r)
	}
}

// A new user makes a table on the database of dev, whose login has the name of the product's schema, and attaches it.
func TestATableMadeByTheProductsLogin(t *testing.T) {
	a := newApplication(t)
	a.exec(`RESET search_path`)
	a.exec(`CREATE TABLE n8n_chat_histories (id serial PRIMARY KEY, session_id varchar(255) NOT NULL, message jsonb NOT NULL)`)
	if got := a.texts(`SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'n8n_chat_histories'`); got[0] == "public" {
		t.Skip("the login has another name")
	}
	invoke(t, a.db, "attach", "n8n_chat_histories", "--on-delete=keep").want(t, 2, "search_path", "public.n8n_chat_histories")
}

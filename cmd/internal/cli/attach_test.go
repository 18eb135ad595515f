package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/deploy/suites"
	"github.com/sessionstore/compactor/store/storetest"
)

// application is the connection of an application with a table.
type application struct {
	*testing.T
	db   []string
	conn *pgx.Conn
}

func newApplication(t *testing.T, statements ...string) *application {
	t.Helper()
	t.Parallel()
	db := database(t)
	conn, err := pgx.Connect(t.Context(), strings.TrimPrefix(db[0], "DATABASE_URL="))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(storetest.Context(t)) })
	a := &application{t, db, conn}
	a.exec(`SET search_path = public`)
	for _, s := range statements {
		a.exec(s)
	}
	return a
}

func (a *application) exec(sql string, args ...any) {
	a.Helper()
	if _, err := a.conn.Exec(a.Context(), sql, args...); err != nil {
		a.Fatalf("%s: %v", sql, err)
	}
}

// texts returns the rows of a query of one column.
func (a *application) texts(sql string, args ...any) []string {
	a.Helper()
	rows, _ := a.conn.Query(a.Context(), sql, args...)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		a.Fatalf("%s: %v", sql, err)
	}
	return out
}

// attachedTables are tables as the programs make them, with a turn of an agent in each: a question, two calls at once, their results and an
// answer. turn gets the number of the turn as $1, a long result as $2; read selects the messages of the prompt as the program does.
var attachedTables = map[string]struct {
	ddl, turn []string
	table     string
	flags     []string
	read      string
}{
	"langchain": {
		ddl: []string{`CREATE TABLE n8n_chat_histories (id serial PRIMARY KEY, session_id varchar(255) NOT NULL, message jsonb NOT NULL)`},
		turn: []string{
			`INSERT INTO n8n_chat_histories (session_id, message) VALUES ('s', jsonb_build_object('type', 'human', 'content', 'question ' || $1::text, 'additional_kwargs', '{}'::jsonb, 'response_metadata', '{}'::jsonb))`,
			`INSERT INTO n8n_chat_histories (session_id, message) VALUES ('s', jsonb_build_object('type', 'ai', 'content', '', 'mine', 'kept', 'tool_calls',
				jsonb_build_array(jsonb_build_object('id', 'a' || $1::text, 'name', 'find', 'args', '{"q": 1}'::jsonb), jsonb_build_object('id', 'b' || $1::text, 'name', 'find', 'args', '{}'::jsonb))))`,
			`INSERT INTO n8n_chat_histories (session_id, message) SELECT 's', jsonb_build_object('type', 'tool', 'name', 'find', 'content', $2::text, 'tool_call_id', x || $1::text) FROM unnest('{a,b}'::text[]) x`,
			`INSERT INTO n8n_chat_histories (session_id, message) VALUES ('s', jsonb_build_object('type', 'ai', 'content', 'answer ' || $1::text))`,
		},
		table: "n8n_chat_histories", read: `SELECT message::text FROM %s WHERE session_id = 's' ORDER BY id`,
	},
	"langchain in Python": {
		ddl: []string{`CREATE TABLE history (id serial PRIMARY KEY, session_id uuid NOT NULL, message jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now())`, `CREATE INDEX ON history (session_id)`},
		turn: []string{
			`INSERT INTO history (session_id, message) VALUES ('7d8c1b9e-0000-4000-8000-000000000001', jsonb_build_object('type', 'human', 'data', jsonb_build_object('type', 'human', 'content', 'question ' || $1::text, 'example', false)))`,
			`INSERT INTO history (session_id, message) VALUES ('7d8c1b9e-0000-4000-8000-000000000001', jsonb_build_object('type', 'ai', 'data', jsonb_build_object('type', 'ai', 'content', '', 'tool_calls',
				jsonb_build_array(jsonb_build_object('id', 'a' || $1::text, 'name', 'find', 'args', '{}'::jsonb, 'type', 'tool_call')))))`,
			`INSERT INTO history (session_id, message) SELECT '7d8c1b9e-0000-4000-8000-000000000001', jsonb_build_object('type', 'tool', 'data', jsonb_build_object('type', 'tool', 'content', $2::text, 'tool_call_id', 'a' || $1::text))`,
			`INSERT INTO history (session_id, message) VALUES ('7d8c1b9e-0000-4000-8000-000000000001', jsonb_build_object('type', 'ai', 'data', jsonb_build_object('type', 'ai', 'content', 'answer ' || $1::text)))`,
		},
		table: "history", flags: []string{"--time=created_at"}, read: `SELECT message::text FROM %s WHERE session_id = '7d8c1b9e-0000-4000-8000-000000000001' ORDER BY id`,
	},
	"agents-sdk": {
		ddl: []string{
			`CREATE TABLE agent_sessions (session_id varchar PRIMARY KEY, created_at timestamp DEFAULT CURRENT_TIMESTAMP NOT NULL)`, `INSERT INTO agent_sessions VALUES ('s')`,
			`CREATE TABLE agent_messages (id serial PRIMARY KEY, session_id varchar NOT NULL REFERENCES agent_sessions ON DELETE CASCADE, message_data text NOT NULL, created_at timestamp DEFAULT CURRENT_TIMESTAMP NOT NULL)`,
			`CREATE INDEX ON agent_messages (session_id, created_at)`,
		},
		turn: []string{
			`INSERT INTO agent_messages (session_id, message_data) VALUES ('s', json_build_object('content', 'question ' || $1::text, 'role', 'user')::text)`,
			`INSERT INTO agent_messages (session_id, message_data) SELECT 's', json_build_object('arguments', '{"q": 1}', 'call_id', x || $1::text, 'name', 'find', 'type', 'function_call', 'id', 'fc_' || x || $1::text, 'status', 'completed')::text FROM unnest('{a,b}'::text[]) x`,
			`INSERT INTO agent_messages (session_id, message_data) SELECT 's', json_build_object('call_id', x || $1::text, 'output', $2::text, 'type', 'function_call_output')::text FROM unnest('{a,b}'::text[]) x`,
			`INSERT INTO agent_messages (session_id, message_data) VALUES ('s', json_build_object('id', 'msg_' || $1::text, 'content', json_build_array(json_build_object('annotations', '[]'::json, 'text', 'answer ' || $1::text, 'type', 'output_text')), 'role', 'assistant', 'status', 'completed', 'type', 'message')::text)`,
		},
		table: "agent_messages", read: `SELECT message_data FROM %s WHERE session_id = 's' ORDER BY created_at ASC, id ASC`,
	},
	"vercel": {
		ddl: []string{
			`CREATE TABLE "Chat" (id uuid PRIMARY KEY)`, `INSERT INTO "Chat" VALUES ('7d8c1b9e-0000-4000-8000-000000000001')`,
			`CREATE TABLE "Message_v2" (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), "chatId" uuid NOT NULL REFERENCES "Chat"(id), role varchar NOT NULL, parts json NOT NULL, attachments json NOT NULL, "createdAt" timestamp NOT NULL)`,
		},
		turn: []string{
			`INSERT INTO "Message_v2" ("chatId", role, parts, attachments, "createdAt") VALUES ('7d8c1b9e-0000-4000-8000-000000000001', 'user', json_build_array(json_build_object('type', 'text', 'text', 'question ' || $1::text)), '[]', clock_timestamp())`,
			`INSERT INTO "Message_v2" ("chatId", role, parts, attachments, "createdAt") VALUES ('7d8c1b9e-0000-4000-8000-000000000001', 'assistant', json_build_array(
				json_build_object('type', 'step-start'),
				json_build_object('type', 'tool-find', 'toolCallId', 'a' || $1::text, 'state', 'output-available', 'input', '{"q": 1}'::json, 'output', json_build_object('found', $2::text)),
				json_build_object('type', 'tool-find', 'toolCallId', 'b' || $1::text, 'state', 'output-available', 'input', '{}'::json, 'output', $2::text),
				json_build_object('type', 'step-start'), json_build_object('type', 'text', 'text', 'answer ' || $1::text, 'state', 'done')), '[]', clock_timestamp())`,
		},
		table: "Message_v2", read: `SELECT json_build_object('role', role, 'parts', parts)::text FROM %s WHERE "chatId" = '7d8c1b9e-0000-4000-8000-000000000001' ORDER BY "createdAt" ASC`,
	},
	"mastra": {
		ddl: []string{`CREATE TABLE mastra_messages (id text PRIMARY KEY, thread_id text NOT NULL, content text NOT NULL, role text NOT NULL, type text NOT NULL, "createdAt" timestamp NOT NULL, "resourceId" text, "createdAtZ" timestamptz DEFAULT clock_timestamp())`},
		turn: []string{
			`INSERT INTO mastra_messages (id, thread_id, content, role, type, "createdAt") VALUES ('q' || $1::text, 's', json_build_object('format', 2, 'parts', json_build_array(json_build_object('type', 'text', 'text', 'question ' || $1::text)), 'content', 'question ' || $1::text)::text, 'user', 'v2', clock_timestamp())`,
			`INSERT INTO mastra_messages (id, thread_id, content, role, type, "createdAt") VALUES ('a' || $1::text, 's', json_build_object('format', 2, 'parts', json_build_array(
				json_build_object('type', 'step-start'),
				json_build_object('type', 'tool-invocation', 'toolInvocation', json_build_object('state', 'result', 'step', 0, 'toolCallId', 'a' || $1::text, 'toolName', 'find', 'args', '{"q": 1}'::json, 'result', json_build_object('found', $2::text))),
				json_build_object('type', 'step-start'), json_build_object('type', 'text', 'text', 'answer ' || $1::text)), 'content', 'answer ' || $1::text)::text, 'assistant', 'v2', clock_timestamp())`,
		},
		table: "mastra_messages", read: `SELECT json_build_object('role', role, 'content', content::json)::text FROM %s WHERE thread_id = 's' ORDER BY "createdAt" ASC, id ASC`,
	},
	"laravel-ai": {
		ddl: []string{
			`CREATE TABLE agent_conversation_messages (id varchar(36) PRIMARY KEY, conversation_id varchar(36) NOT NULL, participant_type varchar(255), participant_id varchar(255), agent varchar(255) NOT NULL,
			role varchar(25) NOT NULL, content text NOT NULL, attachments text NOT NULL, steps text NOT NULL, usage text NOT NULL, meta text NOT NULL, approval_state text, created_at timestamp, updated_at timestamp)`,
			`CREATE INDEX ON agent_conversation_messages (conversation_id)`,
		},
		turn: []string{
			`INSERT INTO agent_conversation_messages VALUES (lpad($1::text, 3, '0') || 'a', 's', NULL, NULL, 'App', 'user', 'question ' || $1::text, '[]', '[]', '[]', '[]', NULL, now(), now())`,
			`INSERT INTO agent_conversation_messages VALUES (lpad($1::text, 3, '0') || 'b', 's', NULL, NULL, 'App', 'assistant', 'answer ' || $1::text, '[]', json_build_array(
				json_build_object('content', '', 'reasoning', '', 'replay_blocks', '[]'::json, 'tool_calls', json_build_array(json_build_object('id', 'a' || $1::text, 'name', 'find', 'arguments', '{"q": 1}'::json, 'result', $2::text))),
				json_build_object('content', 'answer ' || $1::text, 'reasoning', '', 'replay_blocks', '[]'::json, 'tool_calls', '[]'::json))::text, '[]', '{"provider": "x"}', NULL, now(), now())`,
		},
		table: "agent_conversation_messages", read: `SELECT json_build_object('role', role, 'content', content, 'steps', steps::json, 'meta', meta)::text FROM %s WHERE conversation_id = 's' ORDER BY id`,
	},
	"ruby-llm": {
		ddl: []string{
			`CREATE TABLE chats (id bigserial PRIMARY KEY)`, `INSERT INTO chats DEFAULT VALUES`,
			`CREATE TABLE messages (id bigserial PRIMARY KEY, role varchar NOT NULL, content text, content_raw json, thinking_text text, chat_id bigint NOT NULL REFERENCES chats, tool_call_id bigint, created_at timestamp NOT NULL DEFAULT now(), updated_at timestamp NOT NULL DEFAULT now())`,
			`CREATE INDEX ON messages (chat_id)`,
			`CREATE TABLE tool_calls (id bigserial PRIMARY KEY, message_id bigint NOT NULL REFERENCES messages, tool_call_id varchar NOT NULL UNIQUE, name varchar NOT NULL, arguments jsonb DEFAULT '{}')`,
		},
		turn: []string{
			`INSERT INTO messages (chat_id, role, content) VALUES (1, 'user', 'question ' || $1::text)`,
			`INSERT INTO messages (chat_id, role, content) SELECT 1, 'assistant', '' WHERE $1::text <> ''`, // empty at first, as it does
			`INSERT INTO tool_calls (message_id, tool_call_id, name, arguments) SELECT max(id), 'a' || $1::text, 'find', '{"q": 1}' FROM messages`,
			`INSERT INTO messages (chat_id, role, content, tool_call_id) SELECT 1, 'tool', $2::text, id FROM tool_calls WHERE tool_call_id = 'a' || $1::text`,
			`INSERT INTO messages (chat_id, role, content) SELECT 1, 'assistant', '' WHERE $1::text <> ''`,
			`UPDATE messages SET content = 'answer ' || $1::text WHERE id = (SELECT max(id) FROM messages)`,
		},
		table: "messages", read: `SELECT json_build_object('role', role, 'content', content, 'call', tool_call_id)::text FROM %s WHERE chat_id = 1 ORDER BY id`,
	},
	"generic": {
		ddl: []string{`CREATE TABLE "chat log" (nr bigserial PRIMARY KEY, chat int NOT NULL, "who says" text NOT NULL, body text NOT NULL, calls jsonb, answers text, UNIQUE (chat, nr))`},
		turn: []string{
			`INSERT INTO "chat log" (chat, "who says", body) VALUES (5, 'Customer', 'question ' || $1::text)`,
			`INSERT INTO "chat log" (chat, "who says", body, calls) VALUES (5, 'Agent', '', jsonb_build_array(jsonb_build_object('id', 'a' || $1::text, 'type', 'function', 'function', '{"name": "find", "arguments": "{}"}'::jsonb)))`,
			`INSERT INTO "chat log" (chat, "who says", body, answers) VALUES (5, 'Result', $2::text, 'a' || $1::text)`,
			`INSERT INTO "chat log" (chat, "who says", body) VALUES (5, 'Agent', 'answer ' || $1::text)`,
		},
		table: "chat log", read: `SELECT json_build_object('r', "who says", 'b', body, 'calls', calls, 'answers', answers)::text FROM %s WHERE chat = 5 ORDER BY nr`,
		flags: []string{"--session=chat", "--role=who says", "--content=body", "--tool-calls=calls", "--tool-call-id=answers", "--role-map=customer=user,agent=assistant,result=tool"},
	},
}

func TestAttachedTablesAreCompacted(t *testing.T) {
	t.Parallel()
	for name, x := range attachedTables {
		t.Run(name, func(t *testing.T) {
			a := newApplication(t, x.ddl...)
			startWorker(t, a.db, nil)
			turn := func(n int) {
				for _, s := range x.turn {
					// Each statement has those of the parameters that it names.
					args := []any{fmt.Sprint(n), fmt.Sprintf("result %d: %s", n, strings.Repeat("The warehouse in Leipzig holds nine of them. ", 30))}
					if !strings.Contains(s, "$2") {
						args = args[:1]
					}
					a.exec(s, args...)
				}
			}
			for n := range 8 {
				turn(n)
			}
			native := fmt.Sprintf(x.read, `public."`+x.table+`"`)
			before := a.texts(native)
			args := append([]string{"attach", "public." + x.table, "--on-delete=exclude"}, x.flags...)
			if invoke(t, a.db, args...).want(t, 0, "CREATE TRIGGER"); len(a.texts(`SELECT name FROM compactor.attachments`)) > 0 {
				t.Fatal("attach without --apply attaches")
			}
			out := decode[struct {
				Schema     string
				Attachment struct{ Name, Preset string }
				Status     struct{ Rows, Messages, Faults int }
			}](t, invoke(t, a.db, append(args, "--apply", "--json")...).want(t, 0))
			if out.Status.Rows != len(before) || out.Status.Faults > 0 || !strings.HasPrefix(name, out.Attachment.Preset) {
				t.Fatalf("%+v", out)
			}
			viewed := fmt.Sprintf(x.read, out.Schema+`."`+x.table+`"`)
			session := a.texts(`SELECT id FROM compactor.sessions`)[0]
			if diff := cmp.Diff(before, a.texts(viewed)); diff != "" {
				t.Fatalf("the view before a run differs from the table:\n%s", diff)
			}

			// Results of tools become one line each; what is beside them in their rows stays.
			invoke(t, a.db, "compact", session, "--strategy", "compact_tool_results:keep_last_n=2,replacement=[{result_length} characters of {tool_name}]").want(t, 0, "applied")
			stubbed := a.texts(viewed)
			if len(stubbed) != len(before) {
				t.Fatalf("%d rows, want %d:\n%s", len(stubbed), len(before), clip(stubbed))
			}
			changed := 0
			for i := range stubbed {
				if stubbed[i] != before[i] {
					changed++
					if len(stubbed[i]) > len(before[i])-500 {
						t.Errorf("row %d is not shorter: %s", i, stubbed[i])
					}
				}
			}
			if changed == 0 || stubbed[len(stubbed)-1] != before[len(before)-1] {
				t.Errorf("changed %d rows:\n%s", changed, clip(stubbed))
			}
			t.Logf("a stub: %s", firstChanged(before, stubbed))

			// A summary is the first row, and all behind it are as they are in the table.
			turn(8) // the run reads it first
			invoke(t, a.db, "compact", session, "--strategy", "preserve_recent_turns:turns=2").want(t, 0, "applied")
			summed := a.texts(viewed)
			rest := a.texts(native)
			if len(summed) >= len(rest)/2 || !strings.Contains(summed[0], "SUMMARY") || !json.Valid([]byte(summed[0])) {
				t.Fatalf("%d rows of %d:\n%s", len(summed), len(rest), clip(summed))
			}
			if diff := cmp.Diff(rest[len(rest)-len(summed)+1:], summed[1:]); diff != "" {
				t.Errorf("behind the summary:\n%s", diff)
			}
			t.Logf("the summary: %.300s", summed[0])

			turn(9)
			if diff := cmp.Diff(a.texts(native)[len(rest):], a.texts(viewed)[len(summed):]); diff != "" {
				t.Errorf("a row that was not drained:\n%s", diff)
			}
			invoke(t, a.db, "attach", out.Attachment.Name, "--check").want(t, 0, "differ")
			invoke(t, a.db, "detach", out.Attachment.Name).want(t, 0, "is detached")
			if diff := cmp.Diff(before, a.texts(native)[:len(before)]); diff != "" {
				t.Errorf("the table has changed:\n%s", diff)
			}
		})
	}
}

func firstChanged(before, after []string) string {
	for i := range after {
		if after[i] != before[i] {
			return after[i]
		}
	}
	return ""
}

// clip returns the beginnings of rows.
func clip(rows []string) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%.200s\n", r)
	}
	return b.String()
}

// A session that is deleted row by row has no summary left that speaks of it, whether the summary has the rows or an earlier summary of them.
func TestASummaryLeavesWithItsRows(t *testing.T) {
	x := attachedTables["generic"]
	a := newApplication(t, x.ddl...)
	startWorker(t, a.db, nil)
	for n := range 9 {
		a.exec(`INSERT INTO "chat log" (chat, "who says", body) VALUES (5, 'Customer', $1), (5, 'Agent', $2)`, fmt.Sprintf("question %d", n), strings.Repeat("An answer of some length. ", 60))
	}
	invoke(t, a.db, append([]string{"attach", x.table, "--on-delete=exclude", "--apply"}, x.flags...)...).want(t, 0)
	texts := func() []string {
		return a.texts(`SELECT left(message->>'content', 12) FROM compactor.view('', 'chat_log:5')`)
	}
	compact := []string{"compact", "chat_log:5", "--from=view", "--strategy", "summarization:target_count=10,threshold=0"}
	invoke(t, a.db, compact...).want(t, 0, "applied")
	compact[4] = "summarization:target_count=4,threshold=0"
	invoke(t, a.db, compact...).want(t, 0, "applied")
	if got := texts(); len(got) != 5 || got[0] != "[CONVERSATIO" {
		t.Fatalf("%q", got)
	}
	// An edited row that a summary has is there again, behind the summary.
	a.exec(`UPDATE "chat log" SET body = 'another question' WHERE nr = 3`)
	// The run reads the rows first; it has nothing to do.
	invoke(t, a.db, "compact", "chat_log:5", "--strategy", "strip_media", "--from=view")
	if got := texts(); len(got) != 6 || got[1] != "another ques" {
		t.Errorf("after an edit: %q", got)
	}
	if got := a.texts(`SELECT left(body, 12) FROM compactor_chat_log."chat log" WHERE chat = 5 ORDER BY nr`); len(got) != 6 || got[0] != "[CONVERSATIO" || got[1] != "another ques" {
		t.Errorf("after an edit, in the table's order: %q", got)
	}
	a.exec(`DELETE FROM "chat log" WHERE nr <= 14`)
	invoke(t, a.db, "compact", "chat_log:5", "--strategy", "strip_media", "--from=view")
	if got := texts(); len(got) != 4 || got[0] != "question 7" {
		t.Errorf("after the delete: %q", got)
	}
}

// Rows that are inserted while a server runs are compacted by themselves.
func TestAServerReadsAttachedTables(t *testing.T) {
	x := attachedTables["langchain"]
	a := newApplication(t, x.ddl...)
	invoke(t, a.db, "attach", x.table, "--on-delete=keep", "--apply").want(t, 0, "rows", "waiting      0")
	startRoles(t, a.db, map[string]string{"policy.start_tokens": "600", "policy.target_tokens": "300", "policy.min_gain_tokens": "50", "policy.debounce": "100ms"},
		func(app *App) ([]Role, error) {
			s, err := app.SchedulerRole()
			return []Role{s, app.WorkerRole()}, err
		})
	for range 40 {
		a.exec(`INSERT INTO n8n_chat_histories (session_id, message) VALUES ('s', '{"type": "human", "content": "a question of some length, which is said again and again and again"}'), ('s', '{"type": "ai", "content": "an answer of some length, which is said again and again and again"}')`)
	}
	storetest.Await(t, "the session is compacted", func() bool {
		return len(a.texts(`SELECT message::text FROM compactor_n8n_chat_histories.n8n_chat_histories WHERE session_id = 's'`)) < 40
	})
}

// The history of LangChain itself writes its table and reads the view in its place, as n8n's memory does.
func TestLangChainReadsTheView(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "deploy", "suites", "attach")
	modules := suites.Folder(t, folder)
	a := newApplication(t)
	type message struct {
		Type, Content, Answers string
		Calls                  []string
	}
	history := func(path string, args ...string) (read []message) {
		t.Helper()
		args = append([]string{filepath.Join(folder, "history.mjs"), modules, strings.TrimPrefix(a.db[0], "DATABASE_URL="), path, "langchain_chat_histories"}, args...)
		out, err := exec.CommandContext(t.Context(), "node", args...).Output()
		if err != nil {
			var exit *exec.ExitError
			_ = errors.As(err, &exit)
			t.Fatalf("%v: %s", err, exit.Stderr)
		}
		if len(out) > 0 {
			if err := json.Unmarshal(out, &read); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		return read
	}
	startWorker(t, a.db, nil)
	history("public", "write", "8")
	invoke(t, a.db, "attach", "public.langchain_chat_histories", "--on-delete=exclude", "--apply").want(t, 0, "langchain")
	const view = "compactor_langchain_chat_histories,public"
	whole := history("public", "read")
	if diff := cmp.Diff(whole, history(view, "read")); len(whole) != 32 || diff != "" {
		t.Fatalf("%d messages; before a run, the view differs:\n%s", len(whole), diff)
	}
	invoke(t, a.db, "compact", "langchain_chat_histories:s", "--strategy", "preserve_recent_turns:turns=2").want(t, 0, "applied")
	history(view, "write", "1") // by the view, and not drained yet
	whole, read := history("public", "read"), history(view, "read")
	if len(read) != 1+12 || read[0].Type != "human" || !strings.Contains(read[0].Content, "SUMMARY") {
		t.Fatalf("the prompt: %+v", read)
	}
	if diff := cmp.Diff(whole[len(whole)-12:], read[1:]); diff != "" {
		t.Errorf("behind the summary:\n%s", diff)
	}
	history(view, "clear")
	if read := history(view, "read"); len(read) != 0 {
		t.Errorf("after a clear, before a drain: %+v", read)
	}
	invoke(t, a.db, "compact", "langchain_chat_histories:s") // which reads the rows first
	if left := a.texts(`SELECT id FROM compactor.view('', 'langchain_chat_histories:s')`); len(left) != 0 {
		t.Errorf("after a clear, the view has %q", left)
	}
}

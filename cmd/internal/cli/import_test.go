package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// file writes a file into a folder of its own.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestImportCountsTheViewsThatItRepairs(t *testing.T) {
	t.Parallel()
	db := database(t)
	path := file(t, "open.jsonl", `{"session_id":"open","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"again"}]}`)
	invoke(t, db, "import", path).want(t, 0, "repairs   1 view, 0 characters")
	if got := importedOf(t, invoke(t, db, "import", "--json", path).want(t, 0)); got.Repaired != 0 {
		t.Errorf("again: %d repaired", got.Repaired)
	}
}

// conversation returns a session of n turns as a line of JSONL.
func conversation(id string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"session_id":%q,"model":"gpt-4","messages":[{"role":"system","content":"You help."}`, id)
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("thing %d of %s and more of it. ", i, id), 10)
		fmt.Fprintf(&b, `,{"role":"user","content":%q},{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"look","arguments":"{}"}}]}`, text, i)
		fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"c%d","content":%q},{"role":"assistant","content":"Done %d."}`, i, text, i)
	}
	b.WriteString("]}\n")
	return b.String()
}

func importedOf(t *testing.T, r result) Imported {
	t.Helper()
	got := decode[Imported](t, r)
	if got.Seconds <= 0 {
		t.Errorf("took %v", got.Seconds)
	}
	return got
}

var noTime = cmpopts.IgnoreFields(Imported{}, "Seconds", "Tokens")

func TestImportTwiceAddsNothing(t *testing.T) {
	t.Parallel()
	db := database(t)
	path := file(t, "all.jsonl", conversation("a", 3)+conversation("b", 2)+
		`{"messages":[{"role":"user","content":"no id","created_at":"2025-03-04T05:06:07Z"},{"role":"user","content":"nul \u0000, half \ud800"}]}`+"\n"+
		`{"id":7,"messages":[{"id":"own","role":"user","content":"hello"}]}`)
	want := Imported{Sessions: 4, Messages: 13 + 9 + 2 + 1, New: 25, Counters: []string{"cl100k_base", "o200k_base"}, Repairs: 2, Failures: []Failure{}}
	first := importedOf(t, invoke(t, db, "import", "--json", path).want(t, 0))
	if diff := cmp.Diff(want, first, noTime); diff != "" {
		t.Error(diff)
	}
	if first.Tokens < 500 {
		t.Errorf("%d tokens", first.Tokens)
	}
	want.New = 0
	if diff := cmp.Diff(want, importedOf(t, invoke(t, db, "import", "--json", path).want(t, 0)), noTime); diff != "" {
		t.Errorf("again: %s", diff)
	}
	view := decode[struct{ Messages []store.MessageRow }](t, invoke(t, db, "view", "--json", "all-3").want(t, 0))
	if at := view.Messages[0].CreatedAt.Format("2006-01-02T15:04:05Z"); at != "2025-03-04T05:06:07Z" {
		t.Errorf("created at %s", at)
	}
	invoke(t, db, "view", "7").want(t, 0, "hello")

	// A history that has grown adds its tail.
	longer := file(t, "all.jsonl", conversation("a", 4))
	if got := importedOf(t, invoke(t, db, "import", "--json", longer).want(t, 0)); got.New != 4 {
		t.Errorf("%d new, want the 4 at the end", got.New)
	}
}

func TestImportReportsBrokenLines(t *testing.T) {
	t.Parallel()
	db := database(t)
	path := file(t, "mixed.jsonl", conversation("first", 1)+
		"{\"session_id\":\"cut\",\"messages\":[{\"role\":\"user\",\"content\":\"SECRET\n"+
		`{"session_id":"odd","messages":[{"role":"user","content":"fine"},{"content":"SECRET"}]}`+"\n"+
		`{"session_id":"empty","messages":[]}`+"\n"+conversation("last", 1))
	r := invoke(t, db, "import", path).want(t, exitUsage, "mixed.jsonl: line 2: ", "failures  1")
	if strings.Contains(r.stdout+r.stderr, "SECRET") {
		t.Errorf("content in the output: %s%s", r.stdout, r.stderr)
	}
	invoke(t, db, "view", "last").want(t, exitNotFound, "session last")

	r = invoke(t, db, "import", "--keep-going", "--json", path).want(t, exitUsage, "3 items could not be imported")
	got := importedOf(t, r)
	var reasons []string
	for _, f := range got.Failures {
		reasons = append(reasons, strings.TrimPrefix(f.Where, path+": ")+" "+f.Session)
	}
	if diff := cmp.Diff([]string{"line 2 ", "line 3 ", "session 4 empty"}, reasons, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(fmt.Sprint(got.Failures), "messages[1]: role: missing") {
		t.Errorf("%+v", got.Failures)
	}
	for _, gone := range []string{"cut", "odd", "empty"} {
		invoke(t, db, "view", gone).want(t, exitNotFound)
	}
	invoke(t, db, "view", "last").want(t, 0)
}

func TestALineOfAFileOfMessagesIsSkippedUnlessStrict(t *testing.T) {
	t.Parallel()
	db := database(t)
	line := `{"role":"user","content":"one"}` + "\n"
	invoke(t, db, "import", file(t, "talk.jsonl", line+line)).want(t, 0, "sessions  1")
	invoke(t, db, "view", "talk-1").want(t, 0, "2 messages")
	broken := file(t, "holes.jsonl", line+"nonsense\n"+line)
	invoke(t, db, "import", "--strict", "--keep-going", broken).want(t, exitUsage, "line 2: no valid JSON")
	invoke(t, db, "view", "holes-1").want(t, exitNotFound)
	invoke(t, db, "import", broken).want(t, 0, "SKIPPED", "line 2", "no valid JSON", "sessions  1")
	invoke(t, db, "view", "holes-1").want(t, 0, "2 messages")
	// A message that is invalid is no such line.
	empty := file(t, "empty.jsonl", line+`{"role":"user","content":null}`+"\n"+line)
	invoke(t, db, "import", "--keep-going", empty).want(t, exitUsage, "line 2", "message 1: content: missing")
	invoke(t, db, "view", "empty-1").want(t, exitNotFound)
	// Standard input, and a prefix.
	e := &Env{Environ: db, Stdin: strings.NewReader(line)}
	invokeWith(t, e, "import", "-", "--session-prefix=in/", "--model=gpt-4o").want(t, 0)
	invoke(t, db, "view", "in/stdin-1").want(t, 0, "gpt-4o")
}

func TestImportOfAConflictIsAFailure(t *testing.T) {
	t.Parallel()
	db := database(t)
	say := func(text string) string {
		return file(t, "x.jsonl", fmt.Sprintf(`{"id":"s","messages":[{"id":"m","role":"user","content":%q}]}`, text))
	}
	invoke(t, db, "import", say("one")).want(t, 0)
	r := invoke(t, db, "import", say("SECRET")).want(t, exitUsage, "message m is there already with other content")
	if strings.Contains(r.stdout+r.stderr, "SECRET") {
		t.Error("content in the output")
	}
}

func TestImportEstimates(t *testing.T) {
	t.Parallel()
	db := database(t)
	got := importedOf(t, invoke(t, db, "import", "--json", "--count=estimate", file(t, "e.jsonl", conversation("e", 2))).want(t, 0))
	if got.Tokens < 100 || !cmp.Equal(got.Counters, []string{"bytes/3"}) {
		t.Errorf("%+v", got)
	}
}

func TestImportFromSQL(t *testing.T) {
	t.Parallel()
	db := database(t)
	dsn := strings.TrimPrefix(db[0], "DATABASE_URL=")
	rows := `SELECT * FROM (VALUES
		('s1', 'user', 'hello', 'm1', timestamptz '2025-01-02 03:04:05+01', NULL::jsonb, NULL, NULL, 'gpt-4o'),
		('s1', 'assistant', NULL, 'm2', '2025-01-02 03:04:06+01', '[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]', NULL, NULL, NULL),
		('s2', 'user', 'other', 'm1', NULL, NULL, NULL, 'bob', NULL),
		('s1', 'tool', 'result', NULL, NULL, NULL, 'c', NULL, NULL)
	) v(session_id, role, content, id, created_at, tool_calls, tool_call_id, name, model)`
	for i, fresh := range []int{4, 0} {
		got := importedOf(t, invoke(t, db, "import", "--json", "--from-sql", dsn, "--query", rows).want(t, 0))
		want := Imported{Sessions: 2, Messages: 4, New: fresh, Counters: []string{"o200k_base"}, Failures: []Failure{}}
		if diff := cmp.Diff(want, got, noTime); diff != "" {
			t.Errorf("import %d: %s", i, diff)
		}
	}
	view := decode[struct {
		Session  store.SessionRow
		Messages []store.MessageRow
	}](t, invoke(t, db, "view", "--json", "s1").want(t, 0))
	var m []string
	for _, x := range view.Messages {
		m = append(m, string(x.Role)+" "+x.CreatedAt.Format("15:04:05"))
	}
	if len(m) != 3 || m[0] != "user 02:04:05" || m[1] != "assistant 02:04:06" || !strings.HasPrefix(m[2], "tool ") || view.Session.Model != "gpt-4o" {
		t.Errorf("%v %+v", m, view.Session)
	}
	whole := `SELECT 'w' AS session_id, json_build_object('role', 'user', 'content', json_build_array(json_build_object('type', 'text', 'text', 'part'))) AS message`
	invoke(t, db, "import", "--from-sql", dsn, "--query", whole).want(t, 0)
	invoke(t, db, "view", "w").want(t, 0, "part")

	for query, want := range map[string]string{
		"SELECT nonsense":        `column "nonsense" does not exist`,
		"SELECT 1 AS session_id": "no column role",
		"SELECT 'a' AS session_id, 'b' AS role, '' AS content, 1 AS hue": "unknown column hue",
		"DELETE FROM compactor.sessions":                                 "read-only transaction",
		"COMMIT; DROP TABLE x":                                           "multiple commands",
		"SELECT 'bad' AS session_id, NULL AS role, 'x' AS content":       "row 1: role: missing",
	} {
		invoke(t, db, "import", "--from-sql", dsn, "--query", query).want(t, exitUsage, want)
	}
	keep := `SELECT * FROM (VALUES ('k1', 'user', 'a'), ('k1', '', 'b'), ('k2', 'user', 'c'), ('k1', 'user', 'd')) v(session_id, role, content)`
	invoke(t, db, "import", "--keep-going", "--from-sql", dsn, "--query", keep).want(t, exitUsage, "row 2: role: empty", "rows 1 to 2", "earlier part")
	invoke(t, db, "view", "k1").want(t, exitNotFound)
	invoke(t, db, "view", "k2").want(t, 0)
	r := invoke(t, db, "import", "--from-sql", "postgres://u:hush@127.0.0.1:1/x", "--query", "SELECT 1").want(t, exitInternal, "127.0.0.1:1")
	if strings.Contains(r.stderr+r.stdout, "hush") {
		t.Error("password in the output")
	}
}

func TestMessageIDsFollowPlaceAndContent(t *testing.T) {
	t.Parallel()
	m := chat.Message{Role: chat.RoleUser, Content: chat.TextContent("hi")}
	other := chat.Message{Role: chat.RoleUser, Content: chat.TextContent("ho")}
	ids := map[string]bool{}
	for _, id := range []string{messageID("s", 0, &m), messageID("s", 1, &m), messageID("t", 0, &m), messageID("s", 0, &other)} {
		ids[id] = true
	}
	if len(ids) != 4 || !ids[messageID("s", 0, &m)] {
		t.Errorf("%v", ids)
	}
}

func TestConversationsOfOneIDAreSeveralSessions(t *testing.T) {
	t.Parallel()
	talk := func(texts ...string) (ms []chat.Message) {
		for _, text := range texts {
			ms = append(ms, chat.Message{Role: chat.RoleUser, Content: chat.TextContent(text)})
		}
		return ms
	}
	c := conversations{}
	for i, step := range []struct {
		messages []chat.Message
		want     string
	}{
		{talk("a", "b"), "x"},
		{talk("a", "c"), "x#2"},
		{talk("a", "b", "c"), "x"}, // has grown
		{talk("z"), "x#3"},
		{talk("a", "b"), "x"},
		{talk("a", "c"), "x#2"},
		{talk("a", "b", "d"), "x#4"},
	} {
		if got, other := c.name("x", step.messages); got != step.want || other != (got != "x") {
			t.Errorf("%d: %s, want %s", i, got, step.want)
		}
	}
	db := database(t)
	line := func(text string) string {
		return fmt.Sprintf(`{"id":"r","messages":[{"role":"user","content":%q}]}`+"\n", text)
	}
	path := file(t, "r.jsonl", line("one")+line("two"))
	for _, fresh := range []int{2, 0} {
		got := importedOf(t, invoke(t, db, "import", "--json", path).want(t, 0))
		if got.Sessions != 2 || got.Renamed != 1 || got.New != fresh {
			t.Errorf("%+v", got)
		}
	}
	invoke(t, db, "view", "r#2").want(t, 0, "two")
}

func TestSourcesOfOneNameAreTwo(t *testing.T) {
	t.Parallel()
	a, b := file(t, "x.jsonl", "{}"), file(t, "x.jsonl", "{}")
	all, size, err := openSources(t.Context(), []string{a, b}, nil, "auto")
	if err != nil {
		t.Fatal(err)
	}
	defer all.close()
	if size != 4 || all[0].name == all[1].name {
		t.Errorf("size %d, %s and %s", size, all[0].name, all[1].name)
	}
}

func TestRowsBecomeMessages(t *testing.T) {
	t.Parallel()
	text := func(s string) value { return value{raw: []byte(s)} }
	raw := func(s string) value { return value{raw: []byte(s), isJSON: true} }
	for name, c := range map[string]struct {
		row  sqlRow
		want string // the message, or the error
	}{
		"text":                 {sqlRow{"session_id": text("s"), "role": text("user"), "content": text(`"hi"`)}, `{"role":"user","content":"\"hi\""}`},
		"json content":         {sqlRow{"role": text("user"), "content": raw(`[{"type":"text","text":"x"}]`)}, `{"role":"user","content":[{"type":"text","text":"x"}]}`},
		"null content":         {sqlRow{"role": text("assistant"), "content": {}}, `{"role":"assistant","content":null}`},
		"calls as text":        {sqlRow{"role": text("assistant"), "tool_calls": text(`[{"id":"a"}]`)}, `{"role":"assistant","content":null,"tool_calls":[{"id":"a"}]}`},
		"calls that are none":  {sqlRow{"role": text("assistant"), "tool_calls": text(`a`)}, "tool_calls: want a JSON array"},
		"message with a time":  {sqlRow{"message": raw(`{"role":"user","content":"x"}`), "id": text("7")}, `{"id":"7","role":"user","content":"x"}`},
		"message that is none": {sqlRow{"message": raw(`[1]`)}, "message: want a JSON object"},
		"an escaped NUL":       {sqlRow{"message": raw(`{"role":"user","content":"a\u0000b"}`)}, `{"role":"user","content":"a` + "\uFFFD" + `b"}`},
	} {
		m, _, err := c.row.message()
		got := string(m.AppendJSON(nil))
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := (value{raw: []byte("7")}).text(); got != "7" {
		t.Errorf("text %q", got)
	}
	if err := checkColumns([]store.SourceColumn{{Name: "session_id"}, {Name: "message"}}); err != nil {
		t.Error(err)
	}
}

func TestImportNamesTheFormatOfWhatItRefuses(t *testing.T) {
	t.Parallel()
	db := database(t)
	anthropic := `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}]}`
	invoke(t, db, "import", "--format=chat", file(t, "a.jsonl", anthropic)).want(t, exitUsage, "messages[1]: not chat-completions: Anthropic format (tool_use in content): read it with --format anthropic")
	invoke(t, db, "import", "--format=anthropic", file(t, "a.jsonl", anthropic)).want(t, 0)
	letta := `[{"id":"1","message_type":"user_message","content":"x"}]`
	invoke(t, db, "import", file(t, "b.jsonl", letta)).want(t, exitUsage, "looks like messages of Letta, which is not read; read are chat, responses, anthropic")
	near := `{"type":"ai","text":"x"}`
	invoke(t, db, "import", file(t, "c.jsonl", near)).want(t, exitUsage, "neither a session (no messages) nor a message (no role); nearest: langchain")
}

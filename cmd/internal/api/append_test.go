package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/chat"
)

// talk returns a conversation of n messages with ids as JSON.
func talk(n int) string {
	var out []string
	for i := 1; i <= n; i++ {
		role := "assistant"
		if i%2 == 1 {
			role = "user"
		}
		out = append(out, fmt.Sprintf(`{"id":"m%d","role":%q,"content":"words of %d"}`, i, role, i))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// session appends n messages to a session and returns its state after it.
func (s *server) session(t *testing.T, key, session string, n int) store.Appended {
	t.Helper()
	return into[store.Appended](t, s.do(t, key, http.MethodPost, at(session, "/messages"), talk(n)).want(t, 200))
}

// ids returns the ids of the messages of a view.
func (s *server) ids(t *testing.T, key, session string) string {
	t.Helper()
	v := into[struct{ Messages []struct{ ID string } }](t, s.do(t, key, http.MethodGet, at(session, "/view?ids=true"), nil).want(t, 200))
	var out []string
	for _, m := range v.Messages {
		out = append(out, m.ID)
	}
	return strings.Join(out, " ")
}

func TestMessagesOfAnyFormatAreAppended(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	first := into[store.Appended](t, s.do(t, key, http.MethodPost, at("s", "/messages?model=gpt-4o"), talk(2)).want(t, 200))
	if diff := cmp.Diff(store.Appended{Seqs: []chat.Seq{1, 2}, LastSeq: 2, ReasoningExcluded: []chat.Seq{}}, first); diff != "" {
		t.Error(diff)
	}
	s.do(t, key, http.MethodPost, at("s", "/messages"), talk(2)).want(t, 200, `"seqs":[1,2]`, `"last_seq":2`) // as ids name one message
	s.do(t, key, http.MethodPost, at("s", "/messages"), `{"role":"user","content":"one\u0000"}`).want(t, 200, `"seqs":[3]`, `"repairs":1`)
	const anthropic = `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}]}`
	s.do(t, key, http.MethodPost, at("found", "/messages"), anthropic).want(t, 200, `"seqs":[1]`)
	s.do(t, key, http.MethodPost, at("named", "/messages?format=responses"), `{"input":"hello","model":"gpt-4o"}`).want(t, 200, `"seqs":[1]`)
	s.do(t, key, http.MethodPost, at("s", "/messages?format=morse"), talk(1)).want(t, 422, `"field":"query.format"`)
	for _, bad := range []string{`{"role":"user"`, `{"role":"user"}`, `[{"role":"user","content":"a"},7]`, `{"role":"wizard","content":"b"}`, `{"id":7.5,"role":"user","content":[7]}`} {
		s.do(t, key, http.MethodPost, at("s", "/messages"), bad).want(t, 422, `"code":"invalid"`, `"field":"body"`)
	}
	s.do(t, key, http.MethodPost, at("s", "/messages?model="+strings.Repeat("m", 201)), talk(1)).want(t, 422, `"field":"query.model"`)
	s.do(t, key, http.MethodPost, at("s", "/messages"), talk(1), "Idempotency-Key", strings.Repeat("k", 1001)).want(t, 422, `"field":"header.Idempotency-Key"`)
	s.do(t, key, http.MethodPost, at("s", "/messages"), "").want(t, 400)
	s.do(t, s.key(t, "read", "ours"), http.MethodPost, at("s", "/messages"), talk(1)).want(t, 403, `"code":"forbidden"`)
	row, err := s.st.Session(t.Context(), store.Key{Tenant: "ours", Session: "s"})
	if err != nil || row.Model != "gpt-4o" || row.Messages != 3 {
		t.Errorf("%+v, %v", row, err)
	}
}

func TestABatchIsAppendedOnceByItsKey(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	const batch = `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`
	once := s.do(t, key, http.MethodPost, at("s", "/messages"), batch, "Idempotency-Key", "k1").want(t, 200, `"seqs":[1,2]`)
	again := s.do(t, key, http.MethodPost, at("s", "/messages?model=late"), batch, "Idempotency-Key", "k1")
	row, err := s.st.Session(t.Context(), store.Key{Tenant: "ours", Session: "s"})
	if once.body != again.body || err != nil || row.Model != "" {
		t.Errorf("%s, then %s, of model %q, %v", once.body, again.body, row.Model, err)
	}
	for _, other := range []string{
		`[{"role":"user","content":"other"},{"role":"assistant","content":"b"}]`, `[{"role":"user","content":"a"}]`,
		`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`,
	} {
		s.do(t, key, http.MethodPost, at("s", "/messages"), other, "Idempotency-Key", "k1").want(t, 409, `"code":"conflict"`)
	}
	s.do(t, key, http.MethodPost, at("other", "/messages"), batch, "Idempotency-Key", "k1").want(t, 200, `"seqs":[1,2]`)
	if n := len(strings.Fields(s.ids(t, key, "s"))); n != 2 {
		t.Errorf("%d messages", n)
	}
}

func TestAnAnswerToAnOldViewLosesItsSignedReasoning(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	s.session(t, key, "s", 6)
	tag := s.do(t, key, http.MethodGet, at("s", "/view"), nil).want(t, 200).header.Get("ETag")
	answer := func(id string) string {
		return `{"id":"` + id + `","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"so"}]}`
	}
	fresh := s.do(t, key, http.MethodPost, at("s", "/messages"), answer("a1"), "If-Match", tag).want(t, 200)
	fresh.want(t, 200, `"stale":false`, `"reasoning_excluded":[]`)
	if err := s.exclude(t, "ours", "s", "m1"); err != nil {
		t.Fatal(err)
	}
	s.do(t, key, http.MethodPost, at("s", "/messages"), answer("a2"), "If-Match", tag, "Idempotency-Key", "k").
		want(t, 200, `"stale":true`, `"seqs":[8]`, `"reasoning_excluded":[8]`)
	view := s.do(t, key, http.MethodGet, at("s", "/view"), nil).want(t, 200)
	if strings.Contains(view.body, "signature") {
		t.Error(view.body)
	}
	s.do(t, key, http.MethodPost, at("s", "/messages"), answer("a3"), "If-Match", `"soon"`).want(t, 422, `"field":"header.If-Match"`)
	s.do(t, key, http.MethodPost, at("s", "/messages"), answer("a3"), "If-Match", `"2-8"`).want(t, 412, `"code":"stale"`)
}

// exclude takes messages out of a view as an application does.
func (s *server) exclude(t *testing.T, tenant, session string, ids ...string) error {
	t.Helper()
	_, err := s.st.Exclude(t.Context(), store.Key{Tenant: tenant, Session: session}, ids, "test")
	return err
}

func TestAReplacementSaysWhichViewItLeft(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	const call, result = `{"id":"c","role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"id":"r","role":"tool","tool_call_id":"c1","content":"x"}`
	s.do(t, key, http.MethodPost, at("s", "/messages"), "["+call+","+result+`,{"id":"a","role":"assistant","content":"done"}]`).want(t, 200)
	for _, step := range []struct{ history, want string }{
		{"[" + result + `,{"id":"new","role":"user","content":"x"}]`, `"view_revision":2`}, // repaired: a result without its call
		{`[{"id":"new","role":"user","content":"x"}]`, `"view_revision":3`},
	} {
		tag := s.do(t, key, http.MethodGet, at("s", "/view"), nil).header.Get("ETag")
		got := s.do(t, key, http.MethodPut, at("s", "/view"), step.history, "If-Match", tag).want(t, 200, step.want, `"last_seq":4`)
		if now := s.do(t, key, http.MethodGet, at("s", "/view"), nil).header.Get("ETag"); now != got.header.Get("ETag") {
			t.Errorf("ETag %s, of the view %s", got.header.Get("ETag"), now)
		}
	}
}

func TestAHistoryCompactedElsewhereReplacesTheView(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	s.session(t, key, "s", 6)
	read := s.do(t, key, http.MethodGet, at("s", "/view?ids=1"), nil).want(t, 200)
	s.session(t, key, "s", 8) // two more, meanwhile
	history := `{"messages":[{"id":"mine","role":"user","content":"in short"},{"id":"m5","role":"user","content":"words of 5"},{"id":"m6","role":"assistant","content":"words of 6"}]}`
	s.do(t, key, http.MethodPut, at("s", "/view"), history).want(t, 428, `"field":"header.If-Match"`)
	s.do(t, key, http.MethodPut, at("s", "/view"), history, "If-Match", `"7-6"`).want(t, 412, `"code":"stale"`)
	s.do(t, key, http.MethodPut, at("s", "/view"), `{"massages":[]}`, "If-Match", `"0-6"`).want(t, 422, `"field":"body"`)
	s.do(t, key, http.MethodPut, at("s", "/view"), "3", "If-Match", `"0-6"`).want(t, 422, `"field":"body"`)
	s.do(t, key, http.MethodPut, at("s", "/view"), `[{"role":"tool","content":"b"}]`, "If-Match", `"0-6"`).want(t, 422, `"field":"body"`)
	s.do(t, s.key(t, "read", "ours"), http.MethodPut, at("s", "/view"), history, "If-Match", `"0-6"`).want(t, 403)
	run := s.do(t, key, http.MethodPut, at("s", "/view"), history, "If-Match", read.header.Get("ETag")).want(t, 200, `"kind":"replace"`, `"requested_by":"key:append-4"`)
	if got := s.ids(t, key, "s"); got != "mine m5 m6 m7 m8" {
		t.Errorf("view %s after %s", got, run.body)
	}
	// With a revision alone the whole view is meant; an empty list clears it.
	s.do(t, key, http.MethodPut, at("s", "/view"), "[]", "If-Match", `"1"`).want(t, 200)
	if got := s.ids(t, key, "s"); got != "" {
		t.Errorf("view %s", got)
	}
}

// hostile are texts that something on the way may take for something else.
var hostile = []string{
	"a/b", "/", "//", "%", "%2F", "%00", "a b", " ", "..", ".", "../..", "a/../b", "?x=1", "#", "a;b", "a:b", "a&b=c", "\t", "\x01\x1b[31m\x7f", "line\r\nX-Injected: 1",
	"'; DROP TABLE compactor.sessions; --", `"quoted"`, "$1", "{session}", "{{.}}", "<script>", "日本語", "עברית", "é", "👩‍👩‍👧", "\u202e", strings.Repeat("x", 1000), strings.Repeat("文", 333),
}

// escape returns an id as a part of a path.
func escape(id string) string { return strings.ReplaceAll(url.PathEscape(id), ".", "%2E") } // or clients take dots for steps

// Ids are any text, in paths and bodies.
func TestIDsAreAnyText(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with nothing to race")
	}
	s := newServer(t)
	key := s.key(t, "append", "ours")
	for i, id := range hostile {
		escaped := escape(id)
		path := "/v1/sessions/" + escaped
		message, _ := json.Marshal(map[string]string{"id": id, "role": "user", "content": id})
		s.do(t, key, http.MethodPost, path+"/messages", message).want(t, 200, `"seqs":[1]`)
		s.do(t, key, http.MethodPost, path+"/pins/"+escaped, nil).want(t, 204)
		s.do(t, key, http.MethodDelete, path+"/pins/"+escaped, nil).want(t, 204)
		v := into[struct {
			Messages []struct{ ID, Content string }
		}](t, s.do(t, key, http.MethodGet, path+"/view?ids=true", nil).want(t, 200))
		if len(v.Messages) != 1 || v.Messages[0].ID != id || v.Messages[0].Content != id {
			t.Errorf("%q: %+v", id, v)
		}
		got := into[store.SessionRow](t, s.do(t, key, http.MethodGet, path, nil).want(t, 200))
		if got.Session != id {
			t.Errorf("%q: the session is %q", id, got.Session)
		}
		fork := s.do(t, key, http.MethodPost, path+"/fork", map[string]string{"session": fmt.Sprint("fork", i), "at": id}).want(t, 201)
		if fork.header.Get("X-Injected") != "" {
			t.Errorf("%q: a header of its own", id)
		}
	}
	// Postgres stores no NUL and no broken UTF-8, so that nothing has such an id.
	for _, id := range []string{"%00", "a%00b", "%ff", "%c3%28"} {
		for _, path := range []string{"/v1/sessions/" + id, "/v1/sessions/" + id + "/view"} {
			s.do(t, key, http.MethodGet, path, nil).want(t, 422, `"code":"invalid"`)
		}
		s.do(t, key, http.MethodPost, "/v1/sessions/"+id+"/messages", talk(1)).want(t, 422, `"code":"invalid"`)
		s.do(t, key, http.MethodPost, "/v1/sessions/fork1/pins/"+id, nil).want(t, 422)
	}
	s.do(t, key, http.MethodPost, "/v1/sessions/"+strings.Repeat("x", 1025)+"/messages", talk(1)).want(t, 422, "too long")
	s.do(t, key, http.MethodGet, "/v1/sessions/"+strings.Repeat("x", 1025)+"/view", nil).want(t, 404)
}

// A client that goes away in its body appends nothing; one that goes away before the answer may have
// appended all. The key makes it safe to try again.
func TestADisconnectedClientAppendsNothingOrAll(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	const batch = `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`
	post := func(ctx context.Context, body io.Reader) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+at("s", "/messages"), body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Idempotency-Key", "k")
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	// In the body, which has a whole message already.
	ctx, leave := context.WithCancel(t.Context())
	r, w := io.Pipe()
	left := make(chan error, 1)
	go func() { left <- post(ctx, r) }()
	if _, err := w.Write([]byte(batch[:40])); err != nil {
		t.Fatal(err)
	}
	leave()
	_ = w.CloseWithError(context.Canceled) // the transport waits for the body
	if err := <-left; err == nil {
		t.Fatal("no error")
	}
	s.do(t, key, http.MethodGet, at("s", ""), nil).want(t, 404)
	// While the append waits for the lock of its session, which others hold.
	s.do(t, key, http.MethodPost, at("s", "/messages"), talk(1)).want(t, 200)
	waits, release := s.holds(t, "s")
	ctx, leave = context.WithCancel(t.Context())
	go func() { left <- post(ctx, strings.NewReader(batch)) }()
	waits()
	leave()
	<-left
	release()
	got := into[store.Appended](t, s.do(t, key, http.MethodPost, at("s", "/messages"), batch, "Idempotency-Key", "k").want(t, 200))
	if diff := cmp.Diff([]chat.Seq{2, 3}, got.Seqs); diff != "" {
		t.Error(diff)
	}
	if got := s.ids(t, key, "s"); got != "m1 k#1 k#2" {
		t.Errorf("view %s", got)
	}
}

// holds locks a session as another program does. waits returns when a request waits for the lock, and
// release ends it.
func (s *server) holds(t *testing.T, session string) (waits, release func()) {
	t.Helper()
	holder, err := pgx.Connect(t.Context(), string(s.app.Config.Database.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Close(context.WithoutCancel(t.Context())) })
	tx, err := holder.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT FROM compactor.sessions WHERE id = $1 FOR UPDATE`, session); err != nil {
		t.Fatal(err)
	}
	waits = func() {
		storetest.Await(t, "a request waits for the lock", func() bool {
			var waiting bool
			err := tx.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))`).Scan(&waiting)
			return err == nil && waiting
		})
	}
	return waits, func() {
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMessagesAreAppendedInsteadOfOthers(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	s.session(t, key, "s", 4)
	tag := func() string {
		return s.do(t, key, http.MethodGet, at("s", "/view"), nil).want(t, 200).header.Get("ETag")
	}
	instead := func(ids, body string, headers ...string) reply {
		return s.do(t, key, http.MethodPost, at("s", "/messages?instead_of="+strings.ReplaceAll(ids, " ", "&instead_of=")), body, headers...)
	}
	const other = `[{"role":"assistant","content":"another answer"}]`
	instead("m4", other).want(t, 428, `"code":"no_revision"`, `"field":"header.If-Match"`)
	instead("m4", other, "If-Match", `"0-3"`).want(t, 412, `"code":"stale"`)
	read := tag()
	instead("m4 m9", other, "If-Match", read).want(t, 404, "m9")
	if got := s.ids(t, key, "s"); got != "m1 m2 m3 m4" {
		t.Errorf("refused, but the view is %s", got)
	}
	for range 2 { // whatever the view is now
		instead("m3 m4", other, "If-Match", read, "Idempotency-Key", "op").want(t, 200, `"seqs":[5]`)
		if got := s.ids(t, key, "s"); got != "m1 m2 op#1" {
			t.Errorf("the view is %s", got)
		}
	}
	instead("m3 m4", talk(1), "If-Match", read, "Idempotency-Key", "op").want(t, 409, `"code":"conflict"`)
	instead("op%231", "[]", "If-Match", tag()).want(t, 200, `"seqs":[]`)
	if got := s.ids(t, key, "s"); got != "m1 m2" {
		t.Errorf("the view is %s", got)
	}
	var by string
	s.query(t, `SELECT string_agg(requested_by || ' ' || kind, ', ') FROM compactor.runs`, &by)
	if by != "key:append-4 replace, key:append-4 replace" {
		t.Errorf("runs: %s", by)
	}
}

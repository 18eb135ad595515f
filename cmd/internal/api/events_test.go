package api_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// stream is an open stream of events.
type stream struct {
	t       *testing.T
	resp    *http.Response
	in      *bufio.Scanner
	session string
}

func (s *server) stream(t *testing.T, key, after string) *stream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Last-Event-ID", after)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return &stream{t: t, resp: resp, in: bufio.NewScanner(resp.Body)}
}

// next returns the next event of a run or a sweep and its id, and notes that of its session.
func (s *stream) next() (e store.Event, id string) {
	s.t.Helper()
	for s.in.Scan() {
		line := s.in.Text()
		if line == "event: session" {
			s.in.Scan()
			s.session = s.in.Text()
			continue
		}
		if after, ok := strings.CutPrefix(line, "id: "); ok {
			id = after
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				s.t.Fatal(err)
			}
			return e, id
		}
	}
	s.t.Fatalf("the stream ended: %v", s.in.Err())
	return e, id
}

// excluded appends a message to a session and takes it out of the view, which is a run.
func (s *server) excluded(t *testing.T, k store.Key, id string) store.RunID {
	t.Helper()
	m := store.NewMessage{Message: chat.Message{ID: id, Role: chat.RoleUser, Content: chat.TextContent("said")}}
	if _, _, err := s.st.Append(t.Context(), k, "", []store.NewMessage{m}); err != nil {
		t.Fatal(err)
	}
	run, err := s.st.Exclude(t.Context(), k, []string{id}, "test")
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestEventsContinueWhereAClientStopped(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "read", "acme")
	ours, theirs := store.Key{Tenant: "acme", Session: "s"}, store.Key{Tenant: "other", Session: "s"}
	live := s.stream(t, key, "")
	live.in.Scan() // the first line comes when it is connected
	s.excluded(t, theirs, "a")
	first := s.excluded(t, ours, "a")
	e, id := live.next()
	if e.ID != first || e.Tenant != "acme" || e.Session != "s" || e.Kind != "run" || e.Status != "applied" {
		t.Errorf("%+v", e)
	}
	live.resp.Body.Close()
	missed := []store.RunID{s.excluded(t, ours, "b"), s.excluded(t, ours, "c")}
	s.excluded(t, theirs, "b")
	again := s.stream(t, key, id)
	seen := map[store.RunID]bool{}
	for !seen[missed[0]] || !seen[missed[1]] {
		e, _ := again.next()
		if seen[e.ID] || e.Tenant != "acme" {
			t.Errorf("%+v once more, or of another tenant", e)
		}
		seen[e.ID] = true
	}
	now := s.excluded(t, ours, "d")
	if e, _ := again.next(); e.ID != now {
		t.Errorf("%+v, want run %d", e, now)
	}
	if again.session != `data: {"tenant":"acme","session":"s","revision":3}` {
		t.Errorf("event of the session: %s", again.session)
	}
	s.do(t, key, http.MethodGet, "/v1/events", nil, "Last-Event-ID", "x").want(t, 422, "Last-Event-ID")
	s.do(t, key, http.MethodGet, "/v1/events", nil, "Last-Event-ID", "1-run-1").want(t, 410, `"code":"too_old"`)
}

func TestStreamsAreLimited(t *testing.T) {
	s := newServer(t, func(c *config.Config) { c.API.MaxStreams = 3 })
	key, acme := s.key(t, "read", ""), s.key(t, "read", "acme")
	for range 2 {
		s.stream(t, acme, "").in.Scan()
	}
	s.do(t, acme, http.MethodGet, "/v1/events", nil).want(t, 503, "half of api.max_streams")
	s.stream(t, key, "").in.Scan()
	refused := s.do(t, key, http.MethodGet, "/v1/events", nil).want(t, 503, "too_many_streams", "api.max_streams")
	if refused.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/store"
)

func TestWhatApplicationsReport(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	s.session(t, key, "s", 4)
	s.do(t, key, http.MethodPost, at("s", "/pins/m2"), nil).want(t, 204)
	s.do(t, key, http.MethodPost, at("s", "/pins/m9"), nil).want(t, 404, `"code":"not_found"`)
	s.do(t, key, http.MethodDelete, at("s", "/pins/m2"), nil).want(t, 204)
	s.do(t, key, http.MethodDelete, at("s", "/pins/m2"), nil).want(t, 404)
	s.do(t, key, http.MethodPatch, at("s", ""), map[string]any{"model": "gpt-5", "labels": map[string]string{"team": "a"}}).want(t, 200)
	s.do(t, s.key(t, "admin", "ours"), http.MethodGet, "/v1/audit", nil).want(t, 200, `"by":"key:append-4"`,
		`"action":"message.pin","tenant":"ours","session":"s","object":"m2"`, `"action":"message.unpin"`, `"action":"session.model"`, `"action":"session.labels"`)

	s.do(t, key, http.MethodPost, at("s", "/usage"), map[string]any{"prompt_tokens": 900}).want(t, 200, `{"counted":true}`)
	s.do(t, key, http.MethodPost, at("s", "/usage"), map[string]any{
		"prompt_tokens": 900, "revision": 0, "cached_tokens": 800, "written_tokens": 50, "miss_reason": "tools_changed",
	}).want(t, 200, `{"counted":true}`)
	for _, wrong := range []map[string]any{
		{}, {"prompt_tokens": -1}, {"prompt_tokens": "many"}, {"prompt_tokens": 5, "cached_tokens": 6}, {"prompt_tokens": 5, "revision": 1}, {"prompt_tokens": 5, "seq": 1.5},
	} {
		s.do(t, key, http.MethodPost, at("s", "/usage"), wrong).want(t, 422)
	}
	if err := s.exclude(t, "ours", "s", "m1"); err != nil {
		t.Fatal(err)
	}
	s.do(t, key, http.MethodPost, at("s", "/usage"), map[string]any{"prompt_tokens": 900, "revision": 0, "cached_tokens": 1}).want(t, 200, `{"counted":false}`)

	s.do(t, key, http.MethodPost, at("s", "/state"), map[string]bool{"closed": true, "needs_follow_up": false}).want(t, 204)
	s.do(t, key, http.MethodPost, at("s", "/state"), map[string]bool{"open": true}).want(t, 422)
	s.do(t, key, http.MethodPost, at("s", "/state"), map[string]string{"closed": "yes"}).want(t, 422)

	s.do(t, key, http.MethodPost, at("s", "/fork"), map[string]string{"session": "f", "at": "m3"}).want(t, 201, `{"session":"f","messages":3}`)
	s.do(t, key, http.MethodPost, at("s", "/fork"), map[string]string{"session": "f"}).want(t, 409, `"code":"conflict"`)
	s.do(t, key, http.MethodPost, at("s", "/fork"), map[string]string{"session": "g", "at": "m9"}).want(t, 404)
	s.do(t, key, http.MethodPost, at("s", "/fork"), map[string]string{}).want(t, 422)
	row, err := s.st.Session(t.Context(), store.Key{Tenant: "ours", Session: "f"})
	if err != nil || row.Messages != 3 {
		t.Errorf("%+v, %v", row, err)
	}
}

// A session of another tenant is one that does not exist, whatever is asked of it; writing creates one's own.
func TestApplicationsReachTheirTenantAlone(t *testing.T) {
	s := newServer(t)
	ours, theirs := s.key(t, "append", "ours"), s.key(t, "append", "theirs!")
	s.session(t, theirs, "s", 4)
	before := s.do(t, theirs, http.MethodGet, at("s", ""), nil).want(t, 200)
	for _, c := range []struct {
		method, rest string
		body         any
	}{
		{http.MethodGet, "/view", nil},
		{http.MethodGet, "/view?ids=true", nil},
		{http.MethodGet, "/view?shape=anthropic", nil},
		{http.MethodGet, "/view?tail=true", nil},
		{http.MethodGet, "/view?max_tokens=5", nil},
		{http.MethodGet, "/view?prefix_changed_since=0", nil},
		{http.MethodPut, "/view", "[]"},
		{http.MethodPost, "/pins/m1", nil},
		{http.MethodDelete, "/pins/m1", nil},
		{http.MethodPost, "/usage", map[string]int{"prompt_tokens": 1, "cached_tokens": 1}},
		{http.MethodPost, "/state", map[string]bool{"closed": true}},
		{http.MethodPost, "/fork", map[string]string{"session": "t"}},
	} {
		there := s.do(t, ours, c.method, at("s", c.rest), c.body, "If-Match", `"0-4"`).want(t, 404)
		none := s.do(t, ours, c.method, at("x", c.rest), c.body, "If-Match", `"0-4"`).want(t, 404)
		if a, b := withoutName(there.body, "s"), withoutName(none.body, "x"); a != b {
			t.Errorf("%s %s: %s for theirs, %s for none", c.method, c.rest, a, b)
		}
		s.do(t, ours, c.method, at("s", c.rest), c.body, "If-None-Match", "*", "If-Match", `"0-4"`).want(t, 404)
	}
	s.do(t, ours, http.MethodGet, at("s", "/view?tenant=theirs!"), nil).want(t, 403, `"code":"other_tenant"`)
	s.do(t, ours, http.MethodPost, at("s", "/messages"), talk(1)).want(t, 200, `"seqs":[1]`)
	if after := s.do(t, theirs, http.MethodGet, at("s", ""), nil).want(t, 200); after.body != before.body {
		t.Errorf("%s\nis now\n%s", before.body, after.body)
	}
	if got := s.ids(t, theirs, "s"); got != "m1 m2 m3 m4" {
		t.Errorf("their view is %s", got)
	}
	reader := s.key(t, "read", "ours")
	for path, body := range map[string]string{
		"/messages": "[]", "/pins/m1": "", "/usage": `{"prompt_tokens":1}`, "/state": "{}", "/fork": `{"session":"y"}`,
	} {
		s.do(t, reader, http.MethodPost, at("s", path), body).want(t, 403, `"code":"forbidden"`)
	}
}

// withoutName returns a text without the name of a session.
func withoutName(text, name string) string {
	return strings.NewReplacer("session ours/"+name, "session", "session "+name, "session").Replace(text)
}

package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

// say appends messages m1, m2 and so on, of a user and an assistant by turns.
func (s *server) say(t *testing.T, tenant, session string, texts ...string) {
	t.Helper()
	var msgs []store.NewMessage
	for i, text := range texts {
		role := []chat.Role{chat.RoleUser, chat.RoleAssistant}[i%2]
		m := chat.Message{ID: fmt.Sprintf("m%d", i+1), Role: role, Content: chat.TextContent(text)}
		msgs = append(msgs, store.NewMessage{Message: m})
	}
	s.fill(t, tenant, session, msgs...)
}

// long returns n texts.
func long(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("text %d: %s", i+1, strings.Repeat("word ", 40)))
	}
	return texts
}

type items[T any] struct {
	Items []T
	Next  string
}

func names(t *testing.T, r reply) (out []string) {
	t.Helper()
	for _, row := range into[items[store.SessionRow]](t, r.want(t, 200)).Items {
		out = append(out, row.Session)
	}
	return out
}

func TestSessionsAreListedAndChanged(t *testing.T) {
	s := newServer(t)
	read, write := s.key(t, "read", "acme"), s.key(t, "append", "acme")
	for _, id := range []string{"mail/1", "mail 2", "chat"} {
		s.say(t, "acme", id, "hello", "hi")
	}
	s.say(t, "other", "mail-o", "secret")
	change := map[string]any{"model": "claude-sonnet-4-5", "labels": map[string]string{"team": "x"}, "parent": "chat"}
	s.do(t, write, http.MethodPatch, at("mail/1", ""), change).want(t, 200,
		`"model":"claude-sonnet-4-5"`, `"team":"x"`, `"parent":"chat"`, `"held_back":[`, `"next_run":`)
	s.do(t, read, http.MethodPatch, at("mail/1", ""), change).want(t, 403, `"code":"forbidden"`)
	named := map[string]any{"model": "m", "policy": "none"}
	s.do(t, write, http.MethodPatch, at("mail 2", ""), named).want(t, 403, "scope operate")
	s.do(t, s.key(t, "operate", "acme"), http.MethodPatch, at("mail 2", ""), named).want(t, 404)
	s.do(t, write, http.MethodPatch, at("mail-o", ""), change).want(t, 404, `"code":"not_found"`)
	s.do(t, write, http.MethodPatch, at("none", ""), change).want(t, 404, `"code":"not_found"`)
	s.do(t, read, http.MethodGet, at("mail 2", ""), nil).want(t, 200, `"model":"gpt-4o"`, `"state":"active"`)
	for query, want := range map[string][]string{
		"":                             {"mail/1", "mail 2", "chat"},
		"?q=MAIL":                      {"mail/1", "mail 2"},
		"?label=team%3Dx&parent=chat":  {"mail/1"},
		"?model=gpt-4o&policy=default": {"mail 2", "chat"},
		"?due=true":                    nil,
		"?held=paused":                 nil,
		"?quarantined=true":            nil,
	} {
		if diff := cmp.Diff(want, names(t, s.do(t, read, http.MethodGet, "/v1/sessions"+query, nil))); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	first := into[items[store.SessionRow]](t, s.do(t, read, http.MethodGet, "/v1/sessions?limit=2", nil))
	rest := s.do(t, read, http.MethodGet, "/v1/sessions?limit=2&after="+first.Next, nil)
	if diff := cmp.Diff([]string{"chat"}, names(t, rest)); diff != "" || strings.Contains(rest.body, `"next"`) {
		t.Errorf("the second page: %s", rest.body)
	}
	s.do(t, read, http.MethodGet, "/v1/sessions?after=x", nil).want(t, 422, `"field":"query.after"`)
	s.do(t, read, http.MethodGet, "/v1/sessions?held=x", nil).want(t, 422, `"field":"query.held"`)
	s.do(t, read, http.MethodGet, "/v1/sessions?label=x", nil).want(t, 422, `"field":"query.label"`)
}

func TestErasureTakesTwoSteps(t *testing.T) {
	s := newServer(t)
	admin := s.key(t, "admin", "acme")
	s.say(t, "acme", "chat", "my number is 4711", "noted")
	s.say(t, "other", "chat-o", "secret")
	path := at("chat", "?note="+url.QueryEscape("request 8"))
	s.do(t, s.key(t, "operate", "acme"), http.MethodDelete, path, nil).want(t, 403)
	s.do(t, admin, http.MethodDelete, at("chat", ""), nil).want(t, 422, "query.note")
	r := s.do(t, admin, http.MethodDelete, path, nil).want(t, 200, `"dry_run":true`, `"messages":2`)
	shown := into[struct{ Preview store.ErasurePreview }](t, r).Preview
	s.say(t, "acme", "chat", "my number is 4711", "noted", "and more")
	s.do(t, admin, http.MethodDelete, path+"&confirm="+shown.Token, nil).want(t, 412, `"code":"stale"`)
	s.do(t, admin, http.MethodDelete, path+"&confirm=yes", nil).want(t, 412)
	s.do(t, admin, http.MethodGet, at("chat", "/messages"), nil).want(t, 200, "4711")
	shown = into[struct{ Preview store.ErasurePreview }](t, s.do(t, admin, http.MethodDelete, path, nil)).Preview
	s.do(t, admin, http.MethodDelete, path+"&confirm="+shown.Token, nil).want(t, 200, `"messages_erased":3`, `"requested_by":"key:admin-4"`)
	if r = s.do(t, admin, http.MethodGet, at("chat", "/messages"), nil).want(t, 200, "[erased]"); strings.Contains(r.body, "4711") {
		t.Error(r.body)
	}
	s.do(t, admin, http.MethodDelete, at("chat-o", "?note=x"), nil).want(t, 404, `"code":"not_found"`)
	s.do(t, admin, http.MethodDelete, at("none", "?note=x"), nil).want(t, 404, `"code":"not_found"`)
}

func TestASummaryThatSavesNothingIsRefusedBeforeARun(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "operate", "ours")
	s.do(t, key, http.MethodPost, at("s", "/messages"), strings.ReplaceAll(talk(8), "words", strings.Repeat("many words ", 40))).want(t, 200)
	request := func(text, more string) string {
		return `{"pipeline":[{"strategy":"summarization","params":{"target_count":3,"threshold":1}}],` + more + `"summary":{"text":"` + text + `"}}`
	}
	for _, text := range []string{strings.Repeat("They talked. ", 200), "<tool_call>{}</tool_call>"} { // too long for what it covers, and no summary
		s.do(t, key, http.MethodPost, at("s", "/compact"), request(text, "")).want(t, 422, `"field":"body.summary.text"`, "summarization cannot use it")
	}
	s.do(t, key, http.MethodPost, at("s", "/compact"), `{"summary":{"text":"They talked."}}`).want(t, 422, `"field":"body.summary.text"`, "nothing to compact")
	// Over the whole log, after the view was made smaller.
	s.do(t, key, http.MethodPut, at("s", "/view"), `[{"id":"new","role":"user","content":"in short"}]`, "If-Match", "0").want(t, 200)
	s.do(t, key, http.MethodPost, at("s", "/compact"), request("They talked.", "")).want(t, 422, `"field":"body.summary.text"`, "would not be smaller")
	for _, more := range []string{"", `"dry_run":true,`} {
		s.do(t, key, http.MethodPost, at("s", "/compact"), `{`+more+`"strategies":["truncation"],"summary":{"text":"They talked."}}`).want(t, 422, "no step of the pipeline summarizes")
	}
	s.do(t, key, http.MethodGet, "/v1/runs?session=s&status=queued", nil).want(t, 200, `"items":[]`)
	s.do(t, key, http.MethodPost, at("s", "/compact"), request("They talked.", `"allow_growth":true,`)).want(t, 202)
	s.do(t, key, http.MethodPost, at("s", "/compact"), `{"dry_run":true}`).want(t, 200, `"outcome":"would_grow"`) // with lists that are empty
}

// What an operator has paused for all tenants is not theirs to pass.
func TestATenantsKeyForcesNoRunThroughAPauseOfAll(t *testing.T) {
	s := newServer(t)
	ours, all := s.key(t, "operate", "ours"), s.key(t, "operate", "")
	s.session(t, ours, "s", 4)
	force := func(key, query string) reply {
		return s.do(t, key, http.MethodPost, at("s", "/compact")+query, `{"force":true}`)
	}
	s.do(t, ours, http.MethodPost, "/v1/pauses", `{}`).want(t, 200)
	force(ours, "").want(t, 202)
	s.do(t, all, http.MethodPost, "/v1/pauses", `{"all":true}`).want(t, 200)
	force(ours, "").want(t, 403, `"code":"forbidden"`, "all tenants")
	force(all, "?tenant=ours").want(t, 202)
}

// The sessions of a list are counted first, then compacted; those that are paused are left out.
func TestSessionsOfAListAreCompacted(t *testing.T) {
	s, acme, _, all := fleetServer(t)
	for _, id := range []string{"a", "b", "c"} {
		s.large(t, "acme", id)
	}
	s.large(t, "other", "a")
	type list struct{ Items []reports.SessionItem }
	rows := into[list](t, s.do(t, all, http.MethodGet, "/v1/sessions?id=a&detail=true&names=true", nil).want(t, 200, `"first_request":"words of a session`, `"window_tokens":`, `"state":`)).Items
	if len(rows) != 2 || rows[0].Session != "a" || rows[1].Session != "a" {
		t.Errorf("%+v", rows)
	}
	s.do(t, all, http.MethodPost, "/v1/compactions", nil).want(t, 422, "query.tenant")
	s.do(t, acme, http.MethodPost, "/v1/compactions?limit=2", nil).want(t, 200, `"dry_run":true`, `"sessions":2`, `"more":true`)
	s.do(t, acme, http.MethodPost, fmt.Sprintf("/v1/compactions?cursor=%d&cursor=0", rows[1].SID), nil).want(t, 200, `"sessions":0`)
	s.do(t, all, http.MethodPost, "/v1/pauses?tenant=other", fields{}).want(t, 200)
	done := into[api.Compactions](t, s.do(t, all, http.MethodPost, fmt.Sprintf("/v1/compactions?dry_run=false&cursor=%d&cursor=%d", rows[0].SID, rows[1].SID), fields{"all": true}).want(t, 200))
	if len(done.Runs) != 1 || done.Sessions != 2 || done.Paused != 1 {
		t.Errorf("%+v", done)
	}
}

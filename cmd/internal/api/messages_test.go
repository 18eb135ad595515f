package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/chat"
)

func TestMessagesAreListedAndSearched(t *testing.T) {
	s := newServer(t)
	read, operate := s.key(t, "read", "acme"), s.key(t, "operate", "acme")
	s.say(t, "acme", "chat", "write to ann@example.com", "done: src/app.go", "thanks", "welcome")
	s.say(t, "other", "chat-o", "secret")
	k := store.Key{Tenant: "acme", Session: "chat"}
	if _, err := s.st.Exclude(t.Context(), k, []string{"m1"}, "test"); err != nil {
		t.Fatal(err)
	}
	get := func(query string) (seqs []chat.Seq, next string) {
		t.Helper()
		page := into[items[api.FoundMessage]](t, s.do(t, read, http.MethodGet, at("chat", "/messages"+query), nil).want(t, 200))
		for _, m := range page.Items {
			seqs = append(seqs, m.Seq)
		}
		return seqs, page.Next
	}
	for query, want := range map[string][]chat.Seq{
		"":                           {1, 2, 3, 4},
		"?order=newest":              {4, 3, 2, 1},
		"?q=ANN%40example":           {1},
		"?q=src%2Fapp.go":            {2},
		"?role=user":                 {1, 3},
		"?kind=summaries":            nil,
		"?tool=x":                    nil,
		"?after_seq=1&before_seq=4":  {2, 3},
		"?order=newest&before_seq=3": {2, 1},
		"?limit=0":                   nil,
	} {
		if got, _ := get(query); !cmp.Equal(want, got) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	for order, want := range map[string][]chat.Seq{"oldest": {3, 4}, "newest": {2, 1}} {
		_, next := get("?limit=2&role=&order=" + order)
		got, next := get("?limit=1&order=" + order + "&after=" + next)
		last, _ := get("?limit=1&order=" + order + "&after=" + next)
		if !cmp.Equal(want, append(got, last...)) {
			t.Errorf("%s: %v, then %v", order, got, last)
		}
	}
	r := s.do(t, read, http.MethodGet, at("chat", "/messages?q=ann"), nil).want(t, 200,
		`"included":false`, `"exclude_reason":"deleted_by_application"`, `"snippet":"write to ann@example.com"`)
	if strings.Contains(r.body, `"next"`) {
		t.Error(r.body)
	}
	s.do(t, read, http.MethodGet, at("chat", "/messages/1"), nil).want(t, 200,
		`"covered_by":[]`, `"run":{"run":1`, `"trigger":"application"`)
	s.do(t, read, http.MethodGet, at("chat", "/messages/9"), nil).want(t, 404)
	s.do(t, read, http.MethodPost, at("chat", "/messages/1/restore"), nil).want(t, 403)
	s.do(t, operate, http.MethodPost, at("chat", "/messages/1/restore"), nil).want(t, 200, `"included":false`, `"pinned":true`)
	s.do(t, operate, http.MethodPost, at("chat", "/messages/2/restore"), nil).want(t, 200, `"included":true`, `"pinned":false`)
	s.do(t, s.key(t, "admin", ""), http.MethodGet, "/v1/audit", nil).want(t, 200, `"action":"message.restore"`, `"session":"chat"`)
	for _, id := range []string{"chat-o", "none"} {
		s.do(t, operate, http.MethodGet, at(id, "/messages"), nil).want(t, 404, `"code":"not_found"`)
		s.do(t, operate, http.MethodGet, at(id, "/messages/1"), nil).want(t, 404, `"code":"not_found"`)
		s.do(t, operate, http.MethodPost, at(id, "/messages/1/restore"), nil).want(t, 404, `"code":"not_found"`)
	}
}

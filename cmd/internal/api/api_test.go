package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "record the document in testdata")

// The contract is reviewed as a file: go test ./cmd/internal/api -run Document -update.
func TestDocumentIsRecorded(t *testing.T) {
	s := newServer(t)
	var now bytes.Buffer
	if err := json.Indent(&now, get(t, s.url+"/openapi.json"), "", " "); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/openapi.json"
	if *update {
		if err := os.WriteFile(file, now.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(recorded), now.String()); diff != "" {
		t.Errorf("the contract has changed; if that is meant, run this test with -update (-recorded +now):\n%s", diff)
	}
	if err := s.doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestKeysAreRequiredOnceThereAreAny(t *testing.T) {
	s := newServer(t)
	admin := s.key(t, "admin", "")
	s.do(t, admin, http.MethodGet, "/v1/sessions", nil).want(t, 200, `"items":[]`)
	s.do(t, "cpk_wrong", http.MethodGet, "/v1/sessions", nil).want(t, 401, `"code":"invalid_key"`)
	s.do(t, "", http.MethodGet, "/v1/sessions", nil).want(t, 401, `"code":"no_key"`)
	s.do(t, "", http.MethodGet, "/v2", nil).want(t, 401)
	s.do(t, admin, http.MethodGet, "/v2", nil).want(t, 404, "no_such_path")
	s.do(t, admin, http.MethodGet, "/v1/sessions/none", nil).want(t, 404, `"code":"not_found"`)
	s.do(t, admin, http.MethodPost, at("s", "/state"), "{}", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").want(t, 403, `"code":"cross_origin"`)
	s.do(t, admin, http.MethodGet, "/v1/sessions?limit=9999", nil).want(t, 422, `"field":"query.limit"`)
}

// What an operation does not have is refused: who asks for a dry run where there is none does not get the change.
func TestUnknownParametersAndMethodsAreRefused(t *testing.T) {
	s := newServer(t)
	s.fill(t, "acme", "chat", said("m1", "hello"))
	key := s.key(t, "operate", "acme")
	s.do(t, key, http.MethodPost, at("chat", "/compact?dry_run=true"), "{}").want(t, 422, `"field":"query.dry_run"`, "want tenant, wait")
	s.do(t, key, http.MethodGet, "/v1/runs", nil).want(t, 200, `"items":[]`)
	s.do(t, key, http.MethodGet, "/v1/sessions?model=x&due=1&tenant=acme&label=a=b", nil).want(t, 200)
	s.do(t, key, http.MethodGet, "/v1/sessions?held=bored", nil).want(t, 422, `"field":"query.held"`, "waiting_after_undo")
	s.do(t, key, http.MethodGet, at("chat\x00", "/view"), nil).want(t, 422, "not valid UTF-8 or has a NUL")
	for path, want := range map[string]string{
		"/v1/runs": "GET", "/v1/sessions/chat": "GET, PATCH, DELETE", at("/", "/view"): "GET, PUT", "/docs": "GET", "/v1/responses/compact": "POST",
	} {
		r := s.do(t, key, "BREW", path, nil).want(t, 405, `"code":"method_not_allowed"`)
		if got := r.header.Get("Allow"); got != want {
			t.Errorf("%s: allowed are %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"/v1/sessions/../view", "/v1/sessions/./view", "/v1/sessions//view", "//v1/sessions", "/v1/sessions/chat/.."} {
		s.do(t, key, http.MethodGet, path, nil).want(t, 404, `"code":"no_such_path"`, "percent-encode ids")
	}
}

// Who has no key does not learn the address of the database while that is away.
func TestProblemsOfTheDatabaseAreNotShown(t *testing.T) {
	s := newServer(t)
	s.key(t, "read", "acme")
	s.st.Close()
	r := s.do(t, "cpk_wrong", http.MethodGet, "/v1/sessions", nil).want(t, 503, `"code":"unavailable"`, "the log of the server")
	if strings.Contains(r.body, "pool") || r.header.Get("Retry-After") == "" {
		t.Error(r.header, r.body)
	}
}

func TestThePageOfTheDocumentLoadsNothing(t *testing.T) {
	s := newServer(t)
	page := s.do(t, "", http.MethodGet, "/docs", nil).want(t, 200, "GET", "/v1/sessions/{session}", "scope <code>read</code>",
		`<code>focus</code></td><td class="dim">body, string</td><td>What a summary should keep.`, "One of <code>log</code> <code>view</code>",
		`<code>session</code></td><td class="dim">body, string, required`, "A message, a list of messages or a document in the format.")
	if csp := page.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(page.body, "://") {
		t.Errorf("%s\n%s", csp, page.body)
	}
}

// A server does not become open when its last key ends.
func TestKeysStayRequired(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "read", "acme")
	s.do(t, key, http.MethodGet, "/v1/sessions", nil).want(t, 200)
	if _, err := s.st.Admin.RevokeKey(t.Context(), "acme", "read-4", "test"); err != nil {
		t.Fatal(err)
	}
	s.do(t, "", http.MethodGet, "/v1/sessions", nil).want(t, 401, `"code":"no_key"`)
}

// Without keys, a page whose name leads to the loopback address cannot call the API.
func TestWithoutKeysTheHostIsLocal(t *testing.T) {
	s := newServer(t)
	s.do(t, "", http.MethodGet, "/v1/sessions", nil).want(t, 200)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/sessions", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example:8321"
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", resp.StatusCode)
	}
}

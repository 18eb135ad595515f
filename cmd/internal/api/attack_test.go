package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/cmd/internal/config"
)

// zipped returns a text compressed.
func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withBody returns the operations that read a body, with their paths, and that of MCP, which the document does not have.
func (s *server) withBody(t *testing.T) (out []described) {
	t.Helper()
	for _, d := range s.operations(t) {
		if s.doc.Paths.Value(d.path).GetOperation(d.method).RequestBody != nil {
			d.path, d.body = d.request(s.doc)
			out = append(out, d)
		}
	}
	return append(out, described{method: http.MethodPost, path: "/mcp?session=s", body: map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ping"}})
}

func TestBodiesAreBounded(t *testing.T) {
	s := newServer(t, func(c *config.Config) { c.API.MaxBody = 100_000 })
	key := s.key(t, "admin", "ours")
	message := func(size int) string { return `{"role":"user","content":"` + strings.Repeat("x", size) + `"}` }
	chunked := func(body []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(body)} }
	large, bomb := []byte(message(100_000)), zipped(t, message(10_000_000)) // 10 MB in 10 kB
	small := zipped(t, message(10))
	for _, d := range s.withBody(t) {
		for _, c := range []struct {
			name   string
			body   any
			coding string
			status int
		}{
			{"large", large, "", 413},
			{"large in chunks", chunked(large), "", 413},
			{"bomb", bomb, "gzip", 413},
			{"bomb in chunks", chunked(bomb), "gzip", 413},
			{"no gzip", message(10), "gzip", 400},
			{"half of a gzip", small[:20], "gzip", 400},
			{"damaged gzip", append(small[:len(small)-1:len(small)-1], 1), "gzip", 400},
			{"brotli", message(10), "br", 415},
		} {
			got := s.do(t, key, d.method, d.path, c.body, "If-Match", "0", "Content-Encoding", c.coding, "Accept", "application/json, text/event-stream")
			if got.status != c.status {
				t.Errorf("%s %s with a body that is %s: %d, want %d: %s", d.method, d.path, c.name, got.status, c.status, got.body)
			}
		}
	}
	s.do(t, key, http.MethodGet, at("x", ""), nil).want(t, 404)
	s.do(t, key, http.MethodPost, at("s", "/messages"), zipped(t, message(50_000)), "Content-Encoding", "gzip").want(t, 200, `"seqs":[1]`)
}

func TestDeeplyNestedJSONIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with nothing to race")
	}
	s := newServer(t)
	key := s.key(t, "admin", "ours")
	const deep, more, most = 100_000, 20_000, 9990 // of 10,000 that encoding/json reads
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, d := range s.withBody(t) {
		bodies := map[string]string{"lists": strings.Repeat("[", deep), "objects": strings.Repeat(`{"a":`, deep), "whole": nested(more), "read whole": nested(most)}
		given, _ := d.body.(map[string]any)
		names := slices.Sorted(maps.Keys(given))
		if len(given) == 0 {
			given, names = map[string]any{"role": "user", "content": "x"}, []string{"role", "content", "messages", "input"}
		}
		if testing.Short() {
			names = nil
		}
		for _, name := range append(names, "extra") {
			parts := []string{}
			for other, value := range given {
				if raw, err := json.Marshal(value); err == nil && other != name {
					parts = append(parts, fmt.Sprintf("%q:%s,", other, raw))
				}
			}
			bodies["in "+name] = fmt.Sprintf("{%s%q:%s}", strings.Join(parts, ""), name, nested(most))
		}
		for name, body := range bodies {
			got := s.do(t, key, d.method, d.path, body, "If-Match", "0", "Accept", "application/json, text/event-stream")
			if got.status >= 500 || got.status < 300 && strings.Contains(body, nested(more)) {
				t.Errorf("%s %s, %s: %d %.300s", d.method, d.path, name, got.status, got.body)
			}
		}
	}
}

// slowly sends a request whose body does not end, and returns the connection once the server waits for the body.
func (s *server) slowly(t *testing.T, key string, d described) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nExpect: 100-continue\r\nIf-Match: 0\r\nContent-Length: 100000\r\n\r\n", d.method, d.path, key); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%s %s: %v, %q", d.method, d.path, err, line)
	}
	_, _ = in.ReadString('\n')
	return conn, in
}

// The time for a body is the server's, also for one that comes by drops.
func TestASlowBodyIsGivenUp(t *testing.T) {
	s := newServer(t, func(c *config.Config) { c.API.ReadTimeout = 500 * time.Millisecond })
	key := s.key(t, "admin", "ours")
	var all sync.WaitGroup
	for _, d := range s.withBody(t) {
		conn, in := s.slowly(t, key, d)
		answered, drop := make(chan struct{}), time.Tick(20*time.Millisecond)
		all.Go(func() {
			for {
				select {
				case <-answered:
					return
				case <-drop:
					_, _ = conn.Write([]byte(" "))
				}
			}
		})
		all.Go(func() {
			first, err := in.ReadString('\n')
			close(answered)
			late := err == nil && strings.HasPrefix(first, "HTTP/1.1 408 ") || strings.HasPrefix(d.path, "/mcp") && strings.HasPrefix(first, "HTTP/1.1 400 ")
			if !late {
				t.Errorf("%s %s: %v, %q", d.method, d.path, err, first)
			}
		})
	}
	all.Wait()
	s.do(t, key, http.MethodGet, at("x", ""), nil).want(t, 404)
}

// Requests whose body has not come hold no connection to the database.
func TestSlowBodiesHoldNoConnection(t *testing.T) {
	s := newServer(t, func(c *config.Config) { c.Database.MaxConns, c.API.MaxCompactions = 4, 1000 })
	key := s.key(t, "admin", "ours")
	for _, d := range s.withBody(t) {
		for range 3 {
			s.slowly(t, key, d)
		}
	}
	s.do(t, key, http.MethodPost, at("s", "/messages"), talk(2)).want(t, 200)
	s.do(t, key, http.MethodGet, at("s", "/view"), nil).want(t, 200)
}

// few are texts as hostile has them, for tests with many requests.
var few = []string{
	"/", "..", ".", "a/../b", "%2F", " a b ", "?x=1#y", "\x01\x1b[31m\x7f", "line\r\nX-Injected: 1", "'; DROP TABLE compactor.sessions; --", "{{.}}", "日本語",
	strings.Repeat("x", 1000),
}

// An operation takes each id for an id: a hostile one is answered as a plain one, be there something of that id or not.
func TestIDsAreAnyTextInEveryPath(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, with nothing to race")
	}
	s := newServer(t)
	key := s.key(t, "admin", "ours")
	for i, id := range few {
		if testing.Short() && i%3 > 0 {
			continue
		}
		plain := fmt.Sprint("plain", i)
		for _, id := range []string{plain, id} {
			s.fill(t, "ours", id, said(id, "one"), said("m2", "two"))
		}
		for _, d := range s.operations(t) {
			if !strings.Contains(d.path, "{") {
				continue
			}
			path, body := d.request(s.doc)
			var answers [2]reply
			for j, id := range []string{plain, id} {
				path = d.path
				for _, p := range s.doc.Paths.Value(d.path).GetOperation(d.method).Parameters {
					value := "1"
					if !p.Value.Schema.Value.Type.Includes("integer") {
						value = escape(id)
					}
					path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", value)
				}
				if strings.HasSuffix(path, "/fork") {
					body = map[string]string{"session": fmt.Sprint("fork", i, j)}
				}
				if d.method == http.MethodDelete {
					path += "?note=x"
				}
				answers[j] = s.do(t, key, d.method, path, body)
			}
			if got, want := answers[1], answers[0]; got.status != want.status || codeOf(got.body) != codeOf(want.body) || got.header.Get("X-Injected") != "" {
				t.Errorf("%s %s: %d %s, but %d %s for a plain one", d.method, path, got.status, got.body, want.status, want.body)
			}
		}
	}
}

func TestLabelsAreData(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	s.session(t, key, "other", 1)
	s.do(t, key, http.MethodPatch, at("other", ""), map[string]any{"labels": map[string]string{"a": "b"}}).want(t, 200)
	s.session(t, key, "s", 1)
	for _, text := range append([]string{"a=b", "=", "%", "_", `\`, `{"a":"b"}`, "{a,b}"}, few...) {
		text = text[:min(len(text), 99)]
		labels := map[string]string{strings.ReplaceAll(text, "=", ":"): text}
		state := s.do(t, key, http.MethodPatch, at("s", ""), map[string]any{"labels": labels, "model": text}).want(t, 200)
		got := into[struct {
			Labels map[string]string
			Model  string
		}](t, state)
		if diff := cmp.Diff(labels, got.Labels); diff != "" || got.Model != text {
			t.Errorf("%q: model %q, labels %s", text, got.Model, diff)
		}
		for _, query := range []string{"label=" + url.QueryEscape(strings.ReplaceAll(text, "=", ":")+"="+text), "model=" + url.QueryEscape(text)} {
			if found := names(t, s.do(t, key, http.MethodGet, "/v1/sessions?"+query, nil)); !slices.Equal(found, []string{"s"}) {
				t.Errorf("%q: %s finds %q", text, query, found)
			}
		}
		for _, name := range []string{"q", "policy", "parent", "after"} {
			if r := s.do(t, key, http.MethodGet, "/v1/sessions?"+name+"="+url.QueryEscape(text), nil); r.status >= 500 {
				t.Errorf("%s=%q: %d %s", name, text, r.status, r.body)
			}
		}
	}
}

func TestHeadersAreData(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	for _, value := range []string{"'; DROP TABLE compactor.sessions; --", "$1", "%00", "k\tk", "日本", strings.Repeat("k", 1000)} {
		s.do(t, key, http.MethodPost, at("s", "/messages"), `[{"role":"user","content":"a"}]`, "Idempotency-Key", value).want(t, 200)
		s.do(t, key, http.MethodPost, at("s", "/messages"), `[{"role":"user","content":"a"}]`, "If-Match", value).want(t, 422)
		s.do(t, key, http.MethodGet, at("s", "/view"), nil, "If-None-Match", value).want(t, 200)
	}
	s.do(t, key, http.MethodPost, at("s", "/messages"), `[{"role":"user","content":"a"}]`, "Idempotency-Key", strings.Repeat("k", 2000)).want(t, 422, `"field":"header.Idempotency-Key"`)
}

func TestRequestsAndBatchesAreLimited(t *testing.T) {
	s := newServer(t, func(c *config.Config) { c.API.RequestsPerSecond, c.API.MaxBatch = 0.5, 1 })
	one, two := s.key(t, "append", "acme"), s.key(t, "append", "others")
	s.do(t, one, http.MethodPost, at("s", "/messages"), `[{"role":"user","content":"a"},{"role":"user","content":"b"}]`).want(t, 422, "want at most 1")
	refused := s.do(t, one, http.MethodPost, at("s", "/messages"), `[{"role":"user","content":"a"}]`).want(t, 429, `"code":"rate_limited"`)
	if wait := refused.header.Get("Retry-After"); wait != "2" {
		t.Errorf("Retry-After %q", wait)
	}
	s.do(t, two, http.MethodPost, at("s", "/state"), `{"closed":true}`, "Content-Type", "application/x-www-form-urlencoded").want(t, 404) // as of curl -d
}

package api_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/cmd/internal/config"
)

func TestBodiesAreBounded(t *testing.T) {
	s := newServer(t, func(c *config.Config) { c.API.MaxBody = 100_000 })
	key := s.key(t, "append", "ours")
	message := func(size int) string { return `{"role":"user","content":"` + strings.Repeat("x", size) + `"}` }
	zipped := func(text string) []byte {
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
	for _, path := range []struct{ method, rest string }{
		{http.MethodPost, "/messages"}, {http.MethodPut, "/view"}, {http.MethodPost, "/usage"}, {http.MethodPost, "/state"}, {http.MethodPost, "/fork"},
	} {
		s.do(t, key, path.method, at("s", path.rest), message(100_000), "If-Match", "0").want(t, 413, `"code":"too_large"`)
		// 10 MB in 10 kB, with and without a length that says so.
		s.do(t, key, path.method, at("s", path.rest), zipped(message(10_000_000)), "If-Match", "0", "Content-Encoding", "gzip").want(t, 413, `"code":"too_large"`)
	}
	s.do(t, key, http.MethodPost, at("s", "/messages"), zipped(message(50_000)), "Content-Encoding", "gzip").want(t, 200, `"seqs":[1]`)
	s.do(t, key, http.MethodPost, at("s", "/messages"), message(10), "Content-Encoding", "gzip").want(t, 400, `"code":"invalid"`)
	s.do(t, key, http.MethodPost, at("s", "/messages"), zipped(message(10))[:20], "Content-Encoding", "gzip").want(t, 400)
	s.do(t, key, http.MethodPost, at("s", "/messages"), message(10), "Content-Encoding", "br").want(t, 415, `"code":"unsupported_media_type"`)
	if got := s.ids(t, key, "s"); len(strings.Fields(got)) != 1 {
		t.Errorf("view %s", got)
	}
}

func TestDeeplyNestedJSONIsRefused(t *testing.T) {
	s := newServer(t)
	key := s.key(t, "append", "ours")
	const deep = 1_000_000
	for name, body := range map[string]string{
		"lists":   strings.Repeat("[", deep),
		"objects": strings.Repeat(`{"a":`, deep),
		"extra":   `{"role":"user","content":"x","extra":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "}",
		"content": `{"role":"user","content":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + "}",
	} {
		for _, path := range []struct{ method, rest string }{{http.MethodPost, "/messages"}, {http.MethodPut, "/view"}, {http.MethodPost, "/usage"}} {
			got := s.do(t, key, path.method, at("s", path.rest), body, "If-Match", "0")
			if got.status != 422 && got.status != 400 {
				t.Errorf("%s %s: %d %.300s", name, path.rest, got.status, got.body)
			}
		}
	}
	s.do(t, key, http.MethodGet, at("s", ""), nil).want(t, 404)
}

// The time for a body is the server's: one that comes by drops holds a connection no longer, and appends nothing.
func TestASlowBodyIsGivenUp(t *testing.T) {
	s := newServer(t, func(c *config.Config) { c.API.ReadTimeout = 200 * time.Millisecond })
	key := s.key(t, "append", "ours")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := talk(2)
	_, err = fmt.Fprintf(conn, "POST /v1/sessions/s/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body[:20])
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // until the server closes it
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 408 ")) {
		t.Errorf("%v, %s", err, answer)
	}
	s.do(t, key, http.MethodGet, at("s", ""), nil).want(t, 404)
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

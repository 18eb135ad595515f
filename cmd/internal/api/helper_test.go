package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/cmd/internal/api"
	"github.com/sessionstore/compactor/cmd/internal/cli"
	"github.com/sessionstore/compactor/cmd/internal/config"
	"github.com/sessionstore/compactor/migrations"
	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/builtin"
)

// server is a running server on a database of its own.
type server struct {
	app *cli.App
	st  *store.Store
	url string
	doc *openapi3.T
}

// newServer starts a server in parallel to other tests; change changes its configuration.
func newServer(t *testing.T, change ...func(*config.Config)) *server {
	t.Helper()
	t.Parallel()
	dsn := storetest.DB(t, "api-"+migrations.Fingerprint(), func(ctx context.Context, dsn string) error {
		_, _, err := migrations.CreateRoles(ctx, dsn, migrations.DefaultSchema)
		if err == nil {
			_, err = migrations.Up(ctx, dsn, migrations.DefaultSchema)
		}
		return err
	})
	c := config.Default()
	c.Database.URL, c.Redis.URL = config.Secret(dsn), config.Secret(storetest.Redis(t))
	c.API.Listen = "127.0.0.1:0"
	for _, f := range change {
		f(&c)
	}
	logger := slog.New(slog.DiscardHandler)
	app, err := cli.NewApp(t.Context(), c, logger, cli.AppOptions{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{app: app, st: app.Store}
	t.Cleanup(func() { _ = app.Close() })
	s.url = "http://" + s.listen(t, app.Config)
	s.doc = document(t, s.url)
	return s
}

// listen serves the API until the test ends, and returns its address.
func (s *server) listen(t *testing.T, c config.Config) string {
	t.Helper()
	running, err := api.Listen(t.Context(), api.Options{
		Config: c, Store: s.st, Planner: s.app.Planner, Registry: s.app.Planner.Registry, Logger: s.app.Logger, Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, cli.Role{Name: "api", Run: running.Run})
	return running.Address()
}

// run runs roles until the test ends.
func (s *server) run(t *testing.T, roles ...cli.Role) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- cli.RunRoles(ctx, roles...) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// works also runs a worker and a scheduler.
func (s *server) works(t *testing.T) *server {
	t.Helper()
	schedules, err := s.app.SchedulerRole(s.app)
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, schedules, s.app.WorkerRole())
	return s
}

// document returns the document that a server has of itself.
func document(t *testing.T, address string) *openapi3.T {
	t.Helper()
	raw := get(t, address+"/openapi.json")
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func get(t *testing.T, address string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", address, resp.StatusCode, err)
	}
	return raw
}

// key creates a key and returns it. An empty tenant is all.
func (s *server) key(t *testing.T, scope, tenant string) string {
	t.Helper()
	_, secret, err := s.st.Admin.CreateKey(t.Context(), store.NewKey{Name: fmt.Sprintf("%s-%d", scope, len(tenant)), Scope: scope, Tenant: tenant}, "test")
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// reply is an answer of the server.
type reply struct {
	status int
	header http.Header
	body   string
}

// want fails the test unless the answer has a status and its body contains texts.
func (r reply) want(t *testing.T, status int, texts ...string) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	for _, text := range texts {
		if !strings.Contains(r.body, text) {
			t.Errorf("no %s in %s", text, r.body)
		}
	}
	return r
}

// into reads the body of an answer.
func into[T any](t *testing.T, r reply) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
	return v
}

// do sends a request with a key, "" for none, and headers as pairs, and validates the answer against
// the document. body is a string, bytes, a reader, or a value for JSON; nil for none.
func (s *server) do(t *testing.T, key, method, path string, body any, headers ...string) reply {
	t.Helper()
	var in io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(body)
	case []byte:
		in = bytes.NewReader(body)
	case io.Reader: // in chunks, unless it is of a type that has a length
		in = body
	default:
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, in)
	if err != nil {
		t.Fatal(err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	s.validate(t, req, resp, raw)
	return reply{resp.StatusCode, resp.Header, string(raw)}
}

// validate fails the test if an answer is not one of the document.
func (s *server) validate(t *testing.T, req *http.Request, resp *http.Response, body []byte) {
	t.Helper()
	route, found := s.route(req)
	if !found {
		return
	}
	err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route},
		Status:                 resp.StatusCode, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	})
	if err != nil {
		t.Errorf("%s %s: %d is not in the document: %v\n%s", req.Method, req.URL, resp.StatusCode, err, body)
	}
}

// route returns the operation of the document that a request is for.
func (s *server) route(req *http.Request) (*routers.Route, bool) {
	given := strings.Split(req.URL.EscapedPath(), "/")
	var best *routers.Route
	exact := -1
	for path, item := range s.doc.Paths.Map() {
		op := item.GetOperation(req.Method)
		parts := strings.Split(path, "/")
		same, literal := len(parts) == len(given) && op != nil, 0
		for i := range parts {
			if !same {
				break
			}
			if strings.HasPrefix(parts[i], "{") {
				continue
			}
			same = parts[i] == given[i]
			literal++
		}
		if same && literal > exact {
			exact, best = literal, &routers.Route{Spec: s.doc, Path: path, PathItem: item, Method: req.Method, Operation: op}
		}
	}
	return best, best != nil
}

// at returns a path below a session.
func at(session, rest string) string { return "/v1/sessions/" + url.PathEscape(session) + rest }

// query reads a row of the database.
func (s *server) query(t *testing.T, sql string, into ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.app.Config.Database.URL.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), sql).Scan(into...); err != nil {
		t.Fatal(err)
	}
}

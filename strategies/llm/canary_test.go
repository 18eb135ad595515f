package llm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
)

// No key, nothing of a prompt, and nothing that a server says but the message of its error gets
// into an error or a line of the log, wherever the server puts it.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	const (
		key    = "sk-canary-key-0123456789"
		asked  = "canary-prompt-9876543210"
		system = "canary-system-1212121212"
		said   = "canary-answer-5555555555"
		header = "canary-header-7777777777"
	)
	for _, b := range llmtest.Behaviours() {
		t.Run(string(b), func(t *testing.T) {
			t.Parallel()
			text := said
			if b == llmtest.BadRequestEcho {
				text = ""
			}
			server := llmtest.New(llmtest.Step{Behaviour: b, Text: text, Times: 1000, Delay: 1, RetryAfter: header})
			loud := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for _, name := range []string{
					"X-Request-Id", "Request-Id", "Retry-After", "Retry-After-Ms", "Www-Authenticate", "Server", "X-Ratelimit-Reset-Requests",
					"X-Should-Retry", "Openai-Organization", "Location", "Set-Cookie",
				} {
					w.Header().Set(name, header+"; "+r.Header.Get("Authorization"))
				}
				server.ServeHTTP(w, r)
			})
			var log bytes.Buffer
			p := profile("m", "http://a/v1")
			p.KeyEnv = "KEY"
			c := quick(p)
			c.Deadline.Min = 50e6
			c.Breaker = llm.Breaker{Failures: 1}
			c.Cooldown = llm.Cooldown{}
			client := newClient(t, c, llm.Deps{
				Transport: hosts{"a": loud},
				Env:       func(string) (string, bool) { return key, true },
				Log:       slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
				Cooldowns: &cooldowns{err: errors.New(header)},
			})
			a, err := client.Complete(t.Context(), llm.Call{System: system, User: asked + prompt, MaxTokens: 100})
			told := log.String() + a.Model + a.FinishReason + client.Identity() + fmt.Sprintf("%+v %#v", client, client) + fmt.Sprintf("%+v %#v", c, c)
			if err == nil {
				if strings.Contains(a.Text+a.Refusal, key) {
					t.Error("the key is in the answer")
				}
			} else {
				for e := err; e != nil; e = errors.Unwrap(e) {
					body, _ := json.Marshal(e)
					told += fmt.Sprintf("%v %+v %#v %q", e, e, e, e) + string(body)
				}
				if log.Len() == 0 {
					t.Error("a failure is not in the log")
				}
			}
			if e, ok := errors.AsType[*llm.Error](err); ok && e.Server.Message == said { // the message of an error is shown
				told = strings.ReplaceAll(told, said, "")
			}
			for _, canary := range []string{"canary", "Bearer", key} {
				if i := strings.Index(told, canary); i >= 0 {
					t.Errorf("%s: %s", canary, told[max(0, i-80):min(len(told), i+80)])
				}
			}
		})
	}
}

func TestRequestIDsThatAreNothingElseAreLogged(t *testing.T) {
	t.Parallel()
	for id, logged := range map[string]bool{
		"req_0a1b2c3d4e5f60718293a4b5c6d7e8f9": true, "6f1c0e2a-0000-4000-8000-0123456789ab": true, "canary": false,
		"sk-0a1b2c3d4e5f": false, "0a1b": false, "req_0a1b2c3d4e5f60718293a4b5c6d7e8f9 and more": false,
	} {
		var log bytes.Buffer
		server := llmtest.New(always(llmtest.AuthError))
		client := newClient(t, quick(profile("m", "http://a/v1")), llm.Deps{
			Log: slog.New(slog.NewTextHandler(&log, nil)),
			Transport: hosts{"a": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Request-Id", id)
				server.ServeHTTP(w, r)
			})},
		})
		_, _ = client.Complete(t.Context(), llm.Call{User: prompt})
		if strings.Contains(log.String(), id) != logged || !strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("%s: %s", id, log.String())
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	write := func(value string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("  first-key\n")
	var got []string
	server := llmtest.New()
	keep := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		server.ServeHTTP(w, r)
	})
	p := profile("m", "http://a/v1")
	p.KeyFile = file
	client := newClient(t, quick(p), llm.Deps{Transport: hosts{"a": keep}})
	for _, change := range []func(){func() {}, func() { write("second-key") }, func() { _ = os.Remove(file) }} {
		change()
		if _, err := client.Complete(t.Context(), llm.Call{User: prompt}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"Bearer first-key", "Bearer second-key", "Bearer second-key"}; strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("got %q", got)
	}

	for name, c := range map[string]struct{ env, file, want string }{
		"no such variable":       {env: "NONE", want: "models[0].key_env NONE: holds no key"},
		"a variable with spaces": {env: "ODD", want: "models[0].key_env ODD: the key contains invalid characters"},
		"no such file":           {file: file, want: "models[0].key_file " + file + ": no such file or directory"},
	} {
		p := profile("m", "http://a/v1")
		p.KeyEnv, p.KeyFile = c.env, c.file
		_, err := llm.New(quick(p), llm.Deps{Env: func(name string) (string, bool) { return "canary\ncanary", name == "ODD" }})
		if name == "no such variable" {
			_, err = llm.New(quick(p), llm.Deps{})
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a server says of a failure is in the log line and the error: on one line, without secrets
// and control characters, and without what it repeats of the request, 200 characters at most.
func TestWhatAServerSaysIsShown(t *testing.T) {
	t.Parallel()
	const key = "sk-proj-0123456789abcdefABCDEF"
	for name, c := range map[string]struct {
		status    int
		body, err string
	}{
		"OpenAI": {
			400, `{"error":{"message":"Unsupported value: 'temperature' does not support 0","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`,
			"unsupported_value, invalid_request_error, param temperature: Unsupported value: 'temperature' does not support 0",
		},
		"a type and a status": {400, `{"error":{"message":"m","type":"invalid_request_error","status":"INVALID_ARGUMENT"}}`, "invalid_request_error: m"},
		"lines and escapes":   {400, `{"error":"a\u001b[31m\n\u0000b\u202ec\ttail"}`, "a [31m b c tail"},
		"the key":             {401, `{"error":{"message":"no such key: ` + key + `","code":"` + key + `"}}`, "no such key: [REDACTED]"},
		"another secret":      {400, `{"error":{"message":"password=hunter2hunter2 is no header"}}`, "password=*** is no header"},
		"the prompt":          {422, `{"detail":[{"loc":["body","messages"],"msg":"too odd: Please fix store/run.go, the test_lease case fails."}]}`, "too odd[...]"},
		"a long one":          {500, `{"error":"` + strings.Repeat("ä", 300) + `"}`, strings.Repeat("ä", 199) + "…"},
		"a code with words":   {400, `{"error":{"message":"m","code":"some words","type":["t"],"param":"` + strings.Repeat("p", 65) + `"}}`, "m"},
		"a page":              {502, `<html><h1>Bad Gateway</h1></html>`, ""},
		"a text":              {502, `upstream connect error`, "upstream connect error"},
		"nothing":             {500, ``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var of, own bytes.Buffer
			p := profile("m", "http://a/v1")
			p.KeyEnv = "KEY"
			cfg := quick(p)
			cfg.Budget.Attempts = 1
			client := newClient(t, cfg, llm.Deps{
				Env: func(string) (string, bool) { return key, true }, Log: slog.New(slog.NewJSONHandler(&own, nil)),
				Transport: hosts{"a": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(c.status)
					_, _ = w.Write([]byte(c.body))
				})},
			})
			_, err := client.Complete(t.Context(), llm.Call{User: prompt, Log: slog.New(slog.NewJSONHandler(&of, nil)).With("run_id", 7)})
			e := asError(t, err)
			two := newClient(t, quick(p), llm.Deps{Env: func(string) (string, bool) { return key, true }, Transport: hosts{"a": once(c.status, c.body)}})
			if a, err := two.Complete(t.Context(), llm.Call{User: prompt}); err == nil && (a.Server != e.Server || a.Status != c.status) {
				t.Errorf("an answer after a failure has %d %q", a.Status, a.Server)
			}
			var line struct {
				Server string `json:"server"`
				Run    int    `json:"run_id"`
				Status int    `json:"status"`
			}
			if err := json.Unmarshal(of.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if got := e.Server.String(); got != c.err || line.Server != c.err || line.Run != 7 || line.Status != c.status || own.Len() > 0 {
				t.Errorf("error %q, line %s, want %q; the client's own log: %s", got, of.String(), c.err, own.String())
			}
		})
	}
}

// once answers the first request with a failure, and the others as a model.
func once(status int, body string) http.Handler {
	server, calls := llmtest.New(), 0
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls > 1 {
			server.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

package llm_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// A redirect would send the prompt and the key to another server.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	other, otherURL := started(t)
	for _, status := range []int{301, 302, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(otherURL+"/chat/completions", status))
		client := newClient(t, quick(profile("m", server.URL)), llm.Deps{})
		_, err := client.Complete(t.Context(), llm.Call{User: prompt})
		if e := asError(t, err); e.Class != llm.BadRequest || e.Status != status || e.Attempts != 1 {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
	}
	if other.Calls() != 0 {
		t.Error("the prompt went elsewhere")
	}
}

// meter counts the bytes read from response bodies, decompressed.
type meter struct {
	http.RoundTripper
	bytes atomic.Int64
}

func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := m.RoundTripper.RoundTrip(r)
	if err == nil {
		body := resp.Body
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(body, m), body}
	}
	return resp, err
}

func (m *meter) Write(p []byte) (int, error) {
	m.bytes.Add(int64(len(p)))
	return len(p), nil
}

// A body without an end is read up to a bound, packed or not.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	page := bytes.Repeat([]byte("a"), 1<<20)
	for name, c := range map[string]struct {
		status int
		packed bool
		want   llm.Class
		most   int64
	}{
		"an answer":       {200, false, llm.MalformedAnswer, 8 << 20},
		"a packed answer": {200, true, llm.MalformedAnswer, 8 << 20},
		"a failure":       {503, false, llm.Overloaded, 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body io.Writer = w
				if c.packed {
					w.Header().Set("Content-Encoding", "gzip")
					body, _ = gzip.NewWriterLevel(w, gzip.BestSpeed)
				}
				w.WriteHeader(c.status)
				for r.Context().Err() == nil {
					if _, err := body.Write(page); err != nil {
						return
					}
				}
			}))
			defer server.Close()
			cfg := quick(profile("m", server.URL))
			cfg.Deadline.Min, cfg.Budget.Attempts = time.Minute, 1
			read := &meter{RoundTripper: http.DefaultTransport}
			client := newClient(t, cfg, llm.Deps{Transport: read})
			_, err := client.Complete(t.Context(), llm.Call{User: prompt})
			if e := asError(t, err); e.Class != c.want || e.Status != c.status {
				t.Errorf("error %v", err)
			}
			if n := read.bytes.Load(); n == 0 || n > c.most+1 {
				t.Errorf("read %d bytes, want %d at most, and one to see that there is more", n, c.most)
			}
		})
	}
}

func TestManyCallsAtATime(t *testing.T) {
	t.Parallel()
	server, url := started(t,
		llmtest.Step{Behaviour: llmtest.Normal, Times: 20}, llmtest.Step{Behaviour: llmtest.ServerError, Times: 20},
		llmtest.Step{Behaviour: llmtest.Cut, Times: 10}, llmtest.Step{Behaviour: llmtest.RateLimited, Times: 5})
	p := profile("m", url)
	p.RequestsPerMinute, p.TokensPerMinute = 1_000_000, 900_000_000
	client := newClient(t, quick(p), llm.Deps{})
	var mu sync.Mutex
	var attempts, input, estimated int
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() {
			a, err := client.Complete(t.Context(), llm.Call{User: prompt, MaxTokens: 10})
			u, n := a.Usage, a.Attempts
			if err != nil {
				e := asError(t, err)
				u, n = e.Usage, e.Attempts
			} else if !strings.Contains(a.Text, "## Goal") {
				t.Errorf("text %q", a.Text)
			}
			mu.Lock()
			defer mu.Unlock()
			attempts, input, estimated = attempts+n, input+u.Input, estimated+u.Estimated
		})
	}
	calls.Wait()
	// What was cut off is counted here, and not by the server.
	if in := server.Paid()*(8+(len(prompt)+3)/4) + 10*int(tokens.ForModel("m").Text(prompt)); attempts != server.Calls() || input != in || estimated != 10 {
		t.Errorf("%d attempts of %d calls, input %d, want %d of %d paid ones, %d estimated", attempts, server.Calls(), input, in, server.Paid(), estimated)
	}
}

// bodies is a transport that keeps the bodies of requests and answers none.
type bodies struct{ last string }

func (b *bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	b.last = string(raw)
	return nil, errors.Join(err, errors.New("no server"))
}

// What is written to a cache costs more than other input, and nothing reads it again.
func TestSummariesAreAskedForWithoutACacheWrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model, url string
		want       string // of the options of the cache
	}{
		{"gpt-5.6-luna", "https://api.openai.com/v1", `{"mode":"explicit"}`},
		{"gpt-6.1-sol", "https://eu.api.openai.com/v1", `{"mode":"explicit"}`},
		{"gpt-5-mini", "https://api.openai.com/v1", ""},          // writes cost nothing
		{"gpt-6-luna", "https://api.openai.com.example/v1", ""},  // may not know the option
		{"claude-haiku-5-5", "https://api.anthropic.com/v1", ""}, // writes what is marked
		{"llama3.1", "http://localhost:11434/v1", ""},
	} {
		p := profile(tt.model, tt.url)
		p.FixedTemperature = true
		var sent bodies
		cfg := quick(p)
		cfg.Budget.Attempts = 1
		_, _ = newClient(t, cfg, llm.Deps{Transport: &sent}).Complete(t.Context(), llm.Call{System: "Summarize.", User: prompt})
		var got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(sent.last), &got); err != nil {
			t.Fatalf("%s: %q: %v", tt.model, sent.last, err)
		}
		if o := string(got["prompt_cache_options"]); o != tt.want {
			t.Errorf("%s at %s: options %s, want %s", tt.model, tt.url, o, tt.want)
		}
		if got["temperature"] != nil {
			t.Errorf("%s: temperature %s", tt.model, got["temperature"])
		}
		for _, mark := range []string{"cache_control", "prompt_cache_breakpoint", "prompt_cache_key", "prompt_cache_retention"} {
			if strings.Contains(sent.last, mark) {
				t.Errorf("%s: the request has %s", tt.model, mark)
			}
		}
	}
}

// The library leaves out a temperature of 0, for which servers take 1.
func TestTheLowestTemperatureIsSent(t *testing.T) {
	t.Parallel()
	var sent bodies
	cfg := quick(profile("m", "http://a/v1"))
	cfg.Budget.Attempts = 1
	_, _ = newClient(t, cfg, llm.Deps{Transport: &sent}).Complete(t.Context(), llm.Call{System: "Summarize.", User: prompt, MaxTokens: 10})
	const want = `{"temperature":0,"model":"m","messages":[{"role":"system","content":"Summarize."},{"role":"user","content":`
	if !strings.HasPrefix(sent.last, want) || !strings.HasSuffix(sent.last, `}],"max_completion_tokens":10,"stream":false}`) {
		t.Errorf("sent %s", sent.last)
	}
}

// The library refuses models of the completions API by itself, so that nothing is sent or billed.
func TestWhatTheLibraryRefusesIsABadRequest(t *testing.T) {
	t.Parallel()
	var sent bodies
	_, err := newClient(t, quick(profile("code-davinci-002", "http://a/v1")), llm.Deps{Transport: &sent}).Complete(t.Context(), llm.Call{User: prompt})
	if e := asError(t, err); e.Class != llm.BadRequest || e.Status != 0 || e.Attempts != 1 || e.Usage != (llm.Usage{}) || e.Server.Message == "" || sent.last != "" {
		t.Errorf("%v, server %q, usage %+v, sent %q", err, e.Server, e.Usage, sent.last)
	}
}

package llm_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prompt = "[USER]: Please fix store/run.go, the test_lease case fails.\n\n[ASSISTANT]: I changed two lines.\n\n" +
	"Use these sections:\n\n## Active Task\nthe task\n\n## Goal\nthe goal\n\n## Remaining Work\nwhat is left"

// profile returns a model that costs 1 a million tokens in, 0.25 of it cached, 4 out.
func profile(name, url string) llm.Profile {
	return llm.Profile{
		Name: name, BaseURL: url, Window: 100_000, MaxOutput: 8_000,
		Price: llm.Price{Input: 1, Cached: 0.25, Output: 4},
	}
}

// quick returns a configuration without waits, cooldowns and circuits.
func quick(models ...llm.Profile) llm.Config {
	return llm.Config{
		Models:   models,
		Deadline: llm.Deadline{Min: time.Minute, Connect: time.Minute},
		Budget:   llm.Budget{Attempts: 20, Tokens: 1_000_000},
		Retry:    llm.Retry{Base: time.Microsecond, Max: time.Microsecond},
		Breaker:  llm.Breaker{Failures: 1000},
		Cooldown: llm.Cooldown{Transient: -1, NoProvider: -1},
	}
}

func newClient(t *testing.T, c llm.Config, d llm.Deps) *llm.Client {
	t.Helper()
	client, err := llm.New(c, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// started returns a server that listens, and its address.
func started(t *testing.T, steps ...llmtest.Step) (*llmtest.Server, string) {
	t.Helper()
	s := llmtest.New(steps...)
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, url
}

// always returns a step that is played for every request of a test.
func always(b llmtest.Behaviour) llmtest.Step { return llmtest.Step{Behaviour: b, Times: 1000} }

// hosts carries requests to handlers by the name of their host, without a network,
// so that everything runs on the clock of a synctest bubble.
type hosts map[string]http.Handler

func (h hosts) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	w := httptest.NewRecorder()
	done := make(chan bool)
	go func() {
		aborted := true
		defer func() {
			_ = recover() // of http.ErrAbortHandler
			done <- aborted
		}()
		h[req.URL.Hostname()].ServeHTTP(w, req)
		aborted = false
	}()
	aborted := <-done
	if req.Context().Err() != nil {
		return nil, req.Context().Err()
	}
	resp := w.Result()
	if aborted {
		resp.Body = io.NopCloser(io.MultiReader(resp.Body, failing{}))
	}
	return resp, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// asError returns the *llm.Error that every failed call ends with.
func asError(t *testing.T, err error) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Fatalf("the error is %T: %v", err, err)
	}
	return e
}

// cooldowns records the calls of Set.
type cooldowns struct {
	mu    sync.Mutex
	until map[string]time.Time
	codes map[string]string
	err   error
}

func (c *cooldowns) Until(_ context.Context, model string) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until[model], c.err
}

func (c *cooldowns) Set(_ context.Context, model string, until time.Time, code string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil {
		c.until, c.codes = map[string]time.Time{}, map[string]string{}
	}
	c.until[model], c.codes[model] = until, code
	return c.err
}

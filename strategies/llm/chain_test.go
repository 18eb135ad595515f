package llm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
)

// The table of rules, as it shows: how often the first model is asked, whether the
// next one is, and for how long the first is left alone by other calls.
func TestRules(t *testing.T) {
	t.Parallel()
	type want struct {
		tries    int
		next     bool
		cooldown time.Duration
	}
	for b, w := range map[llmtest.Behaviour]want{
		llmtest.RateLimited:       {tries: 4, next: true, cooldown: time.Minute},
		llmtest.ServerError:       {tries: 3, next: true, cooldown: time.Minute},
		llmtest.Hang:              {tries: 1, next: true, cooldown: time.Minute},
		llmtest.ErrorBody:         {tries: 2, next: true},
		llmtest.FilterError:       {tries: 1, next: true},
		llmtest.BadRequest:        {tries: 1, next: true},
		llmtest.InsufficientQuota: {tries: 1, next: true, cooldown: 10 * time.Minute},
		llmtest.AuthError:         {tries: 1, next: true, cooldown: 10 * time.Minute},
		llmtest.ModelNotFound:     {tries: 1, next: true, cooldown: 10 * time.Minute},
		llmtest.ContextTooLong:    {tries: 1, next: true}, // its window is larger
	} {
		t.Run(string(b), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				first, second := llmtest.New(always(b)), llmtest.New()
				larger := profile("second", "http://b/v1")
				larger.Window *= 2
				recorded := &cooldowns{}
				client := newClient(t, llm.Config{Models: []llm.Profile{profile("first", "http://a/v1"), larger}},
					llm.Deps{Transport: hosts{"a": first, "b": second}, Cooldowns: recorded})
				a, err := client.Complete(t.Context(), llm.Call{User: prompt})
				if err != nil || a.Model != "second" || a.Attempts != w.tries+1 || a.Duration < 0 {
					t.Fatalf("answer %+v, error %v", a, err)
				}
				got := want{tries: first.Calls(), next: second.Calls() == 1}
				if until, ok := recorded.until["first@a"]; ok {
					got.cooldown = time.Until(until)
				}
				if diff := cmp.Diff(w, got, cmp.AllowUnexported(want{})); diff != "" {
					t.Errorf("want -, got +\n%s", diff)
				}
				// Meanwhile the next model is the one to plan for and to ask.
				if (w.cooldown > 0) != (client.Usable(t.Context()).Window == larger.Window) {
					t.Errorf("window %d", client.Usable(t.Context()).Window)
				}
				if w.cooldown == 0 {
					return
				}
				sleep(w.cooldown - time.Second)
				if _, err := client.Complete(t.Context(), llm.Call{User: prompt}); err != nil || first.Calls() != w.tries {
					t.Errorf("called within its cooldown: %d calls, error %v", first.Calls(), err)
				}
				sleep(2 * time.Second)
				if _, err := client.Complete(t.Context(), llm.Call{User: prompt}); err != nil || first.Calls() == w.tries {
					t.Errorf("not called after its cooldown: %d calls, error %v", first.Calls(), err)
				}
			})
		})
	}
}

// sleep moves the clock of the bubble.
func sleep(d time.Duration) { <-time.After(d) }

func TestCooldownIsIgnoredOnDemand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := llmtest.New(llmtest.Step{Behaviour: llmtest.AuthError})
		client := newClient(t, llm.Config{Models: []llm.Profile{profile("m", "http://a/v1")}}, llm.Deps{Transport: hosts{"a": server}})
		_, err := client.Complete(t.Context(), llm.Call{User: prompt})
		if e := asError(t, err); e.Class != llm.Auth || e.RetryAfter != 10*time.Minute {
			t.Errorf("error %v", err)
		}
		sleep(time.Minute)
		_, err = client.Complete(t.Context(), llm.Call{User: prompt})
		if e := asError(t, err); e.Class != llm.Unavailable || e.RetryAfter != 9*time.Minute || e.Attempts != 0 {
			t.Errorf("error %v", err)
		}
		if a, err := client.Complete(t.Context(), llm.Call{User: prompt, IgnoreCooldown: true}); err != nil || a.Attempts != 1 {
			t.Errorf("answer %+v, error %v", a, err)
		}
	})
}

func TestCooldownsThatFailKeepNothingFromBeingAsked(t *testing.T) {
	t.Parallel()
	_, url := started(t, llmtest.Step{Behaviour: llmtest.AuthError})
	c := quick(profile("m", url))
	c.Cooldown = llm.Cooldown{}
	client := newClient(t, c, llm.Deps{Cooldowns: &cooldowns{err: errors.New("the store is away")}})
	if _, err := client.Complete(t.Context(), llm.Call{User: prompt}); asError(t, err).Class != llm.Auth {
		t.Errorf("error %v", err)
	}
	if _, err := client.Complete(t.Context(), llm.Call{User: prompt}); err != nil {
		t.Errorf("error %v", err)
	}
}

func TestContextTooLongGoesToLargerWindowsOnly(t *testing.T) {
	t.Parallel()
	first, urlA := started(t, always(llmtest.ContextTooLong))
	same, urlB := started(t)
	large, urlC := started(t, llmtest.Step{Behaviour: llmtest.Normal}, llmtest.Step{Behaviour: llmtest.ContextTooLong})
	c := profile("large", urlC)
	c.Window = 200_000
	client := newClient(t, quick(profile("first", urlA), profile("same", urlB), c), llm.Deps{})

	a, err := client.Complete(t.Context(), llm.Call{User: prompt, InputTokens: 50_000, MaxTokens: 1000})
	if err != nil || a.Model != "large" || same.Calls() != 0 {
		t.Errorf("answer %+v, error %v, %d calls of the same window", a, err, same.Calls())
	}
	_, err = client.Complete(t.Context(), llm.Call{User: prompt, InputTokens: 50_000, MaxTokens: 1000})
	if e := asError(t, err); e.Class != llm.ContextTooLong || e.Attempts != 2 || same.Calls() != 0 || large.Calls() != 2 {
		t.Errorf("error %v", err)
	}
	// A prompt that does not fit is not sent.
	calls := first.Calls()
	_, err = client.Complete(t.Context(), llm.Call{User: prompt, InputTokens: 199_500, MaxTokens: 1000})
	if e := asError(t, err); e.Class != llm.ContextTooLong || e.Attempts != 0 || first.Calls() != calls || large.Calls() != 2 {
		t.Errorf("error %v", err)
	}
	// A call without an output limit gets the cooldown of the window.
	if _, err = client.Complete(t.Context(), llm.Call{User: prompt, InputTokens: 199_500}); err != nil || large.Requests()[2].MaxTokens != 500 {
		t.Errorf("error %v, requests %+v", err, large.Requests())
	}
	_, err = client.Complete(t.Context(), llm.Call{User: prompt, InputTokens: 200_000})
	if e := asError(t, err); e.Class != llm.ContextTooLong || e.Attempts != 0 {
		t.Errorf("error %v", err)
	}
	if client.Usable(t.Context()).Window != 100_000 {
		t.Errorf("window %d", client.Usable(t.Context()).Window)
	}
}

// Of several failures the one is reported that the caller can do most about.
func TestWhichFailureIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, second llmtest.Behaviour
		want          llm.Class
	}{
		"what passes, before what does not":   {llmtest.ServerError, llmtest.AuthError, llm.Overloaded},
		"and the other way round":             {llmtest.AuthError, llmtest.ServerError, llm.Overloaded},
		"the last of two alike":               {llmtest.AuthError, llmtest.InsufficientQuota, llm.QuotaExhausted},
		"what a smaller input would help":     {llmtest.ContextTooLong, llmtest.RateLimited, llm.ContextTooLong},
		"an odd answer, before a bad request": {llmtest.ErrorBody, llmtest.BadRequest, llm.MalformedAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, urlA := started(t, always(c.first))
			_, urlB := started(t, always(c.second))
			second := profile("second", urlB)
			second.Window *= 2
			client := newClient(t, quick(profile("first", urlA), second), llm.Deps{})
			_, err := client.Complete(t.Context(), llm.Call{User: prompt})
			if e := asError(t, err); e.Class != c.want {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Failures of requests are reported before those found without a request.
func TestFailuresOfServersAreReportedFirst(t *testing.T) {
	t.Parallel()
	_, url := started(t, always(llmtest.ServerError))
	limited := profile("limited", url)
	limited.RequestsPerMinute = 1
	for _, models := range [][]llm.Profile{{profile("failing", url), limited}, {limited, profile("failing", url)}} {
		client := newClient(t, quick(models...), llm.Deps{Limiter: fullLimiter{}})
		_, err := client.Complete(t.Context(), llm.Call{User: prompt})
		if e := asError(t, err); e.Class != llm.Overloaded || e.Model != "failing" || e.Attempts != 3 {
			t.Errorf("error %v", err)
		}
	}
}

type fullLimiter struct{}

func (fullLimiter) Reserve(context.Context, llm.Take) (time.Duration, error) { return time.Hour, nil }

func TestAllCircuitsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := llmtest.New(always(llmtest.BadGateway))
		c := quick(profile("m", "http://a/v1"))
		c.Breaker = llm.Breaker{Failures: 2, Open: 40 * time.Second}
		client := newClient(t, c, llm.Deps{Transport: hosts{"a": server}})
		_, err := client.Complete(t.Context(), llm.Call{User: prompt})
		if e := asError(t, err); e.Class != llm.Overloaded || e.Attempts != 2 || e.Status != 502 || e.RetryAfter < 39*time.Second {
			t.Errorf("error %v", err) // and not that of the circuit, which the call itself opened
		}
		sleep(10 * time.Second)
		_, err = client.Complete(t.Context(), llm.Call{User: prompt, IgnoreCooldown: true})
		e := asError(t, err)
		if e.Class != llm.Unavailable || e.Attempts != 0 || e.RetryAfter < 30*time.Second || e.RetryAfter > 31*time.Second || e.Model != "m" {
			t.Errorf("error %v", err)
		}
		sleep(e.RetryAfter)
		if _, err = client.Complete(t.Context(), llm.Call{User: prompt}); asError(t, err).Class != llm.Overloaded {
			t.Errorf("not tried at the time that was named: %v", err)
		}
	})
}

// silent returns an address that refuses connections. A socket is bound to it until the
// test ends, so that no other program comes to listen there.
func silent(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

// Nothing is sent without a connection, so nothing is billed.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	unknown := httptest.NewUnstartedServer(http.NotFoundHandler())
	unknown.Config.ErrorLog = log.New(io.Discard, "", 0)
	unknown.StartTLS()
	defer unknown.Close()
	_, plain := started(t)
	mute, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	for name, url := range map[string]string{
		"no server listens":                  "http://" + silent(t),
		"the certificate is not trusted":     unknown.URL,
		"the server does not speak TLS":      strings.Replace(plain, "http:", "https:", 1),
		"the server does not answer in time": "https://" + mute.Addr().String(),
	} {
		c := quick(profile("m", url+"/v1"))
		if name == "the server does not answer in time" {
			c.Deadline.Connect = 100 * time.Millisecond
		}
		_, err := newClient(t, c, llm.Deps{}).Complete(t.Context(), llm.Call{User: prompt})
		e := asError(t, err)
		refused := strings.Contains(e.Server.Message, "connection refused")
		if e.Class != llm.Unavailable || e.Attempts != 3 || e.Usage != (llm.Usage{}) || name == "no server listens" && !refused {
			t.Errorf("%s: %v, usage %+v, %q", name, err, e.Usage, e.Server.Message)
		}
	}
}

func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := llmtest.New(always(llmtest.Hang)), llmtest.New()
		recorded := &cooldowns{}
		client := newClient(t, llm.Config{Models: []llm.Profile{profile("first", "http://a/v1"), profile("second", "http://b/v1")}, Breaker: llm.Breaker{Failures: 1}},
			llm.Deps{Transport: hosts{"a": first, "b": second}, Cooldowns: recorded})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("the worker stops")) })
		_, err := client.Complete(ctx, llm.Call{User: prompt})
		if e := asError(t, err); e.Class != llm.Canceled || e.Attempts != 1 || !errors.Is(err, context.Canceled) || e.Usage.Estimated != 1 {
			t.Errorf("error %v", err)
		}
		ctx, cancelWait := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancelWait)
		waiting := newClient(t, llm.Config{Models: []llm.Profile{profile("m", "http://c/v1")}},
			llm.Deps{Transport: hosts{"c": llmtest.New(llmtest.Step{Behaviour: llmtest.RateLimitedAfter, RetryAfter: "50"})}})
		_, err = waiting.Complete(ctx, llm.Call{User: prompt})
		if e := asError(t, err); e.Class != llm.Canceled || e.Attempts != 1 || e.Model != "m" || !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = client.Complete(ctx, llm.Call{User: prompt}) // the first is available
		if e := asError(t, err); e.Class != llm.Timeout || e.Attempts != 1 || !errors.Is(err, context.DeadlineExceeded) || e.Stopped != "" {
			t.Errorf("error %v", err)
		}
		if second.Calls() != 0 || len(recorded.until) != 0 {
			t.Errorf("%d calls, recorded %v", second.Calls(), recorded.until)
		}
		if _, err = client.Complete(ctx, llm.Call{User: prompt}); asError(t, err).Attempts != 0 {
			t.Errorf("error %v", err)
		}
		if got := client.Usable(t.Context()).Name; got != "first" {
			t.Errorf("%s is to be asked: what the caller did is held against a server", got)
		}
	})
}

func TestCircuitOpensAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := llmtest.New(llmtest.Step{Behaviour: llmtest.ServerError, Times: 6}), llmtest.New()
		c := quick(profile("first", "http://a/v1"), profile("second", "http://b/v1"))
		c.Breaker = llm.Breaker{} // 5 failures, 30 s
		client := newClient(t, c, llm.Deps{Transport: hosts{"a": first, "b": second}})
		ask := func(model string, calls int) {
			t.Helper()
			a, err := client.Complete(t.Context(), llm.Call{User: prompt})
			if err != nil || a.Model != model || first.Calls() != calls {
				t.Fatalf("answer of %q, error %v, first was asked %d times, want %q and %d", a.Model, err, first.Calls(), model, calls)
			}
		}
		ask("second", 3)
		ask("second", 5) // the circuit opens before the third try
		ask("second", 5)
		sleep(31 * time.Second)
		ask("second", 6) // one call tries, and fails
		ask("second", 6)
		sleep(31 * time.Second)
		ask("first", 7)
		ask("first", 8)
	})
}

// A call that was given up says nothing about the server, neither for nor against it.
func TestCallsGivenUpAreNotCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := llmtest.New(llmtest.Step{Behaviour: llmtest.ServerError}, llmtest.Step{Behaviour: llmtest.Hang}, always(llmtest.ServerError))
		c := quick(profile("m", "http://a/v1"))
		c.Breaker, c.Budget.Attempts = llm.Breaker{Failures: 2}, 1
		client := newClient(t, c, llm.Deps{Transport: hosts{"a": server}})
		ask := func(d time.Duration, want llm.Class) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(d, cancel)
			if _, err := client.Complete(ctx, llm.Call{User: prompt}); asError(t, err).Class != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
		ask(time.Second, llm.Overloaded)
		ask(time.Second, llm.Canceled)
		ask(time.Second, llm.Overloaded)
		ask(time.Second, llm.Unavailable)
	})
}

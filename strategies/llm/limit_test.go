package llm_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
)

// began is a call that has started, with the units that it took.
type began struct {
	at     int64 // microseconds
	tokens int
}

const minute = 60_000_000

// checkMinutes fails if the calls of any minute take more than a limit.
func checkMinutes(t interface {
	Helper()
	Errorf(format string, args ...any)
}, calls []began, requests, tokens int,
) {
	t.Helper()
	slices.SortFunc(calls, func(a, b began) int { return int(a.at - b.at) })
	for i, first := range calls {
		n, sum := 0, 0
		for _, c := range calls[i:] {
			if c.at >= first.at+minute {
				break
			}
			n, sum = n+1, sum+min(c.tokens, tokens)
		}
		if requests > 0 && n > requests || tokens > 0 && sum > tokens {
			t.Errorf("the minute from %d: %d requests of %d, %d tokens of %d", first.at, n, requests, sum, tokens)
			return
		}
	}
}

// No sequence of calls exceeds the limits in any minute, and every call starts eventually.
func TestLimitsHoldInEveryMinute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		requests := rapid.IntRange(0, 40).Draw(rt, "requests")
		tokens := rapid.IntRange(0, 2000).Draw(rt, "tokens")
		largest := rapid.SampledFrom([]int{1, 10, 400, 2500}).Draw(rt, "largest")
		steps := rapid.SliceOfN(rapid.IntRange(0, 20_000), 1, 120).Draw(rt, "pauses")
		synctest.Test(t, func(*testing.T) {
			limiter := llm.NewLocalLimiter()
			var calls []began
			for _, pause := range steps {
				if pause < 15_000 { // else at once
					sleep(time.Duration(pause) * time.Millisecond)
				}
				n := rapid.IntRange(0, largest).Draw(rt, "n")
				wait, err := limiter.Reserve(context.Background(), llm.Take{Key: "k", RequestsPerMinute: requests, TokensPerMinute: tokens, Tokens: n, MaxWait: time.Hour})
				if err != nil {
					rt.Fatal(err)
				}
				if wait <= time.Hour {
					calls = append(calls, began{time.Now().Add(wait).UnixMicro(), n})
				}
			}
			checkMinutes(rt, calls, requests, tokens)
		})
	})
}

// Continuous calls use most of the limit, whether they are small or large.
func TestLimitsAreUsed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ requests, tokens, each, least int }{
		{requests: 60, each: 1, least: 47}, // calls in a minute, of at most 60
		{requests: 1, each: 1, least: 1},
		{requests: 3, each: 1, least: 3},
		{tokens: 10_000, each: 100, least: 79},
		{tokens: 10_000, each: 2_000, least: 3},  // of 5
		{tokens: 10_000, each: 10_000, least: 0}, // one in two minutes
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter := llm.NewLocalLimiter()
			start := time.Now()
			n := 0
			for time.Since(start) < 10*time.Minute {
				wait, err := limiter.Reserve(t.Context(), llm.Take{Key: "k", RequestsPerMinute: c.requests, TokensPerMinute: c.tokens, Tokens: c.each, MaxWait: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				sleep(wait)
				n++
			}
			if n < 10*c.least || n < 5 {
				t.Errorf("%+v: %d in ten minutes", c, n)
			}
		})
	}
}

func TestARejectedReservationTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := llm.NewLocalLimiter()
		take := llm.Take{Key: "k", RequestsPerMinute: 1, MaxWait: time.Second}
		if wait, _ := limiter.Reserve(t.Context(), take); wait != 0 {
			t.Errorf("wait %s", wait)
		}
		for range 3 {
			if wait, _ := limiter.Reserve(t.Context(), take); wait != time.Minute {
				t.Errorf("wait %s", wait)
			}
		}
		take.Key = "another"
		if wait, _ := limiter.Reserve(t.Context(), take); wait != 0 {
			t.Errorf("wait %s", wait)
		}
	})
}

// Calls of several workers wait for each other's, and go to the next model rather
// than wait too long.
func TestCallsKeepToTheLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := llmtest.New()
		p := profile("m", "http://a/v1")
		p.RequestsPerMinute, p.TokensPerMinute = 10, 40_000
		client := newClient(t, quick(p), llm.Deps{Transport: hosts{"a": server}})
		var mu sync.Mutex
		var refused int
		var calls sync.WaitGroup
		for range 30 {
			calls.Go(func() {
				_, err := client.Complete(t.Context(), llm.Call{User: prompt, InputTokens: 1000, MaxTokens: 1000})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused++
					if e := asError(t, err); e.Class != llm.RateLimited || e.Attempts != 0 || e.RetryAfter <= time.Minute || e.Status != 0 {
						t.Errorf("error %v", err)
					}
				}
			})
		}
		calls.Wait()
		var at []began
		for _, r := range server.Requests() {
			at = append(at, began{r.At.UnixMicro(), 2000})
		}
		checkMinutes(t, at, 10, 40_000)
		if len(at)+refused != 30 || len(at) < 9 || refused == 0 {
			t.Errorf("%d asked, %d refused", len(at), refused)
		}
	})
}

type brokenLimiter struct{}

func (brokenLimiter) Reserve(context.Context, llm.Take) (time.Duration, error) {
	return 0, errors.New("away")
}

func TestLimiterThatFailsKeepsNothingFromBeingAsked(t *testing.T) {
	t.Parallel()
	_, url := started(t)
	p := profile("m", url)
	p.RequestsPerMinute = 1
	client := newClient(t, quick(p), llm.Deps{Limiter: brokenLimiter{}})
	if _, err := client.Complete(t.Context(), llm.Call{User: prompt}); err != nil {
		t.Error(err)
	}
}

package llm_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/tokens"
)

func TestDeadlineGrowsWithTheInput(t *testing.T) {
	t.Parallel()
	for tokens, want := range map[int]time.Duration{
		-1: 2 * time.Minute, 0: 2 * time.Minute, 60_000: 2 * time.Minute, 60_001: 120002 * time.Millisecond,
		100_000: 200 * time.Second, 900_000: 30 * time.Minute, 1_000_000_000: 30 * time.Minute,
	} {
		if got := llm.Default().Deadline.For(tokens); got != want {
			t.Errorf("%d tokens: %s, want %s", tokens, got, want)
		}
	}
	if got := (llm.Deadline{Min: time.Second, PerToken: time.Minute, Max: time.Hour}).For(1_000_000_000); got != time.Hour {
		t.Errorf("got %s of a product that overflows", got)
	}
}

// A server that hangs has exactly the deadline; then the next one is asked.
func TestDeadlineOfAnAttempt(t *testing.T) {
	t.Parallel()
	for tokens, want := range map[int]time.Duration{1000: 2 * time.Minute, 90_000: 3 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			client := newClient(t, llm.Config{Models: []llm.Profile{profile("a", "http://a/v1"), profile("b", "http://b/v1")}},
				llm.Deps{Transport: hosts{"a": llmtest.New(always(llmtest.Hang)), "b": llmtest.New()}})
			a, err := client.Complete(t.Context(), llm.Call{User: prompt, InputTokens: tokens, MaxTokens: 1000})
			if err != nil || a.Duration != want || a.Model != "b" || a.Usage.Estimated != 1 {
				t.Errorf("answer %+v, error %v: want %s", a, err, want)
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		after string
		least time.Duration
	}{
		{"7", 7 * time.Second},
		{"0.5", 500 * time.Millisecond},
		{"Sat, 01 Jan 2000 00:00:12 GMT", 12 * time.Second}, // a bubble begins with the year
		{"soon", 0},
		{"-5", 0},
		{"NaN", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := llmtest.New(llmtest.Step{Behaviour: llmtest.RateLimitedAfter, RetryAfter: c.after})
			client := newClient(t, llm.Config{Models: []llm.Profile{profile("m", "http://a/v1")}}, llm.Deps{Transport: hosts{"a": server}})
			a, err := client.Complete(t.Context(), llm.Call{User: prompt})
			if err != nil || a.Duration < c.least || a.Duration > c.least+time.Second || a.Attempts != 2 {
				t.Errorf("Retry-After %s: answer %+v, error %v", c.after, a, err)
			}
		})
	}
}

func took(since time.Time) time.Duration { return time.Since(since) }

func TestLongRetryAfterIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := llmtest.New(llmtest.Step{Behaviour: llmtest.RateLimitedAfter, RetryAfter: "300"}), llmtest.New(llmtest.Step{}, always(llmtest.ServerError))
		client := newClient(t, llm.Config{Models: []llm.Profile{profile("a", "http://a/v1"), profile("b", "http://b/v1")}},
			llm.Deps{Transport: hosts{"a": first, "b": second}})
		a, err := client.Complete(t.Context(), llm.Call{User: prompt})
		if err != nil || a.Duration != 0 || a.Model != "b" || first.Calls() != 1 {
			t.Errorf("answer %+v, error %v", a, err)
		}
		// The cooldown of the first is its Retry-After, that of the second the default.
		_, err = client.Complete(t.Context(), llm.Call{User: prompt})
		if e := asError(t, err); e.Class != llm.Overloaded || e.RetryAfter != time.Minute {
			t.Errorf("error %v", err)
		}
		sleep(2 * time.Minute)
		_, _ = client.Complete(t.Context(), llm.Call{User: prompt})
		if first.Calls() != 1 {
			t.Error("asked before the time that its server named")
		}
		sleep(4 * time.Minute)
		if a, err := client.Complete(t.Context(), llm.Call{User: prompt}); err != nil || a.Model != "a" {
			t.Errorf("answer %+v, error %v", a, err)
		}
	})
}

// Full jitter: waits are anywhere between nothing and a bound that doubles.
func TestWaitsAreDrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var least, most [3]time.Duration
		for i := range 100 {
			server := llmtest.New(llmtest.Step{Behaviour: llmtest.RateLimited, Times: 3})
			c := llm.Config{Models: []llm.Profile{profile("m", "http://a/v1")}, Retry: llm.Retry{Base: time.Second, Max: 3 * time.Second}}
			if _, err := newClient(t, c, llm.Deps{Transport: hosts{"a": server}}).Complete(t.Context(), llm.Call{User: prompt}); err != nil {
				t.Fatal(err)
			}
			r := server.Requests()
			for n := range 3 {
				d := r[n+1].At.Sub(r[n].At)
				if i == 0 || d < least[n] {
					least[n] = d
				}
				most[n] = max(most[n], d)
			}
		}
		for n, bound := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
			if most[n] > bound || most[n] < bound*8/10 || least[n] > bound/5 {
				t.Errorf("wait %d is between %s and %s, its bound is %s", n+1, least[n], most[n], bound)
			}
		}
	})
}

func TestBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		behaviour llmtest.Behaviour
		budget    llm.Budget
		attempts  int
		class     llm.Class
		stopped   string
	}{
		"attempts are counted over all models": {behaviour: llmtest.ServerError, budget: llm.Budget{Attempts: 4}, attempts: 4, class: llm.Overloaded, stopped: "attempts"},
		"what is not billed takes no tokens":   {behaviour: llmtest.ServerError, budget: llm.Budget{Tokens: 3000}, attempts: 6, class: llm.Overloaded},
		"an attempt takes what was reported":   {behaviour: llmtest.Empty, budget: llm.Budget{Tokens: 2080}, attempts: 2, class: llm.MalformedAnswer, stopped: "tokens"},
		"without a report what it might have":  {behaviour: llmtest.InvalidJSON, budget: llm.Budget{Tokens: 5999}, attempts: 2, class: llm.MalformedAnswer, stopped: "tokens"},
		"by default four attempts' worth":      {behaviour: llmtest.InvalidJSON, attempts: 4, class: llm.MalformedAnswer},
		"the first attempt has to fit":         {behaviour: llmtest.Normal, budget: llm.Budget{Tokens: 1999}, class: llm.OverBudget, stopped: "tokens"},
		"money is counted":                     {behaviour: llmtest.InvalidJSON, budget: llm.Budget{Cost: 0.0149}, attempts: 2, class: llm.MalformedAnswer, stopped: "cost"},
		"and the first attempt has to fit":     {behaviour: llmtest.Normal, budget: llm.Budget{Cost: 0.0049}, class: llm.OverBudget, stopped: "cost"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, urlA := started(t, always(c.behaviour))
			_, urlB := started(t, always(c.behaviour))
			cfg := quick(profile("a", urlA), profile("b", urlB))
			cfg.Budget = c.budget
			client := newClient(t, cfg, llm.Deps{})
			// 1000 in and 1000 out are 2000 tokens and 0.005.
			_, err := client.Complete(t.Context(), llm.Call{User: prompt, InputTokens: 1000, MaxTokens: 1000})
			if e := asError(t, err); e.Class != c.class || e.Attempts != c.attempts || e.Stopped != c.stopped {
				t.Errorf("error %v, want %s after %d attempts, stopped %q", err, c.class, c.attempts, c.stopped)
			}
		})
	}
}

func TestCheaperModelIsAskedWithinTheBudget(t *testing.T) {
	t.Parallel()
	dear, urlA := started(t)
	_, urlB := started(t)
	cheap := profile("cheap", urlB)
	cheap.Price = llm.Price{}
	c := quick(profile("dear", urlA), cheap)
	c.Budget.Cost = 0.001
	client := newClient(t, c, llm.Deps{})
	a, err := client.Complete(t.Context(), llm.Call{User: prompt, MaxTokens: 1000})
	if err != nil || a.Model != "cheap" || a.CostMicros != 0 || dear.Calls() != 0 {
		t.Errorf("answer %+v, error %v", a, err)
	}
}

func TestTimeBoundsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := llmtest.New(always(llmtest.Hang)), llmtest.New(always(llmtest.Hang))
		c := llm.Config{Models: []llm.Profile{profile("a", "http://a/v1"), profile("b", "http://b/v1")}, Budget: llm.Budget{Time: 3 * time.Minute}}
		client := newClient(t, c, llm.Deps{Transport: hosts{"a": first, "b": second}})
		began := time.Now()
		_, err := client.Complete(t.Context(), llm.Call{User: prompt})
		if e := asError(t, err); e.Class != llm.Timeout || e.Attempts != 2 || e.Stopped != "time" || took(began) != 3*time.Minute || e.Unwrap() != nil {
			t.Errorf("after %s: %v", took(began), err)
		}
	})
}

// Whatever servers do, a call keeps to its attempts and its time.
func TestCallsEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		steps := func(name string) (s []llmtest.Step) {
			for range rapid.IntRange(0, 6).Draw(rt, name) {
				s = append(s, llmtest.Step{
					Behaviour: rapid.SampledFrom(llmtest.Behaviours()).Draw(rt, "behaviour"), Delay: time.Minute,
					RetryAfter: rapid.SampledFrom([]string{"1", "50", "400"}).Draw(rt, "after"),
				})
			}
			return s
		}
		a, b := steps("first"), steps("second")
		synctest.Test(t, func(t *testing.T) {
			first, second := llmtest.New(a...), llmtest.New(b...)
			c := llm.Config{Models: []llm.Profile{profile("a", "http://a/v1"), profile("b", "http://b/v1")}, Budget: llm.Budget{Attempts: 5, Time: 10 * time.Minute}}
			client := newClient(t, c, llm.Deps{Transport: hosts{"a": first, "b": second}})
			began := time.Now()
			got, err := client.Complete(t.Context(), llm.Call{User: prompt, MaxTokens: 100})
			attempts, usage := got.Attempts, got.Usage
			if err != nil {
				e := asError(t, err)
				attempts, usage = e.Attempts, e.Usage
			}
			calls, paid := first.Calls()+second.Calls(), first.Paid()+second.Paid()
			if took(began) > 10*time.Minute || attempts > 5 || calls != attempts {
				rt.Errorf("%v %v: took %s, %d attempts, %d calls", a, b, took(began), attempts, calls)
			}
			if in := paid*(8+(len(prompt)+3)/4) + usage.Estimated*int(tokens.ForModel("a").Text(prompt)); usage.Input != in {
				rt.Errorf("%v %v: %d calls were paid and %d are estimates, input is %d, want %d", a, b, paid, usage.Estimated, usage.Input, in)
			}
			if err == nil && got.Text == "" && got.Refusal == "" {
				rt.Errorf("%v %v: an answer that says nothing", a, b)
			}
		})
	})
}

package llm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// The result of a call for each behaviour of a server, repeated for all attempts, over a real
// connection.
func TestBehaviours(t *testing.T) {
	t.Parallel()
	type want struct {
		class     llm.Class // "" for an answer
		status    int
		attempts  int
		paid      int
		estimated int
		finish    string
	}
	answer := want{attempts: 1, paid: 1, finish: llm.FinishStop}
	cases := map[llmtest.Behaviour]want{
		llmtest.Normal:             answer,
		llmtest.Slow:               answer,
		llmtest.ThinkingAloud:      answer,
		llmtest.EchoSecret:         answer,
		llmtest.Inject:             answer,
		llmtest.WrongLanguage:      answer,
		llmtest.InventedQuote:      answer,
		llmtest.Refusal:            answer,
		llmtest.NoUsage:            {attempts: 1, estimated: 1, finish: llm.FinishStop},
		llmtest.Length:             {attempts: 1, paid: 1, finish: llm.FinishLength},
		llmtest.RateLimited:        {class: llm.RateLimited, status: 429, attempts: 4},
		llmtest.RateLimitedAfter:   {class: llm.RateLimited, status: 429, attempts: 4},
		llmtest.ServerError:        {class: llm.Overloaded, status: 500, attempts: 3},
		llmtest.BadGateway:         {class: llm.Overloaded, status: 502, attempts: 3},
		llmtest.Overloaded:         {class: llm.Overloaded, status: 529, attempts: 3},
		llmtest.TooLarge:           {class: llm.ContextTooLong, status: 413, attempts: 1},
		llmtest.Cut:                {class: llm.MalformedAnswer, status: 200, attempts: 2, estimated: 2},
		llmtest.Empty:              {class: llm.MalformedAnswer, status: 200, attempts: 2, paid: 2},
		llmtest.NullContent:        {class: llm.MalformedAnswer, status: 200, attempts: 2, paid: 2},
		llmtest.Thinking:           {class: llm.MalformedAnswer, status: 200, attempts: 2, paid: 2},
		llmtest.NoChoices:          {class: llm.MalformedAnswer, status: 200, attempts: 2, paid: 2},
		llmtest.InvalidJSON:        {class: llm.MalformedAnswer, status: 200, attempts: 2, estimated: 2},
		llmtest.ErrorBody:          {class: llm.MalformedAnswer, status: 200, attempts: 2, estimated: 2},
		llmtest.Filter:             {class: llm.ContentFilter, status: 200, attempts: 1, paid: 1},
		llmtest.FilterError:        {class: llm.ContentFilter, status: 400, attempts: 1},
		llmtest.ContextTooLong:     {class: llm.ContextTooLong, status: 400, attempts: 1},
		llmtest.ContextTooLongText: {class: llm.ContextTooLong, status: 400, attempts: 1},
		llmtest.InsufficientQuota:  {class: llm.QuotaExhausted, status: 429, attempts: 1},
		llmtest.AuthError:          {class: llm.Auth, status: 401, attempts: 1},
		llmtest.BadRequest:         {class: llm.BadRequest, status: 400, attempts: 1},
		llmtest.BadRequestEcho:     {class: llm.BadRequest, status: 400, attempts: 1},
		llmtest.ModelNotFound:      {class: llm.ModelNotFound, status: 404, attempts: 1},
	}
	for _, b := range llmtest.Behaviours() {
		if b == llmtest.Hang { // TestRules and TestDeadlineOfAnAttempt have it, on a clock of their own
			continue
		}
		w, ok := cases[b]
		if !ok {
			t.Errorf("%s is not tested", b)
			continue
		}
		t.Run(string(b), func(t *testing.T) {
			t.Parallel()
			server, url := started(t, llmtest.Step{Behaviour: b, Times: 1000, Delay: 20 * time.Millisecond, RetryAfter: "0.02"})
			client := newClient(t, quick(profile("model-a", url)), llm.Deps{})
			began := time.Now()
			a, err := client.Complete(t.Context(), llm.Call{User: prompt, MaxTokens: 1000})
			took := time.Since(began)

			got := want{attempts: a.Attempts, finish: a.FinishReason, estimated: a.Usage.Estimated, paid: server.Paid()}
			usage, cost := a.Usage, a.CostMicros
			if err != nil {
				e := asError(t, err)
				got = want{class: e.Class, status: e.Status, attempts: e.Attempts, estimated: e.Usage.Estimated, paid: server.Paid()}
				usage, cost = e.Usage, e.CostMicros
				if e.Model != "model-a" || a != (llm.Answer{}) {
					t.Errorf("model %q, answer %+v", e.Model, a)
				}
			} else if (a.Text == "") != (b == llmtest.Refusal) || (a.Refusal == "") == (b == llmtest.Refusal) || a.Model != "model-a" {
				t.Errorf("answer %+v", a)
			}
			if diff := cmp.Diff(w, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("want -, got +\n%s", diff)
			}
			if server.Calls() != w.attempts {
				t.Errorf("%d requests, %d attempts counted", server.Calls(), w.attempts)
			}
			// The server counts letters, so the expected usage can be computed.
			in := 8 + (len(prompt)+3)/4
			if w.paid > 0 && (usage.Input != w.paid*in || usage.Cached != w.paid*(in/4) || cost == 0) {
				t.Errorf("usage %+v, cost %d: want %d times %d tokens", usage, cost, w.paid, in)
			}
			if w.paid > 0 {
				exact := float64(usage.Input-usage.Cached) + 0.25*float64(usage.Cached) + 4*float64(usage.Output)
				if float64(cost) < exact || float64(cost) > exact+float64(w.paid) {
					t.Errorf("cost %d, by the prices %v", cost, exact)
				}
			}
			if counted := int(tokens.ForModel("model-a").Text(prompt)); w.paid == 0 && usage.Input != w.estimated*counted {
				t.Errorf("usage %+v, want %d times %d tokens by the own count", usage, w.estimated, counted)
			}
			if w.paid == 0 && cost != int64(usage.Input+4*usage.Output) {
				t.Errorf("cost %d of usage %+v", cost, usage)
			}
			if b == llmtest.RateLimitedAfter && took < 60*time.Millisecond {
				t.Errorf("took %s: three times 20 ms were to be waited", took)
			}
		})
	}
}

func TestAnswersText(t *testing.T) {
	t.Parallel()
	const key = "sk-canary-0123456789abcdef"
	env := func(string) (string, bool) { return key, true }
	_, url := started(t,
		llmtest.Step{Behaviour: llmtest.Normal, Text: "plain words"},
		llmtest.Step{Behaviour: llmtest.ThinkingAloud, Text: "after the thought"},
		llmtest.Step{Behaviour: llmtest.EchoSecret},
		llmtest.Step{Behaviour: llmtest.Refusal, Text: "no, " + key},
	)
	p := profile("m", url)
	p.KeyEnv = "KEY"
	client := newClient(t, quick(p), llm.Deps{Env: env})
	ask := func() llm.Answer {
		t.Helper()
		a, err := client.Complete(t.Context(), llm.Call{User: prompt})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask(); a.Text != "plain words" {
		t.Errorf("text %q", a.Text)
	}
	if a := ask(); a.Text != "after the thought" || a.Usage.Reasoning == 0 {
		t.Errorf("text %q, usage %+v", a.Text, a.Usage)
	}
	if a := ask(); strings.Contains(a.Text, key) || !strings.Contains(a.Text, "Bearer [REDACTED]") || !strings.Contains(a.Text, "Please fix store/run.go") {
		t.Errorf("text %q", a.Text)
	}
	if a := ask(); a.Refusal != "no, [REDACTED]" || a.Text != "" {
		t.Errorf("answer %+v", a)
	}
}

// The output limit of a reasoning model includes its reasoning, and is doubled once after
// the reasoning has used it up.
func TestOutputLimitIncludesReasoning(t *testing.T) {
	t.Parallel()
	server, url := started(t, llmtest.Step{Behaviour: llmtest.Thinking}, llmtest.Step{Behaviour: llmtest.Normal})
	p := profile("o4-mini", url)
	p.FixedTemperature, p.ReasoningEffort, p.ReasoningTokens = true, "low", 2000
	client := newClient(t, quick(p), llm.Deps{})
	a, err := client.Complete(t.Context(), llm.Call{System: "Take notes.", User: prompt, MaxTokens: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if a.Attempts != 2 || server.Paid() != 2 || a.Usage.Reasoning < 3000 || a.Usage.Output <= 3000 {
		t.Errorf("answer %+v", a)
	}
	got := server.Requests()
	if got[0].MaxTokens != 3000 || got[1].MaxTokens != 6000 {
		t.Errorf("limits %d and %d", got[0].MaxTokens, got[1].MaxTokens)
	}
	if r := got[0]; r.MaxTokensField != "max_completion_tokens" || r.Temperature != nil || r.Effort != "low" || r.System != "Take notes." || r.Authorized {
		t.Errorf("request %+v", r)
	}

	// Where no larger limit is possible, the model is not asked again.
	full, url := started(t, always(llmtest.Thinking))
	p = profile("m", url)
	p.MaxOutput, p.MaxTokensField = 1000, llm.MaxTokens
	_, err = newClient(t, quick(p), llm.Deps{}).Complete(t.Context(), llm.Call{User: prompt, MaxTokens: 1000})
	if e := asError(t, err); e.Class != llm.MalformedAnswer || e.Attempts != 1 {
		t.Errorf("error %v", err)
	}
	if r := full.Requests()[0]; r.MaxTokensField != "max_tokens" || r.MaxTokens != 1000 || r.Temperature == nil || *r.Temperature != 0 {
		t.Errorf("request %+v", r)
	}
}

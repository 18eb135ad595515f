package summary_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies"
	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// Halving a part keeps to the maximum number of parts, and each cut is reported once.
func TestHalvedPartsAreNoMoreThanThereMayBe(t *testing.T) {
	t.Parallel()
	client, server := model(t, nil, llmtest.Step{Behaviour: llmtest.ContextTooLong, Times: 3})
	s := policy.DefaultSummary()
	s.PreTrim, s.MaxParts = nil, 2
	w := summary.New(summary.Options{Settings: s, Model: client, Window: 128_000})
	if _, err := w.Write(t.Context(), plan.Task{Messages: conversation(40)}); err != nil {
		t.Fatal(err)
	}
	r := w.Provenance()
	if r.Halved != 3 || r.Parts > 2 || server.Calls() > 5 {
		t.Errorf("%d requests, %+v", server.Calls(), r)
	}
	left := 0
	for _, cut := range r.Trimmed {
		left += cut.Messages
	}
	if left == 0 || left >= 160 {
		t.Errorf("%d of 160 messages were left out: %+v", left, r.Trimmed)
	}

	// One message alone is cut anew each time, which is told once.
	client, _ = model(t, nil, llmtest.Step{Behaviour: llmtest.ContextTooLong, Times: 2})
	w = summary.New(summary.Options{Settings: s, Model: client, Window: 128_000})
	if _, err := w.Write(t.Context(), plan.Task{Messages: []*chat.Message{{Role: chat.RoleUser, Content: chat.TextContent(strings.Repeat("one two three ", 20_000))}}}); err != nil {
		t.Fatal(err)
	}
	if r := w.Provenance(); r.Halved != 2 || len(r.Trimmed) != 1 || r.Trimmed[0].Outputs != 1 {
		t.Errorf("%+v", r)
	}
}

// Without settings, those of a fresh installation apply.
func TestWithoutSettings(t *testing.T) {
	t.Parallel()
	client, server := model(t, nil)
	w := summary.New(summary.Options{Model: client, Window: 128_000})
	text, err := w.Write(t.Context(), plan.Task{Messages: conversation(20)})
	if err != nil || server.Calls() != 1 {
		t.Fatalf("%v after %d requests", err, server.Calls())
	}
	sound(t, text, conversation(20), w.Provenance())
}

// An extract that is too large does not replace the failure of the model.
func TestAnExtractThatIsTooLargeIsNotWhyThereIsNoSummary(t *testing.T) {
	t.Parallel()
	client, _ := model(t, nil, llmtest.Step{Behaviour: llmtest.AuthError, Times: 9})
	s := policy.DefaultSummary()
	s.OnFailure = policy.OnFailureExtractive
	w := summary.New(summary.Options{Settings: s, Model: client, Last: true})
	_, err := w.Write(t.Context(), plan.Task{Messages: []*chat.Message{{Role: chat.RoleUser, Content: chat.TextContent("hi")}}})
	var failure *plan.Failure
	if !errors.As(err, &failure) || failure.Code != "auth" {
		t.Errorf("%v", err)
	}
}

// Prompts keep to the limits of the summarizer's own model and to an explicit limit: they
// never request more than the output limit of the call.
func TestAnswersHaveRoom(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		profile llm.Profile
		task    plan.Task
		most    int
	}{
		"a small window":           {llm.Profile{Window: 12_000}, plan.Task{}, 3000},
		"a small window, budgeted": {llm.Profile{Window: 8000}, plan.Task{Budget: 12_000}, 2000},
		"short answers":            {llm.Profile{Window: 32_000, MaxOutput: 4096, ReasoningTokens: 1000}, plan.Task{}, 4096},
		"a named limit":            {llm.Profile{Window: 32_000}, plan.Task{MaxTokens: 500}, 500},
		"a limit that is too low":  {llm.Profile{Window: 32_000}, plan.Task{MaxTokens: 1}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server := model(t, func(c *llm.Config) {
				tt.profile.Name, tt.profile.BaseURL = "m", c.Models[0].BaseURL
				c.Models[0] = tt.profile
			})
			s := policy.DefaultSummary()
			if tt.task.MaxTokens > 0 {
				s.References = 0.5
			}
			w := summary.New(summary.Options{Settings: s, Model: client, Window: 128_000})
			tt.task.Messages, tt.task.Followed = conversation(120), true
			_, err := w.Write(t.Context(), tt.task)
			if tt.most > 1000 && err != nil {
				t.Error(err)
			}
			requests := server.Requests()
			if len(requests) == 0 {
				t.Fatalf("nothing was asked: %v", err)
			}
			for _, q := range requests {
				var aim, below int
				_, sizes, _ := strings.Cut(q.System, "Aim for about ")
				if _, err := fmt.Sscanf(sizes, "%d tokens and stay below %d.", &aim, &below); err != nil {
					t.Fatal(err)
				}
				if q.MaxTokens < 1 || q.MaxTokens > tt.most || below > q.MaxTokens-tt.profile.ReasoningTokens {
					t.Errorf("asked for about %d, below %d, with room for %d (%d for thoughts), want %d at most",
						aim, below, q.MaxTokens, tt.profile.ReasoningTokens, tt.most)
				}
			}
		})
	}
}

// If the pre-trim steps leave no messages, all of them are shortened to fit.
func TestNothingIsMadeOfNothing(t *testing.T) {
	t.Parallel()
	client, server := model(t, func(c *llm.Config) { c.Models[0].Window = 8000 })
	s := policy.DefaultSummary()
	s.PreTrim = []policy.PreTrim{{Step: policy.DropAgentItems}, {Step: policy.DropOldest}}
	s.MaxParts = 1
	w := summary.New(summary.Options{Settings: s, Model: client, Window: 128_000})
	text, err := w.Write(t.Context(), plan.Task{Messages: []*chat.Message{
		{Role: chat.RoleAssistant, Content: chat.TextContent(strings.Repeat("one two three ", 20_000))},
	}})
	if r := w.Provenance(); err != nil || text == "" || server.Calls() != 1 || len(r.Trimmed) != 1 || r.Trimmed[0].Step != "shorten" {
		t.Errorf("%q, %v after %d requests, %+v", text, err, server.Calls(), r)
	}
}

// A server may accept less than its profile says: the rejected prompt is halved,
// not the window.
func TestAPromptFarBelowTheWindowIsHalved(t *testing.T) {
	t.Parallel()
	client, server := model(t, func(c *llm.Config) { c.Models[0].Window = 1_000_000 }, llmtest.Step{Behaviour: llmtest.ContextTooLong, Times: 1})
	s := policy.DefaultSummary()
	s.PreTrim = nil
	w := summary.New(summary.Options{Settings: s, Model: client, Window: 128_000})
	if _, err := w.Write(t.Context(), plan.Task{Messages: conversation(40)}); err != nil {
		t.Fatal(err)
	}
	asked := server.Requests()
	if r := w.Provenance(); r.Halved != 1 || len(asked) < 2 || len(asked[1].User) > len(asked[0].User)*2/3 {
		t.Errorf("%d requests, %+v", len(asked), r)
	}
}

// The report of a summary that the strategy rejected has no author. If the summary replaced
// that of a model, the failure is the model's.
func TestTheReportOfASummaryThatWasNotTaken(t *testing.T) {
	t.Parallel()
	client, _ := model(t, nil, llmtest.Step{Behaviour: llmtest.AuthError, Times: 9})
	s := policy.DefaultSummary()
	s.OnFailure = policy.OnFailureMarker
	w := summary.New(summary.Options{Settings: s, Model: client, Last: true})
	if _, err := w.Write(t.Context(), plan.Task{Messages: conversation(20)}); err != nil {
		t.Fatal(err)
	}
	steps := []pipeline.StepResult{{Strategy: "summarize", NoSummary: string(summary.CodeTooLarge)}}
	strategies.Writers{w}.Report(steps)
	if r := w.Provenance(); steps[0].Summary == nil || r.WrittenBy != "" || r.Failure != "auth" || steps[0].NoSummary != "auth" {
		t.Errorf("%+v, %+v", steps[0], r)
	}

	// Of several summaries within a step, another may have been taken.
	w = summary.New(summary.Options{Settings: s})
	if _, err := w.Write(t.Context(), plan.Task{Messages: conversation(20)}); err != nil {
		t.Fatal(err)
	}
	steps = []pipeline.StepResult{{Strategy: "token_budget", NoSummary: "timeout", Changed: true}}
	strategies.Writers{w}.Report(steps)
	if r := w.Provenance(); r.WrittenBy != summary.ByExtract || r.Failure != "" || steps[0].NoSummary != "timeout" {
		t.Errorf("%+v, %+v", steps[0], r)
	}

	w = summary.New(summary.Options{Settings: s})
	if _, err := w.Write(t.Context(), plan.Task{Messages: conversation(20)}); err != nil {
		t.Fatal(err)
	}
	steps = []pipeline.StepResult{{Strategy: "summarize", NoSummary: string(summary.CodeTooLarge)}}
	strategies.Writers{w}.Report(steps)
	if r := w.Provenance(); r.WrittenBy != "" || r.Failure != "too_large" || steps[0].NoSummary != "too_large" {
		t.Errorf("%+v, %+v", steps[0], r)
	}
}

package summary_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sessionstore/compactor/strategies/llm"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// kept are answers in memory, whose methods may fail.
type kept struct {
	answers           map[string]summary.StoredAnswer
	keys              []string
	asking, answering error
	failing           error
}

func (k *kept) Ask(_ context.Context, key, _ string) (int64, *summary.StoredAnswer, string, error) {
	if a, ok := k.answers[key]; ok {
		return 0, &a, "", k.asking
	}
	k.keys = append(k.keys, key)
	return int64(len(k.keys)), nil, "", k.asking
}

func (k *kept) Answer(_ context.Context, id int64, a summary.StoredAnswer) error {
	if k.answers == nil {
		k.answers = map[string]summary.StoredAnswer{}
	}
	k.answers[k.keys[id-1]] = a
	return k.answering
}

func (k *kept) Fail(context.Context, int64, string, summary.StoredAnswer) error { return k.failing }
func (k *kept) Reject(context.Context, string, string) error                    { return nil }

var errAway = errors.New("the place where answers are kept is away")

// Where answers cannot be kept, nothing may take the summary's place, whatever the model
// did: the run is to be delivered again.
func TestAnswersThatCannotBeKeptEndTheRun(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answers *kept
		step    llmtest.Step
	}{
		"asking":                           {&kept{asking: errAway}, llmtest.Step{}},
		"an answer":                        {&kept{answering: errAway}, llmtest.Step{}},
		"a failure":                        {&kept{failing: errAway}, llmtest.Step{Behaviour: llmtest.AuthError}},
		"a failure that is worth a second": {&kept{failing: errAway}, llmtest.Step{Behaviour: llmtest.ContextTooLong}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server := model(t, nil, tt.step)
			s := policy.DefaultSummary()
			s.OnFailure = policy.OnFailureExtractive
			w := summary.New(summary.Options{Settings: s, Model: client, Last: true, Answers: tt.answers})
			text, err := w.Write(t.Context(), plan.Task{Messages: conversation(20)})
			if text != "" || !errors.Is(err, plan.ErrInterrupted) || !errors.Is(err, errAway) {
				t.Errorf("%q, %v", text, err)
			}
			if server.Calls() > 1 {
				t.Errorf("%d requests", server.Calls())
			}
		})
	}
}

// A database holds no NUL and nothing but UTF-8: an answer that cannot be stored would be
// bought again at every delivery.
func TestAnswersCanBeStored(t *testing.T) {
	t.Parallel()
	answers := &kept{}
	w := summary.New(summary.Options{Settings: policy.DefaultSummary(), Model: saying("so\x00 far \xff"), Answers: answers, Window: 128_000})
	_, _ = w.Write(t.Context(), plan.Task{Messages: conversation(20)}) // it is no summary
	for _, a := range answers.answers {
		if strings.ContainsRune(a.Text, 0) || !utf8.ValidString(a.Text) || !strings.HasPrefix(a.Text, "so") {
			t.Errorf("%q", a.Text)
		}
	}
	if len(answers.answers) == 0 {
		t.Error("no answer was stored")
	}
}

// saying is a model that always says the same.
type saying string

func (s saying) Complete(context.Context, llm.Call) (llm.Answer, error) {
	return llm.Answer{Text: string(s), Model: "m", FinishReason: llm.FinishStop}, nil
}
func (saying) Usable(context.Context) llm.Profile { return llm.Profile{Name: "m", Window: 32_000} }
func (saying) Identity() string                   { return "m" }

// What was paid in an earlier delivery counts: else each delivery buys another part.
func TestWhatWasPaidBeforeCounts(t *testing.T) {
	t.Parallel()
	client, server := model(t, func(c *llm.Config) { c.Models[0].Window = 12_000 })
	s := policy.DefaultSummary()
	s.PreTrim, s.MaxParts, s.MaxCost = nil, 50, 0.000001
	answers := &kept{}
	for delivery := range 3 {
		w := summary.New(summary.Options{Settings: s, Model: client, Answers: answers})
		_, err := w.Write(t.Context(), plan.Task{Messages: conversation(60), Budget: 1000})
		var failure *plan.Failure
		if !errors.As(err, &failure) || failure.Code != "over_budget" || server.Calls() != 1 {
			t.Errorf("delivery %d: %v after %d requests", delivery, err, server.Calls())
		}
	}
}

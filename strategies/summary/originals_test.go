package summary_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/frame"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/policy"
	"github.com/sessionstore/compactor/strategies/summary"
)

// logOf returns the Originals of a task: messages after summaries of older ones, and an error
// after them unless it is nil.
func logOf(older []*chat.Message, failure error, ms ...*chat.Message) func(context.Context, int64) (iter.Seq2[chat.Original, error], []*chat.Message, error) {
	return func(context.Context, int64) (iter.Seq2[chat.Original, error], []*chat.Message, error) {
		return func(yield func(chat.Original, error) bool) {
			for i, m := range ms {
				if !yield(chat.Original{Message: m, Seq: chat.Seq(i + 1)}, nil) {
					return
				}
			}
			if failure != nil {
				yield(chat.Original{}, failure)
			}
		}, older, nil
	}
}

// plainSecret is a password that nothing but its place tells to be one.
const plainSecret = "hunter2Zebra99Quartz"

// update returns a task that updates a summary of ms, all but the last four of which the summary
// covers.
func update(ms, older []*chat.Message, failure error) plan.Task {
	return plan.Task{
		Messages: ms[len(ms)-4:], Previous: "## Key Decisions\n\n- The ticket PREVIOUS44Z was closed.", Budget: 800,
		Originals: logOf(older, failure, ms...),
	}
}

func TestAnExtractIsMadeFromTheOriginals(t *testing.T) {
	t.Parallel()
	first := &chat.Message{Role: chat.RoleUser, Content: chat.TextContent(frame.Wrap("## Key Decisions\n\n- The ticket OLDER55Z was closed.", frame.Options{}))}
	for name, older := range map[string][]*chat.Message{"all originals": nil, "a summary of older ones": {first}} {
		ms := conversation(10)
		w := summary.New(summary.Options{Settings: policy.DefaultSummary(), Window: 128_000})
		text, err := w.Write(t.Context(), update(ms, older, nil))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text, "TK1000X4 fails"); n == 0 || n > 2 { // the goal, and a request
			t.Errorf("%s: the first request is there %d times:\n%s", name, n, text)
		}
		if strings.Contains(text, "PREVIOUS44Z") || strings.Contains(text, "OLDER55Z") != (older != nil) {
			t.Errorf("%s: an earlier summary was read, or not:\n%s", name, text)
		}
		if r := w.Provenance(); r.Messages != len(ms) || !r.Updates {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A secret that one original shows is masked in all, in what the model is asked, and in what it
// answers.
func TestASecretOfAnOriginalIsMaskedEverywhere(t *testing.T) {
	t.Parallel()
	ms := conversation(10)
	for _, i := range []int{0, len(ms) - 3} {
		ms[i].Content = chat.TextContent("See " + plainSecret + " about it. " + ms[i].Content.Text)
	}
	ms[6].Content = chat.TextContent("password: " + plainSecret)
	var answer strings.Builder
	for _, s := range summary.DefaultSections() {
		answer.WriteString("## " + s.Title + "\n\nThe handler works with " + plainSecret + " again, see " + s.Title + ".\n\n")
	}
	client, server := model(t, nil, llmtest.Step{Behaviour: llmtest.Normal, Text: answer.String()})
	byModel, err := summary.New(summary.Options{Settings: policy.DefaultSummary(), Model: client, Window: 128_000}).Write(t.Context(), update(ms, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	extract, err := summary.New(summary.Options{Settings: policy.DefaultSummary(), Window: 128_000}).Write(t.Context(), update(ms, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{byModel, extract, server.Requests()[0].User} {
		if strings.Contains(text, plainSecret) {
			t.Errorf("the secret is in\n%s", text)
		}
	}
	if !strings.Contains(byModel, "The handler works with *** again, ") || !strings.Contains(byModel, "src/module_0/handler.go") {
		t.Errorf("by the model:\n%s", byModel)
	}
}

// In a long loop the request that is being worked on is older than the last summary.
func TestTheRequestIsThatOfTheOriginals(t *testing.T) {
	t.Parallel()
	ms := conversation(10)
	for i := 4; i < len(ms); i++ {
		if ms[i].Role == chat.RoleUser {
			ms[i] = &chat.Message{Role: chat.RoleAssistant, Content: chat.TextContent("Next comes the handler after it.")}
		}
	}
	client, _ := model(t, nil)
	text, err := summary.New(summary.Options{Settings: policy.DefaultSummary(), Model: client, Window: 128_000}).Write(t.Context(), update(ms, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "> "+ms[0].Content.Text) {
		t.Errorf("no request in\n%s", text)
	}
}

// A log that cannot be read is no failure of the summary, which a fallback would replace.
func TestOriginalsThatCannotBeReadInterrupt(t *testing.T) {
	t.Parallel()
	away := errors.New("the database is away")
	s := policy.DefaultSummary()
	s.OnFailure = policy.OnFailureMarker
	text, err := summary.New(summary.Options{Settings: s, Last: true}).Write(t.Context(), update(conversation(10), nil, away))
	if !errors.Is(err, plan.ErrInterrupted) || !errors.Is(err, away) || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}

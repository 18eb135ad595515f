package builtin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// askedTasks is a strict summarizer that keeps its tasks.
type askedTasks struct{ tasks []plan.Task }

func (*askedTasks) Strict() {}

func (*askedTasks) Summarize(context.Context, plan.Request) (string, error) {
	return "", plan.ErrEmptySummary
}

func (a *askedTasks) Write(_ context.Context, t plan.Task) (string, error) {
	a.tasks = append(a.tasks, t)
	return "", plan.ErrEmptySummary
}

// boundedTasks knows a view's target, as a writer with a policy does.
type boundedTasks struct{ askedTasks }

func (*boundedTasks) Bounds(chat.Tokens) (view, summary chat.Tokens) { return 1000, 300 }

// A task has the pinned messages that stay beside the summary, and no instructions, whichever
// strategy asks.
func TestTasksHaveThePinnedMessages(t *testing.T) {
	t.Parallel()
	messages := []chat.Message{sessiontest.Text(chat.RoleSystem, "be good")}
	for i := range 40 {
		messages = append(messages, sessiontest.User(fmt.Sprintf("ask %d", i)), sessiontest.Says(strings.Repeat("it is done ", 20)))
	}
	for name, params := range map[string]plan.Params{
		"handoff": {"tail_token_budget": 50, "protect_last_n": 3}, "summarization": {"target_count": 4, "threshold": 0}, "summarize": {"threshold": 4},
		"preserve_recent_turns": nil, "preserve_recent_fraction": nil, "preserve_user_messages": {"max_tokens": 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessiontest.Of(messages...)
			s.Pinned[1], s.Pinned[12] = true, true
			a := &askedTasks{}
			st := sessiontest.Strategy(t, Registry().With(a), name, params)
			s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false)
			if len(a.tasks) == 0 {
				t.Fatal("no summary was asked for")
			}
			for _, task := range a.tasks {
				if len(task.Pinned) != 1 || task.Pinned[0].Content.Text != "ask 5" {
					t.Errorf("pinned %v", task.Pinned)
				}
				for _, m := range task.Messages {
					if m.Content.Text == "ask 5" {
						t.Error("a pinned message is summarized")
					}
				}
			}
		})
	}
}

// TestTasksHaveTheMessageThatTheWorkIsFor: the last message of the user stays in the view, and what was
// done about it is summarized. One that follows the summarized messages is none of theirs.
func TestTasksHaveTheMessageThatTheWorkIsFor(t *testing.T) {
	t.Parallel()
	ask := func(n int) chat.Message { return sessiontest.User(fmt.Sprintf("ask %d", n)) }
	work := func(n int) (out []chat.Message) {
		for i := range n {
			id := fmt.Sprint("c", i)
			out = append(out, sessiontest.Calls(id), sessiontest.Result(id, strings.Repeat("it is done ", 20)))
		}
		return out
	}
	begin := append([]chat.Message{ask(0)}, work(20)...)
	for name, tt := range map[string]struct {
		messages []chat.Message
		want     string
	}{
		"work goes on":   {append(append(slices.Clone(begin), ask(1)), work(40)...), "ask 1"},
		"just asked for": {append(slices.Clone(begin), ask(1)), ""},
	} {
		for strategy, params := range map[string]plan.Params{
			"handoff": {"tail_token_budget": 300, "protect_first_n": 0, "protect_last_n": -1}, "preserve_recent_turns": {"turns": 1, "max_turn_tokens": 200, "min_turn_tokens": 100},
		} {
			t.Run(name+"/"+strategy, func(t *testing.T) {
				t.Parallel()
				a := &boundedTasks{}
				st := sessiontest.Strategy(t, Registry().With(a), strategy, params)
				sessiontest.Of(tt.messages...).Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false)
				if len(a.tasks) == 0 {
					t.Fatal("no summary was asked for")
				}
				got := ""
				if m := a.tasks[0].Current; m != nil {
					got = m.Content.String()
				}
				if got != tt.want {
					t.Errorf("the work is for %q, want %q", got, tt.want)
				}
			})
		}
	}
}

// TestTheSummaryHasItsShareBesideALargeMessage that exceeds the target by itself.
func TestTheSummaryHasItsShareBesideALargeMessage(t *testing.T) {
	t.Parallel()
	messages := []chat.Message{sessiontest.User("ask 0")}
	for range 40 {
		messages = append(messages, sessiontest.Says(strings.Repeat("it is done ", 40)))
	}
	messages = append(messages, sessiontest.User(strings.Repeat("a line of the log\n", 1000)))
	a := &boundedTasks{}
	st := sessiontest.Strategy(t, Registry().With(a), "handoff", plan.Params{"tail_token_budget": 300})
	sessiontest.Of(messages...).Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false)
	if len(a.tasks) != 1 || a.tasks[0].Limit != 300 {
		t.Errorf("%d tasks, limit %d", len(a.tasks), a.tasks[0].Limit)
	}
}

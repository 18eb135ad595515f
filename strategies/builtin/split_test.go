package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// turns are three turns of a user, a tool and an answer.
func turns() []chat.Message {
	return []chat.Message{
		sessiontest.Sys("be good"),                                                                                        // 1
		sessiontest.User("one"), toolCalls("a", "read", "{}"), sessiontest.Result("a", "ra"), sessiontest.Says("did one"), // 2 to 5
		sessiontest.User("two"), toolCalls("b", "read", "{}"), sessiontest.Result("b", "rb"), sessiontest.Says("did two"), // 6 to 9
		sessiontest.User("three"), toolCalls("c", "read", "{}"), sessiontest.Result("c", "rc"), sessiontest.Says("did three"), // 10 to 13
	}
}

func TestSplitPoints(t *testing.T) {
	t.Parallel()
	const head = "[Summary of the conversation so far]\n\n"
	long := strings.Repeat("word ", 400) // 504 tokens
	steps(t, map[string]step{
		"preserve_user_messages keeps what the user said, the summary behind it": {
			messages: turns(), strategy: "preserve_user_messages",
			want: []string{"1 system: be good", "2 user: one", "6 user: two", "10 user: three", "+11 user: " + head + "read({}) ra did read({}) rb did read({}) rc did"},
		},
		"preserve_user_messages can put the summary first": {
			messages: turns(), strategy: "preserve_user_messages", params: plan.Params{"summary": "first"},
			want: []string{"1 system: be good", "+2 user: " + head + "read({}) ra did read({}) rb did read({}) rc did", "2 user: one", "6 user: two", "10 user: three"},
		},
		"preserve_user_messages keeps the newest within its tokens": {
			messages: turns(), strategy: "preserve_user_messages", params: plan.Params{"max_tokens": 7},
			want: []string{"1 system: be good", "10 user: three", "+11 user: " + head + "one read({}) ra did two read({}) rb did read({}) rc did"},
		},
		"preserve_user_messages cuts the one that no longer fits": {
			messages: []chat.Message{sessiontest.User("zero"), sessiontest.Says("a"), sessiontest.User(long), sessiontest.Says("b"), sessiontest.User("now")},
			strategy: "preserve_user_messages", params: plan.Params{"max_tokens": 130},
			want: []string{
				"+3 user: " + strings.Repeat("word ", 40) + "word\n[… 1592 characters cut …]\nord " + strings.TrimSpace(strings.Repeat("word ", 40)),
				"5 user: now", "+6 user: " + head + "zero a b",
			},
		},
		"preserve_user_messages keeps the last user message whole, however large": {
			messages: []chat.Message{sessiontest.User("zero"), sessiontest.Says("a"), sessiontest.User(long)},
			strategy: "preserve_user_messages", params: plan.Params{"max_tokens": 5},
			want: []string{"3 user: " + strings.TrimSpace(long), "+4 user: " + head + "zero a"},
		},
		"a pinned group stays and is not summarized": {
			messages: turns(), pinned: []chat.Seq{4}, strategy: "preserve_user_messages",
			want: []string{
				"1 system: be good", "2 user: one", "3 assistant: a=read{}", "4 tool: ra", "6 user: two", "10 user: three",
				"+11 user: " + head + "did read({}) rb did read({}) rc did",
			},
		},
		"what waits for a result stays and is not summarized": {
			messages: []chat.Message{sessiontest.User("one"), sessiontest.Says("did one"), sessiontest.User("two"), sessiontest.Calls("a", "b"), sessiontest.Result("a", "ra")},
			strategy: "preserve_user_messages",
			want:     []string{"1 user: one", "3 user: two", "+4 user: " + head + "did", "4 assistant: a=do_a{} b=do_b{}", "5 tool: ra"},
		},
		"developer messages are instructions and stay": {
			messages: []chat.Message{sessiontest.Text(chat.RoleDeveloper, "rules"), sessiontest.User("one"), sessiontest.Says("did"), sessiontest.User("two")},
			strategy: "preserve_user_messages", params: plan.Params{"summary": "first"},
			want: []string{"1 developer: rules", "+2 user: " + head + "did", "2 user: one", "4 user: two"},
		},
		"preserve_recent_fraction snaps to the next user message": {
			messages: turns(), strategy: "preserve_recent_fraction", params: plan.Params{"fraction": 0.5},
			want: []string{
				"1 system: be good", "+2 user: " + head + "one read({}) ra did two read({}) rb did",
				"10 user: three", "11 assistant: c=read{}", "12 tool: rc", "13 assistant: did three",
			},
		},
		"preserve_recent_fraction snaps backward where there is no later user message": {
			messages: turns(), strategy: "preserve_recent_fraction", params: plan.Params{"fraction": 0.1}, again: true,
			want: []string{
				"1 system: be good", "+2 user: " + head + "one read({}) ra did two read({}) rb did",
				"10 user: three", "11 assistant: c=read{}", "12 tool: rc", "13 assistant: did three",
			},
		},
		"preserve_recent_fraction splits a single turn between groups": {
			messages: turns()[:9], strategy: "preserve_recent_fraction", params: plan.Params{"fraction": 0.01}, again: true,
			want: []string{"1 system: be good", "+2 user: " + head + "one read({}) ra did", "6 user: two", "7 assistant: b=read{}", "8 tool: rb", "9 assistant: did two"},
		},
		"preserve_recent_fraction counts characters": {
			messages: []chat.Message{sessiontest.User("aaaa"), sessiontest.Says("bbbb"), sessiontest.User("cccc"), sessiontest.Says("dddd"), sessiontest.User("ee"), sessiontest.Says("ff")},
			strategy: "preserve_recent_fraction", params: plan.Params{"fraction": 0.6, "metric": "characters"},
			want: []string{"+1 user: " + head + "aaaa bbbb", "3 user: cccc", "4 assistant: dddd", "5 user: ee", "6 assistant: ff"},
		},
		"preserve_recent_turns keeps whole turns": {
			messages: turns(), strategy: "preserve_recent_turns", params: plan.Params{"turns": 1},
			want: []string{
				"1 system: be good", "+2 user: " + head + "one read({}) ra did two read({}) rb did",
				"10 user: three", "11 assistant: c=read{}", "12 tool: rc", "13 assistant: did three",
			},
		},
		"preserve_recent_turns does nothing if there are not more": {
			messages: turns(), strategy: "preserve_recent_turns", params: plan.Params{"turns": 3},
		},
		"a turn over its cap keeps its user message and its newest whole groups": {
			messages: []chat.Message{
				sessiontest.User("one"), sessiontest.Says("did one"),
				sessiontest.User("two"), toolCalls("a", "read", "{}"), sessiontest.Result("a", long), sessiontest.Says("small"), toolCalls("b", "read", "{}"), sessiontest.Result("b", "rb"), sessiontest.Says("did two"),
				sessiontest.User("three"), sessiontest.Says("did three"),
			},
			strategy: "preserve_recent_turns", params: plan.Params{"min_turn_tokens": 60, "context_tokens": 40},
			want: []string{
				"+1 user: " + head + "one did read({}) word",
				"3 user: two", "6 assistant: small", "7 assistant: b=read{}", "8 tool: rb", "9 assistant: did two", "10 user: three", "11 assistant: did three",
			},
		},
		"the cap is a share of the context": {
			messages: []chat.Message{sessiontest.User("one"), sessiontest.Says("did one"), sessiontest.User("two"), sessiontest.Says(long), sessiontest.Says("did two")},
			strategy: "preserve_recent_turns", params: plan.Params{"turns": 1, "context_tokens": 400, "min_turn_tokens": 0},
			want: []string{"+1 user: " + head + "one did word", "3 user: two", "5 assistant: did two"},
		},
	})
}

func TestSplitPointsTakeInTheLastSummary(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"first", "after_preserved"} {
		for name, params := range map[string]plan.Params{
			"preserve_user_messages": {"max_tokens": 7}, "preserve_recent_turns": {"turns": 1}, "preserve_recent_fraction": {},
		} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				params["summary"] = where
				model := &sessiontest.Notes{Answer: func(n int) (string, error) { return fmt.Sprintf(" sum %d\n", n), nil }}
				st := sessiontest.Strategy(t, Registry().With(model), name, params)
				s := sessiontest.Of(turns()...)
				p := pipeline.Pipeline{Steps: []plan.Strategy{st}}
				s.Run(t, p, false)
				s.Add(sessiontest.User("four"), sessiontest.Says("did four"), sessiontest.User("five"), sessiontest.Says("did five"))
				s.Run(t, p, false)
				asked := model.Asked
				if len(asked) != 2 || strings.Contains(asked[0].User, "notes written so far") || asked[0].System == "" {
					t.Fatalf("asked %+v", asked)
				}
				if !strings.Contains(asked[1].User, " 0 notes written so far\nsum 1\n") ||
					strings.Count(asked[1].User, "sum 1") != 1 || strings.Contains(asked[1].User, "did one") {
					t.Errorf("asked again:\n%s", asked[1].User)
				}
				summaries := 0
				for _, line := range viewLines(s) {
					if strings.HasPrefix(line, "+") {
						summaries++
					}
				}
				if summaries != 1 || !strings.Contains(strings.Join(viewLines(s), "\n"), "\n\nsum 2") {
					t.Errorf("view %q", viewLines(s))
				}
			})
		}
	}
}

func TestWithoutASummaryNothingChanges(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(int) (string, error){
		"empty_answer": func(int) (string, error) { return " \n\t\u00a0", nil },
		"failed":       func(int) (string, error) { return "half a", errors.New("no luck") },
		"timeout":      func(int) (string, error) { return "", fmt.Errorf("no luck: %w", context.DeadlineExceeded) },
		"no_model":     func(int) (string, error) { return "", plan.ErrNoModel },
	} {
		for strategy, params := range map[string]plan.Params{
			"preserve_user_messages": nil, "preserve_recent_fraction": nil, "preserve_recent_turns": nil, "summarization": nil,
			"summarize": {"threshold": 2}, "handoff": short(nil),
		} {
			t.Run(strategy+": "+name, func(t *testing.T) {
				t.Parallel()
				st := sessiontest.Strategy(t, Registry().With(&sessiontest.Notes{Answer: answer}), strategy, params)
				s := sessiontest.Of(append(turns(), sessiontest.User("more"), sessiontest.User("and more"))...)
				r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false)
				if !r.Plan.Empty() || r.Steps[0].NoSummary != name || !errors.Is(r.Steps[0].Err, plan.ErrNoSummary) {
					t.Errorf("plan %+v, step %+v", r.Plan, r.Steps[0])
				}
				if body, err := json.Marshal(r.Steps); err != nil || strings.Contains(string(body), "luck") {
					t.Errorf("%s, %v: the summarizer's words are not for the ledger", body, err)
				}
			})
		}
	}
}

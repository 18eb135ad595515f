package builtin

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// sources returns a conversation whose messages come from several parts of an application.
func sources() []chat.Message {
	return []chat.Message{
		fromSource("memory", sessiontest.User("you like tea")), sessiontest.User("go"), // 1, 2
		toolCalls("a", "search", "{}"), sessiontest.Result("a", "found"), // 3, 4
		toolCalls("b", "load_policy", "{}"), fromSource("policy", sessiontest.Result("b", "rules")), // 5, 6
		fromSource("rag:docs", sessiontest.Says("a passage")), sessiontest.Says("done"), // 7, 8
		sessiontest.User("more"), toolCalls("c", "search", "{}"), sessiontest.Result("c", "found more"), // 9 to 11
	}
}

func TestAttribution(t *testing.T) {
	t.Parallel()
	rules := func(rs ...plan.Params) plan.Params {
		list := []any{}
		for _, r := range rs {
			list = append(list, r)
		}
		return plan.Params{"rules": list}
	}
	tail := []string{"8 assistant: done", "9 user: more", "10 assistant: c=search{}", "11 tool: found more"}
	start := []string{"1 user: you like tea", "2 user: go"}
	search, load := []string{"3 assistant: a=search{}", "4 tool: found"}, []string{"5 assistant: b=load_policy{}", "6 tool: rules"}
	join := func(parts ...[]string) (out []string) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	steps(t, map[string]step{
		"ephemeral sources go": {
			messages: sources(), strategy: "attribution",
			params: rules(plan.Params{"source_id": []any{"memory", "rag:*"}, "action": "drop"}),
			want:   join(start[1:], search, load, tail),
		},
		"some tools are collapsed, others kept verbatim": {
			messages: sources(), strategy: "attribution",
			params: rules(plan.Params{"tool": "load_*", "action": "keep"}, plan.Params{"tool": "*", "action": "collapse"}),
			want:   join(start, []string{"+3 assistant: [Tool results: search: found]"}, load, []string{"7 assistant: a passage"}, tail),
		},
		"the first rule that matches decides": {
			messages: sources(), strategy: "attribution",
			params: rules(plan.Params{"role": "assistant", "source_id": "rag:docs", "action": "protect"}, plan.Params{"role": "assistant", "action": "drop"}),
			want:   join(start, []string{"7 assistant: a passage"}, tail[1:]),
		},
		"a result brings its source to its group": {
			messages: sources(), strategy: "attribution",
			params: rules(plan.Params{"source_id": "policy", "role": "tool", "action": "collapse"}),
			want:   join(start, search, []string{"+5 assistant: [Tool results: load_policy: rules]", "7 assistant: a passage"}, tail),
		},
		"source and role are those of one message": {
			messages: sources(), strategy: "attribution",
			params: rules(plan.Params{"source_id": "policy", "role": "assistant", "action": "drop"}),
		},
		"the newest tool call groups stay, unless that is said": {
			messages: append(sources(), sessiontest.User("and")), strategy: "attribution",
			params: plan.Params{"keep_last_tool_call_groups": 0, "rules": []any{plan.Params{"tool": "search", "action": "drop"}}},
			want:   join(start, load, []string{"7 assistant: a passage", "8 assistant: done", "9 user: more", "12 user: and"}),
		},
		"pinned groups stay": {
			messages: sources(), strategy: "attribution", pinned: []chat.Seq{1, 4, 6, 7},
			params: rules(plan.Params{"role": []any{"tool", "assistant", "user"}, "action": "drop"}),
			want:   join(start[:1], search, load, []string{"7 assistant: a passage"}, tail[1:]),
		},
		"what is excluded comes back where a rule says so": {
			messages: sources(), out: []chat.Seq{1, 2, 3, 4, 5, 6, 7}, strategy: "attribution",
			params: rules(plan.Params{"source_id": "memory", "action": "drop"}, plan.Params{"source_id": "*", "action": "include"}),
			want:   join(load, []string{"7 assistant: a passage"}, tail),
		},
		"a result without a call names its tool itself": {
			messages: []chat.Message{sessiontest.User("go"), {Role: chat.RoleTool, Name: "search", ToolCallID: "x", Content: chat.TextContent("lost")}, sessiontest.User("u")},
			strategy: "attribution", params: plan.Params{"keep_last_tool_call_groups": 0, "rules": []any{plan.Params{"tool": "search", "action": "drop"}}},
			want: []string{"1 user: go", "3 user: u"},
		},
	})
}

func TestAttributionProtectsFromLaterSteps(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sources()...)
	attribution := sessiontest.Strategy(t, Registry(), "attribution", plan.Params{"rules": []any{plan.Params{"source_id": "policy", "action": "protect"}}})
	s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{attribution, sessiontest.Strategy(t, Registry(), "truncation", plan.Params{"max_n": 1, "compact_to": 1})}, Target: 1, Fallback: true}, false)
	want := []string{"5 assistant: b=load_policy{}", "6 tool: rules", "9 user: more", "10 assistant: c=search{}", "11 tool: found more"}
	if diff := cmp.Diff(want, viewLines(s)); diff != "" {
		t.Error(diff)
	}
}

func TestToolStrategiesMindToolsAndSources(t *testing.T) {
	t.Parallel()
	messages := func() []chat.Message {
		return append(sources(), sessiontest.User("and"), toolCalls("d", "noise", "{}"), fromSource("feed", sessiontest.Result("d", "beep")))
	}
	tests := map[string]struct {
		params  plan.Params
		dropped string // by selective_tool_call
		shown   string // by tool_result
		read    []chat.Seq
	}{
		"nothing said": {nil, "{[3,7),[10,12)}", "3 5 10", nil},
		"exclude_tools": {
			plan.Params{"exclude_tools": []any{"load_policy"}}, "{[3,5),[10,12)}", "3 10", []chat.Seq{3, 5, 10},
		},
		"protect_sources": {
			plan.Params{"protect_sources": []any{"pol*"}}, "{[3,5),[10,12)}", "3 10", []chat.Seq{3, 4, 5, 6, 10, 11},
		},
		"drop_sources": {
			plan.Params{"drop_sources": []any{"feed", "policy"}}, "{[3,7),[10,12),[13,15)}", "3 10", []chat.Seq{3, 4, 5, 6, 10, 11, 13, 14},
		},
		"what is protected is not dropped": {
			plan.Params{"drop_sources": []any{"feed"}, "exclude_tools": "noise"}, "{[3,7),[10,12)}", "3 5 10", []chat.Seq{3, 4, 5, 6, 10, 11, 13, 14},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessiontest.Of(messages()...)
			var read []chat.Seq
			load := func(ctx context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
				read = append(read, seqs...)
				return s.Load(ctx, seqs)
			}
			plan := func(name string) chat.Plan {
				r, err := pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Strategy(t, Registry(), name, tt.params)}}.Run(t.Context(), s.Transcript(false), load)
				if err != nil {
					t.Fatal(err)
				}
				return r.Plan
			}
			p := plan("selective_tool_call")
			if got := p.Exclude[0].Seqs.String(); got != tt.dropped {
				t.Errorf("selective_tool_call drops %s, want %s", got, tt.dropped)
			}
			if diff := cmp.Diff(tt.read, read); diff != "" {
				t.Errorf("selective_tool_call reads (-want +got):\n%s", diff)
			}
			p = plan("tool_result")
			var shown []string
			for _, a := range p.Additions {
				shown = append(shown, strconv.Itoa(int(a.Position)))
			}
			if got := strings.Join(shown, " "); got != tt.shown {
				t.Errorf("tool_result collapses %s, want %s", got, tt.shown)
			}
			if drops := tt.params["drop_sources"] != nil && tt.params["exclude_tools"] == nil; drops != (len(p.Exclude) > 0) {
				t.Errorf("tool_result drops %v", p.Exclude)
			}
		})
	}
}

package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestStrategiesPlanAsSpecified(t *testing.T) {
	t.Parallel()
	out := func(qs ...chat.Seq) []chat.Seq { return qs }
	tests := map[string]struct {
		messages []chat.Message
		excluded []chat.Seq // before
		strategy string
		params   plan.Params
		want     map[string]string
	}{
		"truncation does nothing at its limit": {
			strategy: "truncation", params: plan.Params{"max_n": 11, "compact_to": 1},
		},
		"truncation drops whole groups, oldest first, and may go below its target": {
			strategy: "truncation", params: plan.Params{"max_n": 10, "compact_to": 9},
			want: map[string]string{"truncation": "{[2,6)}"},
		},
		"truncation stops before the group that is not needed": {
			strategy: "truncation", params: plan.Params{"max_n": 10, "compact_to": 10},
			want: map[string]string{"truncation": "{[2,3)}"},
		},
		"truncation ends above its target when only protected groups are left": {
			strategy: "truncation", params: plan.Params{"max_n": 5, "compact_to": 1},
			want: map[string]string{"truncation": "{[2,11)}"},
		},
		"truncation takes system messages if it may, but never the newest group": {
			strategy: "truncation", params: plan.Params{"max_n": 5, "compact_to": 1, "preserve_system": false},
			want: map[string]string{"truncation": "{[1,11)}"},
		},
		"truncation keeps a system message that is all there is": {
			messages: []chat.Message{sessiontest.Sys("a"), sessiontest.Sys("b")},
			strategy: "truncation", params: plan.Params{"max_n": 1, "compact_to": 1, "preserve_system": false},
			want: map[string]string{"truncation": "{[1,2)}"},
		},
		"truncation counts tokens, those of the system message too": {
			strategy: "truncation", params: plan.Params{"max_n": 100, "compact_to": 70, "metric": "tokens"},
			want: map[string]string{"truncation": "{[2,6)}"},
		},
		"truncation visits excluded groups again and gives them its reason": {
			excluded: out(2),
			strategy: "truncation", params: plan.Params{"max_n": 9, "compact_to": 8},
			want: map[string]string{"truncation": "{[2,6)}"},
		},
		"a partly excluded group counts as included and goes whole": {
			excluded: out(4),
			strategy: "sliding_window", params: plan.Params{"keep_last_groups": 4},
			want: map[string]string{"sliding_window": "{[2,6)}"},
		},
		"the sliding window counts groups, not messages, and system messages not at all": {
			strategy: "sliding_window", params: plan.Params{"keep_last_groups": 2},
			want: map[string]string{"sliding_window": "{[2,8)}"},
		},
		"the sliding window does not touch what is excluded already": {
			excluded: out(2),
			strategy: "sliding_window", params: plan.Params{"keep_last_groups": 2},
			want: map[string]string{"sliding_window": "{[3,8)}"},
		},
		"the sliding window drops even the newest system message if it may": {
			messages: []chat.Message{sessiontest.Sys("a"), sessiontest.User("b"), sessiontest.Sys("c")},
			strategy: "sliding_window", params: plan.Params{"keep_last_groups": 5, "preserve_system": false},
			want: map[string]string{"sliding_window": "{[1,2),[3,4)}"},
		},
		"the sliding window empties a conversation of system messages alone": {
			messages: []chat.Message{sessiontest.Sys("a")},
			strategy: "sliding_window", params: plan.Params{"keep_last_groups": 1, "preserve_system": false},
			want: map[string]string{"sliding_window": "{[1,2)}"},
		},
		"selective_tool_call keeps the newest tool call": {
			strategy: "selective_tool_call",
			want:     map[string]string{"tool_call_compaction": "{[3,6)}"},
		},
		"selective_tool_call with 0 drops even a call that waits": {
			messages: []chat.Message{sessiontest.Calls("a")},
			strategy: "selective_tool_call", params: plan.Params{"keep_last_tool_call_groups": 0},
			want: map[string]string{"tool_call_compaction": "{[1,2)}"},
		},
		"selective_tool_call takes an orphaned result for a tool call": {
			messages: []chat.Message{sessiontest.Result("x", "r"), sessiontest.User("u"), sessiontest.Calls("a"), sessiontest.Result("a", "r")},
			strategy: "selective_tool_call",
			want:     map[string]string{"tool_call_compaction": "{[1,2)}"},
		},
		"tool_result does nothing within its limit": {
			strategy: "tool_result", params: plan.Params{"keep_last_tool_call_groups": 2},
		},
		"tool_result writes one message per older tool call": {
			strategy: "tool_result", params: plan.Params{"keep_last_tool_call_groups": 0},
			want: map[string]string{
				"@3 [Tool results: do_a: ra; do_b: rb]": "{[3,6)}",
				"@8 [Tool results: do_c:  \x1crc]":      "{[8,11)}",
			},
		},
		"tool_result says so when there are no results": {
			messages: []chat.Message{sessiontest.Calls("a"), sessiontest.User("u")},
			strategy: "tool_result", params: plan.Params{"keep_last_tool_call_groups": 0},
			want: map[string]string{"@1 [Tool results: no results]": "{[1,2)}"},
		},
		"tool_result gives a result of an unknown call without a name, stripped": {
			messages: []chat.Message{sessiontest.Calls("a"), sessiontest.Result("x", "\x1f what \u00a0"), sessiontest.Result("", ""), sessiontest.Result("a", "")},
			strategy: "tool_result", params: plan.Params{"keep_last_tool_call_groups": 0},
			want: map[string]string{"@1 [Tool results: what; ; do_a:]": "{[1,5)}"},
		},
		"token_budget does nothing within its budget": {
			strategy: "token_budget", params: plan.Params{"token_budget": 110},
		},
		"token_budget without strategies drops the oldest groups and checks after each": {
			strategy: "token_budget", params: plan.Params{"token_budget": 100},
			want: map[string]string{"token_budget_fallback": "{[2,3)}"},
		},
		"token_budget drops system messages before the newest group": {
			strategy: "token_budget", params: plan.Params{"token_budget": 1},
			want: map[string]string{"token_budget_fallback": "{[2,11)}", "token_budget_fallback_strict": "{[1,2)}"},
		},
		"token_budget stops early": {
			strategy: "token_budget", params: plan.Params{"token_budget": 80, "strategies": []any{
				plan.Params{"strategy": "selective_tool_call"},
				plan.Params{"strategy": "sliding_window", "params": plan.Params{"keep_last_groups": 1}},
			}},
			want: map[string]string{"tool_call_compaction": "{[3,6)}"},
		},
		"token_budget runs all its strategies without early stop": {
			strategy: "token_budget", params: plan.Params{"token_budget": 80, "early_stop": false, "strategies": []any{
				plan.Params{"strategy": "selective_tool_call"},
				plan.Params{"strategy": "sliding_window", "params": plan.Params{"keep_last_groups": 4}},
			}},
			want: map[string]string{"tool_call_compaction": "{[3,6)}", "sliding_window": "{[2,3)}"},
		},
		"token_budget overwrites reasons and drops fresh summaries": {
			strategy: "token_budget", params: plan.Params{"token_budget": 50, "strategies": []any{
				plan.Params{"strategy": "tool_result", "params": plan.Params{"keep_last_tool_call_groups": 1}},
			}},
			want: map[string]string{"token_budget_fallback": "{[2,8)}"},
		},
		"a nested token_budget falls back against its own budget": {
			strategy: "token_budget", params: plan.Params{"token_budget": 105, "strategies": []any{
				plan.Params{"strategy": "token_budget", "params": plan.Params{"token_budget": 60}},
			}},
			want: map[string]string{"token_budget_fallback": "{[2,7)}"},
		},
		"from_log brings everything back": {
			excluded: out(2, 3, 4, 5),
			strategy: "from_log",
			want:     map[string]string{"include": "{[2,6)}"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			messages := tt.messages
			if messages == nil {
				messages = sessiontest.Talk()
			}
			s := sessiontest.Of(messages...)
			for _, q := range tt.excluded {
				s.Included[q] = false
			}
			tr := s.Transcript(true)
			tr.Counter = sessiontest.Equal(10)
			for i := range tr.Entries {
				tr.Entries[i].Tokens = 10
				tr.Entries[i].Message = s.Messages[tr.Entries[i].Seq]
			}
			var strategy plan.Strategy = pipeline.FromLog{}
			if tt.strategy != strategy.Name() {
				strategy = sessiontest.Strategy(t, Registry(), tt.strategy, tt.params)
			}
			plan, err := strategy.Plan(t.Context(), tr)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, x := range plan.Exclude {
				got[x.Reason] = x.Seqs.String()
			}
			if len(plan.Include) > 0 {
				got["include"] = plan.Include.String()
			}
			for _, a := range plan.Additions {
				if a.Kind != chat.KindSummary || a.Message.Role != chat.RoleAssistant || a.Reason != "tool_result_compaction" {
					t.Errorf("addition %+v", a)
				}
				got[fmt.Sprintf("@%d %s", a.Position, a.Message.Content.Text)] = a.Covers.String()
			}
			if tt.want == nil {
				tt.want = map[string]string{}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		name   string
		params plan.Params
		want   []string // parts of the error, none for no error
	}{
		"numbers as JSON gives them": {name: "truncation", params: plan.Params{"max_n": 10.0, "compact_to": json.Number("5")}},
		"a nested strategy": {name: "token_budget", params: plan.Params{
			"token_budget": -1, "strategies": []any{map[string]any{"strategy": "tool_result"}},
		}},
		"an unknown name lists the known ones": {
			name: "truncate", want: []string{`unknown strategy "truncate"`, "sliding_window", "truncation"},
		},
		"all faults at once": {
			name: "truncation", params: plan.Params{"max_n": "ten", "metric": "bytes", "preserve_system": 1, "max": 3},
			want: []string{
				`truncation: max_n: got "ten", want an integer at least 1`,
				"truncation: compact_to: missing, want integer at least 1",
				`truncation: metric: got "bytes", want one of messages, tokens`,
				"truncation: preserve_system: got 1, want true or false",
				"truncation: max: got an unknown parameter, want only max_n, compact_to, metric, preserve_system",
			},
		},
		"parameters that do not go together": {
			name: "truncation", params: plan.Params{"max_n": 5, "compact_to": 6},
			want: []string{"truncation: compact_to: got 6, want at most max_n (5)"},
		},
		"the value is named": {
			name: "sliding_window", params: plan.Params{"keep_last_groups": -3},
			want: []string{"sliding_window: keep_last_groups: got -3, want an integer at least 1"},
		},
		"a fraction is no integer": {
			name: "tool_result", params: plan.Params{"keep_last_tool_call_groups": 1.5},
			want: []string{"got 1.5, want an integer at least 0"},
		},
		"lists as JSON and Go have them, and one string for a list of one": {
			name: "tool_result", params: plan.Params{"exclude_tools": []any{"a"}, "protect_sources": []string{"b", "c"}, "drop_sources": "d"},
		},
		"lists hold strings, and none that are empty": {
			name: "tool_result", params: plan.Params{"exclude_tools": []any{"a", 1}, "protect_sources": []any{""}, "drop_sources": 7},
			want: []string{
				"tool_result: exclude_tools: got [\"a\",1], want a list of strings that are not empty",
				`tool_result: protect_sources: got [""], want a list of strings that are not empty`,
				"tool_result: drop_sources: got 7, want a list of strings that are not empty",
			},
		},
		"a list of objects must be there": {
			name: "attribution", want: []string{"attribution: rules: missing, want list of objects"},
		},
		"a list of objects is one": {
			name: "attribution", params: plan.Params{"rules": "drop"}, want: []string{`attribution: rules: got "drop", want a list of objects`},
		},
		"a list of objects holds nothing else": {
			name: "attribution", params: plan.Params{"rules": []any{"drop"}}, want: []string{`attribution: rules: got ["drop"], want a list of objects`},
		},
		"faults of objects say where": {
			name: "attribution", params: plan.Params{"rules": []any{
				plan.Params{"role": "user", "action": "keep"}, plan.Params{"action": "eat", "tool": "x"}, plan.Params{"role": 3, "rolle": "user"},
			}},
			want: []string{
				"attribution: rules[1]: action: got \"eat\", want one of drop, protect, keep, collapse, include",
				"attribution: rules[2]: role: got 3, want a list of strings that are not empty",
				"attribution: rules[2]: action: missing, want one of drop, protect, keep, collapse, include",
				"attribution: rules[2]: rolle: got an unknown parameter, want only source_id, role, tool, action",
			},
		},
		"a rule has a condition": {
			name: "attribution", params: plan.Params{"rules": []plan.Params{{"action": "drop"}}},
			want: []string{"attribution: rules[0]: source_id: missing, want a condition: source_id, role or tool"},
		},
		"clamp needs a limit": {
			name: "clamp", params: plan.Params{"max_tokens": 0}, want: []string{"clamp: max_tokens: got 0, want more than 0, or max_chars"},
		},
		"a limit has room for the note": {
			name: "clamp", params: plan.Params{"max_chars": 20}, want: []string{"clamp: max_chars: got 20, want 0 or at least 200"},
		},
		"a head is something": {
			name: "protect_head", params: plan.Params{"groups": 0}, want: []string{"protect_head: groups: got 0, want more than 0, or messages"},
		},
		"faults of nested strategies say where": {
			name: "token_budget", params: plan.Params{"token_budget": 1, "strategies": []any{
				plan.Params{"strategy": "tool_result", "params": plan.Params{"keep_last_tool_call_groups": -1}},
				plan.Params{"strategy": "nope"},
				plan.Params{"strategie": "x"},
			}},
			want: []string{
				"token_budget: strategies[0]: tool_result: keep_last_tool_call_groups: got -1",
				`strategies[1]: unknown strategy "nope"`, `strategies[2]: unknown key "strategie"`,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Registry().New(tt.name, tt.params)
			if len(tt.want) == 0 {
				if err != nil || s.Name() != tt.name {
					t.Fatalf("got %v, %v", s, err)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error does not say %q:\n%v", part, err)
				}
			}
		})
	}
	t.Run("describes every parameter", func(t *testing.T) {
		t.Parallel()
		for _, info := range Registry().Describe() {
			if info.Doc == "" || info.Name == "truncation" && len(info.Params) != 4 {
				t.Errorf("%+v", info)
			}
			if _, err := Registry().New(info.Name, nil); info.Summarizer != errors.Is(err, plan.ErrNoSummarizer) {
				t.Errorf("%s: summarizer %t, but %v", info.Name, info.Summarizer, err)
			}
			for _, p := range info.Params {
				if p.Doc == "" || p.Type == "" || p.Required != (p.Default == "") {
					t.Errorf("%s: %+v", info.Name, p)
				}
			}
		}
	})
	t.Run("refuses names that are taken or no names", func(t *testing.T) {
		t.Parallel()
		r := Registry()
		for _, name := range []string{"truncation", "", "Drop It"} {
			if err := r.Register(name, "", newTruncation); err == nil {
				t.Errorf("registered %q", name)
			}
		}
	})
}

// What an application has put between others is not taken for a summary: it comes
// back like all that was said, and a system message stays.

package builtin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
	"github.com/sessionstore/compactor/strategies/stub"
)

func TestPruneToolResults(t *testing.T) {
	t.Parallel()
	long := func(s string) string { return strings.Repeat(s+" ", 100) } // 200 characters and more
	write := `{"path":"p","content":"` + strings.Repeat("line\\n", 100) + `"}`
	// Behind each call is its result, so that the seqs are 1, 2; 3, 4; …
	talk := func(results ...string) []chat.Message {
		var out []chat.Message
		for i, r := range results {
			id := fmt.Sprint("c", i)
			out = append(out, toolCalls(id, "read_file", fmt.Sprintf(`{"path":"f%d"}`, i)), sessiontest.Result(id, r))
		}
		return out
	}
	tests := map[string]struct {
		messages []chat.Message
		pinned   []chat.Seq
		params   plan.Params
		want     map[chat.Seq]string // what stands in, by seq
	}{
		"old results become stubs, those of 200 characters do not": {
			messages: talk(long("ab"), strings.Repeat("x", 200), "ok", long("cd")),
			params:   plan.Params{"protect_last_n": 2},
			want:     map[chat.Seq]string{2: "[read_file] read f0 from line 1 (300 chars)"},
		},
		"a result without a call is one of an unknown tool": {
			messages: []chat.Message{sessiontest.Result("x", long("ab")), sessiontest.User("u")},
			params:   plan.Params{"protect_last_n": 0},
			want:     map[chat.Seq]string{1: "[Result of a tool whose call is missing]\n[unknown] (300 chars result)"},
		},
		"what is pinned stays, but makes older ones duplicates": {
			messages: talk(long("ab"), long("ab"), long("cd")),
			pinned:   []chat.Seq{4},
			params:   plan.Params{"protect_last_n": 0},
			want:     map[chat.Seq]string{2: duplicateOutput, 6: "[read_file] read f2 from line 1 (300 chars)"},
		},
		"with a budget the oldest message is never protected": {
			messages: []chat.Message{toolCalls("a", "write_file", write), sessiontest.Result("a", "ok")},
			params:   plan.Params{"protect_tail_tokens": 1},
			want:     map[chat.Seq]string{1: `{"path":"p","content":"` + strings.Repeat("line\\n", 40) + stub.Truncated + `"}`},
		},
		"results in parts are left alone": {
			messages: []chat.Message{toolCalls("a", "t", "{}"), {
				Role: chat.RoleTool, ToolCallID: "a", Content: chat.Content{Parts: []chat.Part{{Type: "text", Text: long("ab")}}},
			}},
			params: plan.Params{"protect_last_n": 0},
		},
		"the call of a pinned result keeps its arguments": {
			messages: []chat.Message{toolCalls("a", "write_file", write), sessiontest.Result("a", "ok"), sessiontest.Says("done")},
			pinned:   []chat.Seq{2},
			params:   plan.Params{"protect_last_n": 0},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessiontest.Of(tt.messages...)
			for _, q := range tt.pinned {
				s.Pinned[q] = true
			}
			r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Strategy(t, Registry(), "prune_tool_results", tt.params)}}, false)
			var got map[chat.Seq]string
			for _, a := range r.Plan.Additions {
				if got == nil {
					got = map[chat.Seq]string{}
				}
				got[a.Covers[0].Lo] = a.Message.Content.Text
				if len(a.Message.ToolCalls) > 0 {
					got[a.Covers[0].Lo] = a.Message.ToolCalls[0].Arguments
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" || r.Rejected > 0 {
				t.Errorf("stand-ins, -want +got:\n%s%d rejected", d, r.Rejected)
			}
		})
	}
}

func TestPruneToolResultsTwiceIsOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := sessiontest.New()
		s.Add(drawMessages(t, 12)...)
		tools := rapid.SampledFrom([]string{"read_file", "web_search", "write_file", "any", "delegate_task", "terminal"})
		texts := rapid.SampledFrom([]string{
			"ok", strings.Repeat("words and ", 30), strings.Repeat("1, 2? ", 60), strings.Repeat("é", 200), "[read_file] read " + strings.Repeat("f", 300),
		})
		keys := rapid.SampledFrom([]string{"path", "query", "content", "goal", "command", "k" + strings.Repeat("k", 250)})
		for i := range rapid.IntRange(1, 12).Draw(t, "calls") {
			id := fmt.Sprint("t", i)
			arguments, err := json.Marshal(map[string]any{keys.Draw(t, "key"): texts.Draw(t, "value"), keys.Draw(t, "other"): []any{texts.Draw(t, "inner")}})
			if err != nil {
				t.Fatal(err)
			}
			s.Add(toolCalls(id, tools.Draw(t, "tool"), string(arguments)), sessiontest.Result(id, texts.Draw(t, "result")))
		}
		p := pipeline.Pipeline{Steps: []plan.Strategy{&pruneToolResults{protect: rapid.Int64Range(0, 6).Draw(t, "protect")}}}
		s.Run(t, pipeline.Pipeline{}, false) // a repair may change which messages are the newest
		s.Run(t, p, false)
		if again := s.Run(t, p, false); !again.Plan.Empty() {
			t.Fatalf("a second pass wants %+v\nview %s", again.Plan, s.Describe(false))
		}
	})
}

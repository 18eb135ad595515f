package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
	"github.com/sessionstore/compactor/strategies/tokens"
)

// answering returns a registry whose summarizer records its requests.
func answering(answer string) (*plan.Registry, *[]plan.Request) {
	asked := &[]plan.Request{}
	r := Registry()
	inner := answers(answer)
	r.Summarizer = plan.Func(func(ctx context.Context, q plan.Request) (string, error) {
		*asked = append(*asked, q)
		return inner.Summarize(ctx, q)
	})
	return r, asked
}

// whole returns a transcript with its content, each message of ten tokens.
func whole(s *sessiontest.Session) *plan.Transcript {
	t := s.Transcript(true)
	t.Counter = sessiontest.Equal(10)
	for i := range t.Entries {
		t.Entries[i].Tokens = 10
		t.Entries[i].Message = s.Messages[t.Entries[i].Seq]
	}
	return t
}

func planOf(t *testing.T, r *plan.Registry, name string, p plan.Params, tr *plan.Transcript) (chat.Plan, error) {
	t.Helper()
	s, err := r.New(name, p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Plan(t.Context(), tr)
	if reader, ok := s.(plan.Reader); ok {
		covered := chat.Ranges{}
		for _, a := range got.Additions {
			covered = covered.Union(a.Covers)
		}
		if unread := covered.Minus(chat.RangesOf(reader.Reads(tr)...)); len(unread) > 0 {
			t.Errorf("%s covers %s, which it does not read", name, unread)
		}
	}
	return got, err
}

func TestSummarization(t *testing.T) {
	t.Parallel()
	prompt := int(tokens.Chars4{}.Text(defaultSummaryPrompt))
	tests := map[string]struct {
		out, pinned []chat.Seq
		params      plan.Params
		want        map[string]string
		asks        string // part of what is asked
	}{
		"does nothing at its limit": {params: plan.Params{"target_count": 8, "threshold": 2}},
		"replaces all but the newest, whole groups, behind the system message": {
			params: plan.Params{"target_count": 8, "threshold": 1},
			want:   map[string]string{"summarized": "+{[2,3)}"}, asks: "1. [user] first",
		},
		"keeps more than its target rather than split a group": {
			params: plan.Params{"target_count": 2, "threshold": 0},
			want:   map[string]string{"summarized": "+{[2,8)}"},
			asks: "1. [user] first\n2. [assistant] function_call, function_call\n3. [tool] function_result\n" +
				"4. [tool] function_result\n5. [assistant] done\n6. [user] next",
		},
		"takes the oldest groups that fit into its prompt": {
			params: plan.Params{"target_count": 2, "threshold": 0, "max_summary_input_tokens": prompt + 28},
			want:   map[string]string{"summarized": "+{[2,6)}"},
			asks:   "1. [user] first\n2. [assistant] function_call, function_call\n3. [tool] function_result\n4. [tool] function_result",
		},
		"neither counts nor summarizes what is out of the view": {
			out: []chat.Seq{2, 4}, params: plan.Params{"target_count": 2, "threshold": 0},
			want: map[string]string{"summarized": "+{[3,4),[5,8)}"},
			asks: "1. [assistant] function_call, function_call\n2. [tool] function_result\n3. [assistant] done\n4. [user] next",
		},
		"does not count pinned groups": {
			pinned: []chat.Seq{5, 11}, params: plan.Params{"target_count": 4, "threshold": 2},
		},
		"keeps the newest and what is pinned, with its call": {
			pinned: []chat.Seq{5, 11}, params: plan.Params{"target_count": 3, "threshold": 0},
			want: map[string]string{"summarized": "+{[2,3),[6,8)}"},
			asks: "1. [user] first\n2. [assistant] done\n3. [user] next",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessiontest.Of(sessiontest.Talk()...)
			for _, q := range tt.out {
				s.Included[q] = false
			}
			for _, q := range tt.pinned {
				s.Pinned[q] = true
			}
			r, asked := answering("\n what was said\x1c")
			got, err := planOf(t, r, "summarization", tt.params, whole(s))
			if err != nil {
				t.Fatal(err)
			}
			wantPlan(t, tt.want, got)
			if tt.asks == "" {
				if len(*asked) > 0 {
					t.Errorf("asked %+v", *asked)
				}
				return
			}
			if diff := cmp.Diff([]plan.Request{{System: defaultSummaryPrompt, User: tt.asks}}, *asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			a := got.Additions[0]
			if a.Kind != chat.KindSummary || a.Message.Role != chat.RoleAssistant || a.Message.Content.Text != "what was said" || a.Position < 2 {
				t.Errorf("addition %+v", a)
			}
		})
	}
}

// A group that alone exceeds the limit stays, and the ones after it are summarized. If none
// fits, nothing is asked.
func TestSummarizationLeavesGroupsThatDoNotFitIntoItsPrompt(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sessiontest.User(strings.Repeat("long ", 100)), sessiontest.Says("a"), sessiontest.User("b"), sessiontest.Says("c"))
	for limit, want := range map[int]map[string]string{
		1: nil, 20: {"summarized": "+{[2,4)}"}, 200: {"summarized": "+{[1,4)}"},
	} {
		r, asked := answering("what was said")
		got, err := planOf(t, r, "summarization", plan.Params{
			"target_count": 1, "threshold": 0, "prompt": "Sum up.", "max_summary_input_tokens": limit,
		}, whole(s))
		if errors.Is(err, plan.ErrNoSummary) != (want == nil) || (len(*asked) == 0) != (want == nil) {
			t.Errorf("limit %d: %v, asked %d times", limit, err, len(*asked))
		}
		wantPlan(t, want, got)
	}
}

func TestSummarizationWithoutASummaryChangesNothing(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"", " \n\t\u00a0"} {
		r, _ := answering(answer)
		for name, p := range map[string]plan.Params{
			"summarization": {"target_count": 1},
			"token_budget": {"token_budget": 30, "early_stop": false, "strategies": []any{
				plan.Params{"strategy": "summarization"}, plan.Params{"strategy": "sliding_window", "params": plan.Params{"keep_last_groups": 2}},
			}},
		} {
			got, err := planOf(t, r, name, p, whole(sessiontest.Of(sessiontest.Talk()...)))
			if !errors.Is(err, plan.ErrNoSummary) {
				t.Errorf("%s: got %v", name, err)
			}
			if len(got.Additions) > 0 || (name == "summarization") != got.Empty() {
				t.Errorf("%s: plan %+v", name, got)
			}
		}
		s := sessiontest.Of(sessiontest.Talk()...)
		st, err := r.New("summarization", plan.Params{"target_count": 1})
		if err != nil {
			t.Fatal(err)
		}
		if result := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false); result.Steps[0].NoSummary == "" || result.Steps[0].Changed {
			t.Errorf("steps %+v", result.Steps)
		}
	}
	t.Run("a run that is stopped is stopped", func(t *testing.T) {
		t.Parallel()
		ctx, stop := context.WithCancel(t.Context())
		r := Registry()
		r.Summarizer = plan.Func(func(context.Context, plan.Request) (string, error) {
			stop()
			return "", ctx.Err()
		})
		s, err := r.New("summarization", nil)
		if err != nil {
			t.Fatal(err)
		}
		d, err := pipeline.NewDraft(whole(sessiontest.Of(sessiontest.Talk()...)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Run(ctx, s, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestSummarizationSaysWhatMessagesAreMadeOf(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"role":"user","content":"a\nb"}`:                      "a\nb",
		`{"role":"user","content":""}`:                          "text",
		`{"role":"user","content":" "}`:                         " ",
		`{"role":"assistant","content":null}`:                   "",
		`{"role":"assistant","content":null,"reasoning":"why"}`: "text_reasoning",
		`{"role":"assistant","content":"","reasoning":"why","tool_calls":[{"id":"a","function":{"name":"f"}}]}`:  "text_reasoning, text, function_call",
		`{"role":"assistant","content":"ok","tool_calls":[{"id":"a","function":{"name":"f"}}]}`:                  "ok",
		`{"role":"tool","tool_call_id":"a","content":"secret"}`:                                                  "function_result",
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"},{"type":"text","text":"b"}]}`: "a b",
		`{"role":"user","content":[{"type":"image_url"},{"type":"text","text":""}]}`:                             "image_url, text",
	}
	for in, want := range tests {
		var m chat.Message
		if err := json.Unmarshal([]byte(in), &m); err != nil {
			t.Fatal(err)
		}
		if got := textOrKinds(&m); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestSummarizationAsksWithItsPrompt(t *testing.T) {
	t.Parallel()
	r, asked := answering("so")
	if _, err := planOf(t, r, "summarization", plan.Params{"prompt": "Be brief."}, whole(sessiontest.Of(sessiontest.Talk()...))); err != nil {
		t.Fatal(err)
	}
	if len(*asked) != 1 || (*asked)[0].System != "Be brief." {
		t.Errorf("asked %+v", *asked)
	}
	_, err := Registry().New("summarization", plan.Params{"target_count": 0, "threshold": -1})
	for _, part := range []string{"target_count: got 0", "threshold: got -1", plan.ErrNoSummarizer.Error()} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	if !errors.Is(err, plan.ErrNoSummarizer) {
		t.Error("no ErrNoSummarizer")
	}
}

// wantPlan compares a plan, as sortedReasons has it, with what is wanted; nil is none.
func wantPlan(t *testing.T, want map[string]string, got chat.Plan) {
	t.Helper()
	if want == nil {
		want = map[string]string{}
	}
	if diff := cmp.Diff(want, byReason(got)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

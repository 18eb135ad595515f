package builtin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

func TestPinToolsKeepsCallsAndResultsOfSomeTools(t *testing.T) {
	t.Parallel()
	policy := []string{"5 assistant: b=load_policy{}", "6 tool: rules"}
	tests := map[string]struct {
		steps  []plan.Strategy
		target chat.Tokens
		want   []string
	}{
		"strategies that know no pins": {
			steps: []plan.Strategy{sessiontest.Strategy(t, Registry(), "truncation", plan.Params{"max_n": 1, "compact_to": 1}), sessiontest.Strategy(t, Registry(), "selective_tool_call", plan.Params{"keep_last_tool_call_groups": 0})},
			want:  append(slices.Clone(policy), "9 user: more"),
		},
		"strategies that write": {
			steps: []plan.Strategy{sessiontest.Strategy(t, Registry(), "tool_result", plan.Params{"keep_last_tool_call_groups": 0}), sessiontest.Strategy(t, Registry(), "sliding_window", plan.Params{"keep_last_groups": 2})},
			want:  append(slices.Clone(policy), "9 user: more", "+10 assistant: [Tool results: search: found more]"),
		},
		"the fallback": {
			target: 1, want: append(slices.Clone(policy), "9 user: more", "10 assistant: c=search{}", "11 tool: found more"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessiontest.Of(sources()...)
			var read []chat.Seq
			tr := s.Transcript(false)
			p := pipeline.Pipeline{Steps: tt.steps, PinTools: []string{"load_policy", "read_skill"}, Target: tt.target, Fallback: tt.target > 0}
			if _, err := p.Run(t.Context(), tr, func(ctx context.Context, seqs []chat.Seq) (map[chat.Seq]*chat.Message, error) {
				read = append(read, seqs...)
				return s.Load(ctx, seqs)
			}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]chat.Seq{3, 5, 10}, read[:3]); diff != "" {
				t.Errorf("read first (-want +got):\n%s", diff)
			}
			s.Run(t, p, false)
			if diff := cmp.Diff(tt.want, viewLines(s)); diff != "" {
				t.Errorf("view (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPinToolsBringsBackWhatTheLogHolds(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sources()...)
	s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{
		sessiontest.Strategy(t, Registry(), "clear_tool_arguments", plan.Params{"keep_last_tool_call_groups": 0, "max_chars": 0}),
		sessiontest.Strategy(t, Registry(), "tool_result", nil),
	}}, false)
	s.Run(t, pipeline.Pipeline{PinTools: []string{"load_policy"}}, true)
	if got := strings.Join(viewLines(s), "\n"); !strings.Contains(got, "\n5 assistant: b=load_policy{}\n6 tool: rules\n") {
		t.Errorf("view\n%s", got)
	}
}

func TestPinToolsReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sources()...)
	_, err := pipeline.Pipeline{PinTools: []string{"x"}}.Run(t.Context(), s.Transcript(false), nil)
	if !errors.Is(err, plan.ErrNotLoaded) {
		t.Errorf("got %v", err)
	}
}

func TestProtectHead(t *testing.T) {
	t.Parallel()
	window := plan.Params{"strategy": "sliding_window", "params": plan.Params{"keep_last_groups": 1}}
	tests := map[string]struct {
		params plan.Params
		want   []int
	}{
		"groups, system messages not counted": {plan.Params{"groups": 2}, []int{1, 2, 3, 4, 5, 7, 11}},
		"messages, in whole groups":           {plan.Params{"groups": 0, "messages": 2}, []int{1, 2, 3, 4, 5, 7, 11}},
		"the larger of both":                  {plan.Params{"groups": 3, "messages": 1}, []int{1, 2, 3, 4, 5, 6, 7, 11}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessiontest.Of(sessiontest.Talk()...)
			s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{
				sessiontest.Strategy(t, Registry(), "protect_head", tt.params),
				sessiontest.Strategy(t, Registry(), "token_budget", plan.Params{"token_budget": 1, "strategies": []any{window}}),
			}, Target: 1, Fallback: true}, false)
			if diff := cmp.Diff(tt.want, viewSeqs(s)); diff != "" {
				t.Errorf("view (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("what stands behind a summary is no head", func(t *testing.T) {
		t.Parallel()
		s := sessiontest.Of(sessiontest.Talk()...)
		s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Plans(sessiontest.Summarizes(2, 2, 3, 4, 5))}}, false)
		s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{sessiontest.Strategy(t, Registry(), "protect_head", nil), sessiontest.Strategy(t, Registry(), "sliding_window", plan.Params{"keep_last_groups": 1})}}, false)
		if got := viewSeqs(s); !slices.Equal(got, []int{1, 7, 11}) {
			t.Errorf("view %v", got)
		}
	})
}

func TestAStrategyThatFailsToPinPlansNothing(t *testing.T) {
	t.Parallel()
	s := sessiontest.Of(sessiontest.Talk()...)
	r, err := pipeline.Pipeline{Steps: []plan.Strategy{badPinner{sessiontest.StrategyFunc(func(*plan.Transcript) (chat.Plan, error) { return sessiontest.Excludes(2), nil })}}}.Run(t.Context(), s.Transcript(false), nil)
	var failed *pipeline.StrategyError
	if !errors.As(err, &failed) || failed.Code() != "strategy_panicked" || !r.Plan.Empty() {
		t.Errorf("got %v, plan %+v", err, r.Plan)
	}
}

type badPinner struct{ plan.Strategy }

func (badPinner) Pins(t *plan.Transcript) ([]chat.Seq, error) {
	return []chat.Seq{t.Entries[99].Seq}, nil
}

// rewriters change or take out messages by themselves: none of it pinned.
var rewriters = []string{
	"clamp", "dedupe_reads", "strip_media", "clear_tool_arguments", "attribution",
	"preserve_user_messages", "preserve_recent_fraction", "preserve_recent_turns", "protect_head",
}

// drawRich returns a session that also holds what drawSession does not draw: media, large
// arguments, files that are read again, sources.
func drawRich(t *rapid.T) *sessiontest.Session {
	s, _ := drawSession(t)
	for range rapid.IntRange(0, 4).Draw(t, "rich") {
		image := chat.Content{Parts: []chat.Part{{Type: "text", Text: "see"}, {Type: "image_url"}}}
		ask := chat.Message{Role: chat.RoleUser, Content: image}
		if rapid.Bool().Draw(t, "asks") {
			s.Add(fromSource("camera", ask))
		}
		name := rapid.SampledFrom([]string{"do_a", "do_b", "do_c"}).Draw(t, "tool")
		path := rapid.SampledFrom([]string{"m.go", "n.go"}).Draw(t, "path")
		answer := sessiontest.Result("r", strings.Repeat("a line\n", rapid.IntRange(1, 60).Draw(t, "lines")))
		if rapid.Bool().Draw(t, "shows") {
			answer.Content = image
		}
		s.Add(toolCalls("r", name, `{"path":"`+path+`","x":"`+strings.Repeat("y", rapid.IntRange(0, 2).Draw(t, "large")*50)+`"}`), answer)
		for q := range chat.Seq(len(s.Metas)) {
			if _, known := s.Pinned[q+1]; !known {
				s.Pinned[q+1] = rapid.IntRange(0, 9).Draw(t, "pin") == 9
			}
		}
	}
	return s
}

// The guard would keep what is pinned anyway; a strategy does so by itself, and shows
// nothing of it to a summarizer, without it.
func TestStrategiesLeaveAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawRich(t)
		whole := rapid.Bool().Draw(t, "whole log")
		tr := s.Transcript(whole)
		for i := range tr.Entries {
			tr.Entries[i].Message = s.Messages[tr.Entries[i].Seq]
		}
		st := drawStrategy(t, append(slices.Clip(rewriters), "handoff", "extractive")...)
		planned, err := st.Plan(t.Context(), tr)
		if err != nil && !errors.Is(err, plan.ErrNoSummary) {
			t.Fatalf("%v", err)
		}
		touched := map[chat.Seq]bool{}
		for _, x := range planned.Exclude {
			for _, q := range x.Seqs.Seqs() {
				touched[q] = true
			}
		}
		for _, a := range planned.Additions {
			for _, q := range a.Covers.Seqs() {
				touched[q] = true
			}
		}
		groups := tr.Groups()
		for i, g := range groups {
			for _, e := range tr.Entries[g.Start:g.End] {
				if !touched[e.Seq] {
					continue
				}
				if e.Included && e.Pinned || tr.GroupPinned(i) && e.Calls > 0 {
					t.Fatalf("%s touches %d, which is pinned or the call of what is%s", st.Name(), e.Seq, s.Describe(true))
				}
				if !e.Included && st.Name() != "attribution" {
					t.Fatalf("%s touches %d, which is not in the view", st.Name(), e.Seq)
				}
			}
		}
	})
}

func TestPinnedToolsStayWhateverStrategiesWant(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawRich(t)
		s.Run(t, pipeline.Pipeline{}, false) // invalid groups are repaired before they can be pinned
		view := s.View()
		var pinned []chat.Seq
		for _, g := range chat.Groups(view) {
			matches, sources := false, true
			for _, m := range view[g.Start:g.End] {
				sources = sources && plan.IsSource(m.Kind)
				for _, c := range s.Messages[m.Seq].ToolCalls {
					matches = matches || c.Name == "do_b"
				}
			}
			for _, m := range view[g.Start:g.End] {
				if matches && sources {
					pinned = append(pinned, m.Seq)
				}
			}
		}
		p := drawPipeline(t, func() plan.Strategy { return drawAny(t) })
		p.PinTools, p.FromLog = []string{"do_b"}, false
		s.Run(t, p, false)
		for _, q := range pinned {
			if !s.Included[q] {
				t.Fatalf("%d is gone, pinned %v%s", q, pinned, s.Describe(true))
			}
		}
	})
}

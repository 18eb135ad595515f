package builtin

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// tools returns a conversation with a parallel call in its middle.
func tools() *sessiontest.Session {
	call := sessiontest.Calls("p", "q")
	call.Content = chat.TextContent("both")
	return sessiontest.Of(sessiontest.Sys("be good"), sessiontest.User("load"), call, sessiontest.Result("p", "document"), sessiontest.Result("q", "rows"), sessiontest.User("x"), sessiontest.Says("y"), sessiontest.User("z"), sessiontest.Says("w"))
}

func TestStrategiesOfMessagesReadOnlyWhatIsTorn(t *testing.T) {
	t.Parallel()
	s := tools()
	for _, n := range []int{9, 6, 3} {
		r := sessiontest.Strategy(t, Registry(), "keep_last_n_messages", plan.Params{"n": n}).(plan.Reader)
		if got := r.Reads(s.Transcript(false)); len(got) > 0 {
			t.Errorf("the newest %d need %v to be read", n, got)
		}
	}
	s.Pinned[4] = true
	if got := sessiontest.Strategy(t, Registry(), "keep_last_n_turns", plan.Params{"n": 1}).(plan.Reader).Reads(s.Transcript(false)); !cmp.Equal(got, []chat.Seq{3, 4}) {
		t.Errorf("a pinned result needs %v to be read", got)
	}
}

func TestCompactToolResults(t *testing.T) {
	t.Parallel()
	view := func(p, q string) []string {
		return []string{"system be good", "user load", "assistant both calls p,q", "tool(p)" + p, "tool(q)" + q, "user x", "assistant y", "user z", "assistant w"}
	}
	for name, test := range map[string]struct {
		params plan.Params
		pin    chat.Seq
		want   []string
	}{
		"placeholders":    {plan.Params{"replacement": "{{{tool_name}}} {call_id}: {result_length}{nothing}"}, 0, view(" {do_p} p: 8", " {do_q} q: 4")},
		"an empty text":   {plan.Params{"replacement": ""}, 0, view("", "")},
		"a pinned result": {plan.Params{"replacement": "gone"}, 5, view(" gone", " rows")},
		"a stored result": {plan.Params{"replacement": "gone", "keep_offloaded": false}, 0, view(" gone", " gone")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tools()
			s.Messages[4].Extra = map[string]json.RawMessage{"offload_handle": json.RawMessage(`""`)}
			if test.params["keep_offloaded"] != nil {
				s.Messages[4].Extra["offload_handle"] = json.RawMessage(`"run/1"`)
			}
			s.Pinned[test.pin] = test.pin > 0
			st := sessiontest.Strategy(t, Registry(), "compact_tool_results", test.params)
			s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{st}}, false)
			if diff := cmp.Diff(test.want, viewBriefly(s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDroppedToolResultsStayDroppedBehindTheGuard(t *testing.T) {
	t.Parallel()
	s := tools()
	s.Add(sessiontest.Thinks("hm"), sessiontest.Calls("r"), sessiontest.Thinks("so"), sessiontest.Result("r", "rows"), sessiontest.Says("done"))
	s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{compactToolResults{}}}, false)
	want := []string{"system be good", "user load", "assistant both", "user x", "assistant y", "user z", "assistant w", "assistant done"}
	if diff := cmp.Diff(want, viewBriefly(s)); diff != "" {
		t.Error(diff)
	}
	if err := s.Invariants(true); err != nil {
		t.Error(err)
	}
	if again := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{compactToolResults{}}}, false); !again.Plan.Empty() {
		t.Errorf("a second run wants %+v", again.Plan)
	}
}

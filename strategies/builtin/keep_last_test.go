package builtin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// unguarded returns the view that strategies alone make of a session.
func unguarded(t *testing.T, s *sessiontest.Session, strategies ...plan.Strategy) ([]string, error) {
	t.Helper()
	d, err := pipeline.NewDraft(s.Transcript(false))
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range strategies {
		if _, err := d.Run(t.Context(), st, s.Load); err != nil {
			t.Fatal(err)
		}
	}
	if d.Rejected() > 0 {
		t.Errorf("%d additions were rejected", d.Rejected())
	}
	var out []string
	for _, e := range d.Transcript().Entries {
		m := e.Message
		if m == nil {
			m = s.Messages[e.Seq]
		}
		if e.Included {
			out = append(out, sessiontest.Briefly(m))
		}
	}
	return out, d.NoSummary()
}

// tools returns a conversation with a parallel call in its middle.
func tools() *sessiontest.Session {
	call := sessiontest.Calls("p", "q")
	call.Content = chat.TextContent("both")
	return sessiontest.Of(sessiontest.Sys("be good"), sessiontest.User("load"), call, sessiontest.Result("p", "document"), sessiontest.Result("q", "rows"), sessiontest.User("x"), sessiontest.Says("y"), sessiontest.User("z"), sessiontest.Says("w"))
}

func TestStrategiesOfMessagesAndTurns(t *testing.T) {
	t.Parallel()
	all := viewBriefly(tools())
	tests := map[string]struct {
		strategy string
		params   plan.Params
		pin      chat.Seq
		say      []chat.Message
		want     []string
	}{
		"the newest messages stay, of whatever role": {
			strategy: "keep_last_n_messages", params: plan.Params{"n": 2},
			want: []string{"user z", "assistant w"},
		},
		"a cut between a call and its results takes the results too": {
			strategy: "keep_last_n_messages", params: plan.Params{"n": 6},
			want: []string{"user x", "assistant y", "user z", "assistant w"},
		},
		"a pinned result stays with its call, and its sibling goes": {
			strategy: "keep_last_n_messages", params: plan.Params{"n": 2}, pin: 4,
			want: []string{"assistant both calls p", "tool(p) document", "user z", "assistant w"},
		},
		"a pinned call stays with all its results": {
			strategy: "keep_last_n_turns", params: plan.Params{"n": 1}, pin: 3,
			want: []string{"assistant both calls p,q", "tool(p) document", "tool(q) rows", "user z", "assistant w"},
		},
		"the newest turns stay, the system message does not": {
			strategy: "keep_last_n_turns", params: plan.Params{"n": 2},
			want: []string{"user x", "assistant y", "user z", "assistant w"},
		},
		"as many turns as there are keep what was said before the first": {
			strategy: "keep_last_n_turns", params: plan.Params{"n": 3}, want: all,
		},
		"what is torn goes even if nothing else does, but for its words": {
			strategy: "keep_last_n_turns", params: plan.Params{"n": 9},
			say:  []chat.Message{sessiontest.Result("ghost", "boo"), func() chat.Message { m := sessiontest.Calls("r"); m.Content = chat.TextContent("hm"); return m }(), sessiontest.Calls("s")},
			want: append(slices.Clip(all), "assistant hm"),
		},
		"a result that comes late still has its call": {
			strategy: "keep_last_n_messages", params: plan.Params{"n": 5},
			say:  []chat.Message{sessiontest.Calls("r", "s"), sessiontest.User("wait"), sessiontest.Result("r", "late")},
			want: []string{"user z", "assistant w", "assistant calls r", "user wait", "tool(r) late"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tools()
			s.Add(test.say...)
			s.Pinned[test.pin] = test.pin > 0
			got, _ := unguarded(t, s, sessiontest.Strategy(t, Registry(), test.strategy, test.params))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
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
	offloaded := sessiontest.Result("o", "see elsewhere")
	offloaded.Extra = map[string]json.RawMessage{"offload_handle": json.RawMessage(`"run/1"`)}
	older := []string{"system be good", "user load"}
	rest := []string{"user x", "assistant y", "user z", "assistant w"}
	view := func(middle ...string) []string { return append(append(older[:2:2], middle...), rest...) }
	tests := map[string]struct {
		strategy plan.Strategy
		pin      chat.Seq
		say      []chat.Message
		want     []string
	}{
		"dropped results take their calls along, not what was said beside them": {
			strategy: compactToolResults{}, want: view("assistant both"),
		},
		"the newest call messages stay with all their results": {
			strategy: compactToolResults{keepLastN: 1}, want: view("assistant both calls p,q", "tool(p) document", "tool(q) rows"),
		},
		"no more messages than the threshold": {
			strategy: compactToolResults{threshold: 9}, want: view("assistant both calls p,q", "tool(p) document", "tool(q) rows"),
		},
		"a pinned result stays with its call": {
			strategy: compactToolResults{}, pin: 4, want: view("assistant both calls p", "tool(p) document"),
		},
		"an offloaded result stays with its call": {
			strategy: compactToolResults{}, say: []chat.Message{sessiontest.Calls("o", "n"), offloaded, sessiontest.Result("n", "rows")},
			want: append(view("assistant both"), "assistant calls o", "tool(o) see elsewhere"),
		},
		"unless it need not": {
			strategy: compactToolResults{compactOffloaded: true}, say: []chat.Message{sessiontest.Calls("o"), offloaded},
			want: view("assistant both"),
		},
		"a template": {
			strategy: sessiontest.Strategy(t, Registry(), "compact_tool_results", plan.Params{"replacement": "{{{tool_name}}} {call_id}: {result_length}{nothing}"}),
			want:     view("assistant both calls p,q", "tool(p) {do_p} p: 8", "tool(q) {do_q} q: 4"),
		},
		"an empty template empties": {
			strategy: sessiontest.Strategy(t, Registry(), "compact_tool_results", plan.Params{"replacement": ""}),
			want:     view("assistant both calls p,q", "tool(p)", "tool(q)"),
		},
		"null drops": {
			strategy: sessiontest.Strategy(t, Registry(), "compact_tool_results", plan.Params{"replacement": nil}), want: view("assistant both"),
		},
		"a template leaves pinned results": {
			strategy: sessiontest.Strategy(t, Registry(), "compact_tool_results", plan.Params{"replacement": "gone"}), pin: 5,
			want: view("assistant both calls p,q", "tool(p) gone", "tool(q) rows"),
		},
		"the tool of a result without a call is unknown": {
			strategy: sessiontest.Strategy(t, Registry(), "compact_tool_results", plan.Params{"replacement": "{tool_name} {call_id}"}),
			say:      []chat.Message{sessiontest.Result("ghost", "boo")},
			want:     append(view("assistant both calls p,q", "tool(p) do_p p", "tool(q) do_q q"), "tool(ghost) unknown ghost"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tools()
			s.Add(test.say...)
			s.Pinned[test.pin] = test.pin > 0
			got, _ := unguarded(t, s, test.strategy)
			if diff := cmp.Diff(test.want, got); diff != "" {
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

func TestParametersOfTheStrategiesOfMessages(t *testing.T) {
	t.Parallel()
	r := Registry()
	r.Summarizer = plan.Func(func(context.Context, plan.Request) (string, error) { return "", nil })
	tests := map[string]struct {
		strategy string
		params   plan.Params
		want     []string
	}{
		"no n": {"keep_last_n_turns", nil, []string{"n: missing, want integer at least 1"}},
		"0":    {"keep_last_n_messages", plan.Params{"n": 0}, []string{"n: got 0, want an integer at least 1"}},
		"all at once": {"compact_tool_results", plan.Params{"keep_last_n": -1, "threshold": "x", "replacement": "{", "keep": 1}, []string{
			"keep_last_n: got -1", `threshold: got "x"`, `replacement: got "{", want text with placeholders`, "keep: got an unknown parameter",
		}},
		"no placeholder":    {"compact_tool_results", plan.Params{"replacement": "{a b}"}, []string{"replacement"}},
		"a lone brace":      {"compact_tool_results", plan.Params{"replacement": "a } b"}, []string{"replacement"}},
		"no text":           {"compact_tool_results", plan.Params{"replacement": 1}, []string{"replacement: got 1, want a string or null"}},
		"no threshold":      {"summarize", plan.Params{"max_verbatim_chars": 1}, []string{"threshold: missing", "max_verbatim_chars: got 1, want an integer at least 2"}},
		"no summary wanted": {"summarize", plan.Params{"threshold": 1, "max_summary_tokens": 0}, []string{"max_summary_tokens: got 0"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := r.New(test.strategy, test.params)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
	if _, err := Registry().New("summarize", plan.Params{"threshold": 1}); err == nil || !strings.Contains(err.Error(), plan.ErrNoSummarizer.Error()) {
		t.Errorf("got %v without a summarizer", err)
	}
}

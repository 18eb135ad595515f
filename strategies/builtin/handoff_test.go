package builtin

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// noted makes a handoff that gets its summaries.
func noted(tb testing.TB, p plan.Params) plan.Strategy {
	tb.Helper()
	return handoffWith(tb, &sessiontest.Notes{}, p)
}

func handoffWith(tb testing.TB, s plan.Summarizer, p plan.Params) *handoff {
	tb.Helper()
	return sessiontest.Strategy(tb, Registry().With(s), "handoff", p).(*handoff)
}

// short are parameters with fixed texts that can be read in a test.
func short(more plan.Params) plan.Params {
	p := plan.Params{
		"summary_prefix": "NOTES", "end_marker": "END", "compaction_note": "NOTE",
		"fallback_text": "LOST {n}", "tail_token_budget": 30, "protect_last_n": 3,
	}
	maps.Copy(p, more)
	return p
}

func TestHandoff(t *testing.T) {
	t.Parallel()
	tail := []string{`assistant:  terminal({"command":"go test"})`, "tool: FAIL", "assistant: two fail", "user: fix those too", "assistant: on it"}
	for name, test := range map[string]struct {
		params   plan.Params
		messages []chat.Message
		want     []string
	}{
		"notes take the place of the middle": {
			nil, sessiontest.Workday(), append([]string{
				"system: be good", "user: fix the build", "assistant: I will look",
				"user: NOTES|notes 1||END",
			}, tail...),
		},
		"a head of nothing but the system message is followed by the user": {
			plan.Params{"protect_first_n": 1}, sessiontest.Workday(), append([]string{
				"system: be good", "user: NOTES|notes 1||END",
			}, tail...),
		},
		"results in the head become stubs and their calls stay": {
			plan.Params{"protect_first_n": 4, "protect_last_n": 5}, sessiontest.Workday(), append([]string{
				"system: be good", "user: fix the build", "assistant: I will look",
				`assistant:  read_file({"path":"main.go"})`, "tool: [read_file] read main.go from line 1 (520 chars)",
				"user: NOTES|notes 1||END",
			}, tail...),
		},
		"too few messages stay": {
			nil, sessiontest.Workday()[:7], viewTexts(sessiontest.Of(sessiontest.Workday()[:7]...)),
		},
		"notes that would stand between two of a kind are merged into an answer": {
			plan.Params{"protect_first_n": 2}, append(sessiontest.Workday()[:8:8], sessiontest.Workday()[11:]...), []string{
				"system: be good", "user: fix the build", "assistant: NOTES|notes 1||END||two fail",
				"user: fix those too", "assistant: on it",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessiontest.Of(test.messages...)
			r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{noted(t, short(test.params))}}, false)
			if d := cmp.Diff(test.want, viewTexts(s)); d != "" {
				t.Error(d)
			}
			if err := s.Invariants(true); err != nil || r.Rejected > 0 {
				t.Errorf("%v, %d rejected", err, r.Rejected)
			}
		})
	}
}

func TestAHandoffAddsNothingToWhatIsPinned(t *testing.T) {
	t.Parallel()
	for _, pin := range []chat.Seq{1, 9} {
		s := sessiontest.Of(append(sessiontest.Workday()[:8:8], sessiontest.Workday()[11:]...)...)
		s.Pinned[pin] = true
		planned, err := noted(t, short(plan.Params{"protect_first_n": 2, "system_note": true})).Plan(t.Context(), whole(s))
		if err != nil || planned.Empty() {
			t.Fatalf("plan %+v, %v", planned, err)
		}
		for _, a := range planned.Additions {
			if slices.Contains(a.Covers.Seqs(), pin) {
				t.Errorf("%d is pinned and replaced by %v", pin, a.Message.Content)
			}
		}
	}
}

func TestHandoffContinuesFromTheOneBefore(t *testing.T) {
	t.Parallel()
	model := &sessiontest.Notes{}
	s := sessiontest.Of(sessiontest.Workday()...)
	for range 2 { // made anew each time: nothing is remembered but the transcript
		s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{handoffWith(t, model, short(nil))}}, false)
		s.Add(sessiontest.User("and the docs"), sessiontest.Says(strings.Repeat("written ", 20)), sessiontest.User("thanks"), sessiontest.Says("welcome"))
	}
	asked := model.Asked[1].User
	if !strings.Contains(asked, " 0 notes written so far\nnotes 1\n") || strings.Contains(asked, "NOTES") {
		t.Errorf("asked to go on from\n%s", asked)
	}
	if strings.Contains(model.Asked[0].User, "notes written so far") {
		t.Error("the first handoff has nothing to go on from")
	}
	if got := strings.Join(viewTexts(s), "\n"); strings.Count(got, "NOTES") != 1 || !strings.Contains(got, "notes 2") {
		t.Errorf("view\n%s", got)
	}
}

func TestHandoffWithoutASummary(t *testing.T) {
	t.Parallel()
	before := viewTexts(sessiontest.Of(sessiontest.Workday()...))
	lost := []string{
		"system: be good", "user: fix the build", "assistant: I will look", "user: NOTES|LOST 6||END",
		`assistant:  terminal({"command":"go test"})`, "tool: FAIL", "assistant: two fail", "user: fix those too", "assistant: on it",
	}
	for name, test := range map[string]struct {
		answer func(int) (string, error)
		on     string
		want   []string
	}{
		"an error can be followed by the text":    {func(int) (string, error) { return "", errors.New("no") }, "fallback", lost},
		"the prefix alone is an empty answer too": {func(int) (string, error) { return "NOTES", nil }, "keep", before},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessiontest.Of(sessiontest.Workday()...)
			r := s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{handoffWith(t, &sessiontest.Notes{Answer: test.answer}, short(plan.Params{"on_failure": test.on}))}}, false)
			if d := cmp.Diff(test.want, viewTexts(s)); d != "" {
				t.Error(d)
			}
			if r.Steps[0].NoSummary == "" {
				t.Error("the step does not say that there was no summary")
			}
		})
	}
}

func TestHandoffFallbackIsNoSummaryToGoOnFrom(t *testing.T) {
	t.Parallel()
	model := &sessiontest.Notes{Answer: func(n int) (string, error) { return "fine", []error{errors.New("no"), nil}[n-1] }}
	s := sessiontest.Of(sessiontest.Workday()...)
	for range 2 {
		s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{handoffWith(t, model, short(plan.Params{"on_failure": "fallback"}))}}, false)
		s.Add(sessiontest.User("more"), sessiontest.Says(strings.Repeat("done ", 40)), sessiontest.User("thanks"), sessiontest.Says("welcome"))
	}
	if asked := model.Asked[1].User; strings.Contains(asked, "notes written so far") {
		t.Errorf("asked to go on from\n%s", asked)
	}
}

func TestHandoffKeepsPinsAndShowsThemToNobody(t *testing.T) {
	t.Parallel()
	model := &sessiontest.Notes{}
	s := sessiontest.Of(sessiontest.Workday()...)
	s.Pinned[7] = true // the result of the second call
	s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{handoffWith(t, model, short(nil))}}, false)
	want := []string{
		"system: be good", "user: fix the build", "assistant: I will look", "user: NOTES|notes 1||END",
		`assistant:  terminal({"command":"go build"})`, "tool: ok",
		`assistant:  terminal({"command":"go test"})`, "tool: FAIL", "assistant: two fail", "user: fix those too", "assistant: on it",
	}
	if d := cmp.Diff(want, viewTexts(s)); d != "" {
		t.Error(d)
	}
	if asked := model.Asked[0].User; strings.Contains(asked, "go build") || !strings.Contains(asked, "read_file") {
		t.Errorf("asked\n%s", asked)
	}
}

func TestHandoffFavoursATopic(t *testing.T) {
	t.Parallel()
	model := &sessiontest.Notes{}
	h := handoffWith(t, model, short(nil))
	s := sessiontest.Of(sessiontest.Workday()...)
	s.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{h.WithFocus("the build sk-abcdefghijklmnopqrstuvwxyz123456")}}, false)
	r := model.Asked[0]
	if !strings.HasPrefix(r.Focus, "the build") || strings.Contains(r.Focus+r.System+r.User, "abcdefghijklmnop") || !strings.Contains(r.System, `between the quotation marks: "the build`) {
		t.Errorf("asked %+v", r)
	}
	if r.MaxTokens != 2600 {
		t.Errorf("asked for %d tokens", r.MaxTokens)
	}
	if h.focus != "" {
		t.Error("a focus stays with the strategy")
	}
}

// A policy may ask for a summary smaller than the usual minimum.
func TestHandoffBudgetIsAtMostThatOfThePolicy(t *testing.T) {
	t.Parallel()
	w := &askedTasks{}
	s := sessiontest.Strategy(t, Registry().With(w), "handoff", short(plan.Params{"protect_first_n": 1, "max_summary_tokens": 300}))
	m := sessiontest.Of(sessiontest.User("a"))
	for range 20 {
		m.Add(sessiontest.Says(strings.Repeat("words of a long answer ", 20)), sessiontest.User("more"))
	}
	m.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{s}}, true)
	if len(w.tasks) != 1 || w.tasks[0].Budget != 300 {
		t.Errorf("tasks %+v, want one with a budget of 300", w.tasks)
	}
}

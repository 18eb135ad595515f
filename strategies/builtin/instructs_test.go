package builtin

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
	"github.com/sessionstore/compactor/strategies/pipeline"
	"github.com/sessionstore/compactor/strategies/plan"
	"github.com/sessionstore/compactor/strategies/strategiestest/sessiontest"
)

// tasks is a writer that records its tasks.
type tasks struct{ asked []plan.Task }

func (w *tasks) Summarize(context.Context, plan.Request) (string, error) {
	return "", plan.ErrNoModel
}

func (w *tasks) Write(_ context.Context, t plan.Task) (string, error) {
	w.asked = append(w.asked, t)
	return "notes", nil
}

// Instructions stay and are shown to no model, whatever role they come in.
func TestInstructionsAreNotSummarized(t *testing.T) {
	t.Parallel()
	tests := map[string]plan.Params{
		"handoff":                short(plan.Params{"protect_first_n": 1, "protect_last_n": 1}),
		"summarize":              {"threshold": 4, "keep_last_n": 2},
		"preserve_user_messages": {},
	}
	for name, params := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &tasks{}
			r := Registry()
			r.Summarizer = w
			s, err := r.New(name, params)
			if err != nil {
				t.Fatal(err)
			}
			long := strings.Repeat("words of a long answer ", 20)
			m := sessiontest.Of(sessiontest.Sys("rules"), sessiontest.User("a"), sessiontest.Says(long), sessiontest.Text(chat.RoleDeveloper, "more rules"), sessiontest.User("b"), sessiontest.Says(long),
				sessiontest.Text(chat.RoleSystem, "new rules"), sessiontest.User("c"), sessiontest.Says(long), sessiontest.User("d"), sessiontest.Says("e"))
			m.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{s}}, true)
			if len(w.asked) != 1 {
				t.Fatalf("asked %d times", len(w.asked))
			}
			for _, m := range w.asked[0].Messages {
				if m.Role == chat.RoleSystem || m.Role == chat.RoleDeveloper {
					t.Errorf("asked to summarize %s %q", m.Role, m.Content.String())
				}
			}
			view := viewTexts(m)
			for _, want := range []string{"system: rules", "developer: more rules", "system: new rules"} {
				if !slices.Contains(view, want) {
					t.Errorf("not in the view: %s\n%q", want, view)
				}
			}
		})
	}
}

// A policy may ask for a summary smaller than the usual minimum.
func TestHandoffBudgetIsAtMostThatOfThePolicy(t *testing.T) {
	t.Parallel()
	w := &tasks{}
	r := Registry()
	r.Summarizer = w
	s, err := r.New("handoff", short(plan.Params{"protect_first_n": 1, "max_summary_tokens": 300}))
	if err != nil {
		t.Fatal(err)
	}
	m := sessiontest.Of(sessiontest.User("a"))
	for range 20 {
		m.Add(sessiontest.Says(strings.Repeat("words of a long answer ", 20)), sessiontest.User("more"))
	}
	m.Run(t, pipeline.Pipeline{Steps: []plan.Strategy{s}}, true)
	if len(w.asked) != 1 || w.asked[0].Budget != 300 {
		t.Errorf("tasks %+v, want one with a budget of 300", w.asked)
	}
}

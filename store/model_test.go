package store

import (
	"context"
	"errors"
	"testing"
)

func TestTheModelOfTheLatestAppendCountsAndItsThresholdsFollowAtOnce(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1000, 0.5, false, Counts{}}, Threshold{"gpt-4", 10, 0.25, false, Counts{}}, Threshold{"claude", 100, 0, false, Counts{}})
	k := Key{Session: "s"}
	state := func() string {
		return one[string](t, s, `SELECT concat_ws(' ', model, due_tokens, estimate_margin, due, (SELECT gen FROM compactor.outbox o WHERE o.sid = s.sid))
			FROM compactor.sessions s`)
	}
	appendAs := func(model string, msgs ...NewMessage) {
		t.Helper()
		must2(s.Append(t.Context(), k, model, msgs))(t)
	}
	m := talk("m", 5)
	for i, step := range []struct {
		do   func()
		want string
	}{
		{func() { appendAs("claude-x", counted(m[0], 50)) }, "claude-x 100 0 f"},
		{func() { appendAs("", m[0]) }, "claude-x 100 0 f"},
		{func() { appendAs("claude-x", counted(m[1], 5)) }, "claude-x 100 0 f"},
		{func() { appendAs("openai/gpt-4", counted(m[2], 5)) }, "openai/gpt-4 10 0.25 t 2"}, // by the model, and by the message
		{func() { appendAs("claude-x", m[0]) }, "openai/gpt-4 10 0.25 t 2"},                 // a message that is known, again
		{func() { appendAs("claude-x", counted(m[0], 50), counted(m[1], 5)) }, "openai/gpt-4 10 0.25 t 2"},
		{func() { must2(s.AppendOn(t.Context(), k, 0, "claude-x", m[:1]))(t) }, "openai/gpt-4 10 0.25 t 2"},
		{func() { appendAs("claude-y", m[0], counted(m[3], 5)) }, "claude-y 100 0 f 2"},
		{func() { must2(s.AppendOn(t.Context(), k, 0, "gpt-4", []NewMessage{counted(m[4], 5)}))(t) }, "gpt-4 10 0.25 t 4"},
		{func() { exec(t, s, `SELECT compactor.append(NULL, 's', '[]', NULL)`) }, "gpt-4 10 0.25 t 4"},
		{func() { exec(t, s, `SELECT compactor.append(NULL, 's', '[]', 'other')`) }, "other 1000 0.5 f 4"},
		{func() { noError(t, s.SetModel(t.Context(), k, "claude-z")) }, "claude-z 100 0 f 4"},
		{func() { noError(t, s.SetModel(t.Context(), k, "gpt-4")) }, "gpt-4 10 0.25 t 5"},
		{func() { noError(t, s.SetModel(t.Context(), k, "gpt-4")) }, "gpt-4 10 0.25 t 5"},
	} {
		if step.do(); state() != step.want {
			t.Errorf("step %d: %s, want %s", i, state(), step.want)
		}
	}
	wantError(t, s.SetModel(t.Context(), Key{Session: "unknown"}, "gpt-4"), ErrNotFound, "an unknown session")
	wantError(t, s.SetModel(t.Context(), k, ""), ErrInvalid, "no model")
	// A refused append leaves the model.
	if _, _, err := s.Append(t.Context(), k, "claude-x", []NewMessage{user("m1", "edited")}); !errors.Is(err, ErrConflict) || state() != "gpt-4 10 0.25 t 5" {
		t.Errorf("a refused append: %v, %s", err, state())
	}
	wantConsistent(t, s)
}

func TestAnImportWithAnotherModelIsQuiet(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1000, 0, false, Counts{}}, Threshold{"gpt-4", 10, 0, false, Counts{}})
	k := Key{Session: "s"}
	m := counted(user("a", "x"), 50)
	add(t, s, k, m)
	must2(s.Import(t.Context(), k, "gpt-4", []NewMessage{m, user("b", "y")}))(t)
	if !session(t, s, k).Due || len(gens(t, s)) > 0 {
		t.Errorf("due %v, outbox %v; want due without a notification", session(t, s, k).Due, gens(t, s))
	}
}

// The thresholds that a run leaves are those of the model that it planned for.
func TestARunDoesNotUndoAChangeOfTheModel(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 1000, 0.5, false, Counts{}}, Threshold{"gpt-4", 10, 0.25, false, Counts{}})
	end := map[string]func(c *Claim, state PostRunState) error{
		"applied": func(c *Claim, state PostRunState) error {
			ch, err := c.change(s, exclude(span(1, 1)))
			ch.PostRunState = state
			_, aerr := s.Worker.Apply(context.Background(), c.Run, c.Fence, ch)
			return errors.Join(err, aerr)
		},
		"skipped": func(c *Claim, state PostRunState) error {
			return s.Worker.Finish(context.Background(), c, StatusSkipped, Ledger{Outcome: "ineffective"}, &state)
		},
	}
	for name, end := range end {
		for _, change := range []bool{false, true} {
			k := Key{Tenant: name, Session: map[bool]string{false: "same", true: "changed"}[change]}
			add(t, s, k, talk("m", 3)...)
			c := start(t, s, k)
			want := "777 0.125"
			if change {
				noError(t, s.SetModel(t.Context(), k, "gpt-4"))
				want = "10 0.25"
			}
			noError(t, end(c, PostRunState{Model: &c.Session.Model, DueTokens: 777, EstimateMargin: 0.125, PolicyHash: "old"}))
			got := one[string](t, s, `SELECT due_tokens || ' ' || estimate_margin FROM compactor.sessions WHERE tenant = $1 AND id = $2`, k.tenant(), k.Session)
			equal(t, want, got, "%s, %s model: thresholds", name, k.Session)
		}
	}
	wantConsistent(t, s)
}

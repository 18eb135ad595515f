package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sessionstore/compactor/strategies/chat"
)

// thresholds saves a policy that makes sessions due above tokens.
func thresholds(t testing.TB, s *Store, ts ...Threshold) {
	t.Helper()
	noError(t, s.Scheduler.SavePolicy(t.Context(), fmt.Sprint(ts), []byte(`{}`), ts))
}

func session(t fataler, s *Store, k Key) SessionRow {
	t.Helper()
	rows := sessions(t, s, SessionFilter{Limit: 1 << 20})
	for _, row := range rows {
		if row.Session == k.Session && row.Tenant == k.tenant() {
			return row
		}
	}
	t.Fatalf("no session %s", k)
	return SessionRow{}
}

// gens returns the outbox rows as "session generation".
func gens(t fataler, s *Store) []string {
	t.Helper()
	return list[string](t, s, `SELECT id || ' ' || gen FROM compactor.outbox JOIN compactor.sessions USING (sid) ORDER BY id`)
}

func TestNewSessionsStartWithTheThresholdsOfTheLongestPrefixOfTheirModel(t *testing.T) {
	s := fresh(t)
	add(t, s, Key{Session: "before any policy"}, talk("m", 1)...)
	thresholds(t, s, Threshold{"", 1000, 0.5, false, Counts{}}, Threshold{"gpt-", 2000, 0.25, false, Counts{}}, Threshold{"gpt-4", 3000, 0, false, Counts{}})
	for model, want := range map[string]string{
		"": "1000 0.5", "claude": "1000 0.5", "gpt-3.5": "2000 0.25", "gpt-4": "3000 0", "gpt-4o": "3000 0", "a_gpt-4": "1000 0.5",
	} {
		must2(s.Append(t.Context(), Key{Session: model + "!"}, model, talk("m", 1)))(t)
		if got := one[string](t, s, `SELECT due_tokens || ' ' || estimate_margin FROM compactor.sessions WHERE id = $1`, model+"!"); got != want {
			t.Errorf("model %q starts with %s, want %s", model, got, want)
		}
	}
	if session(t, s, Key{Session: "before any policy"}).Due {
		t.Error("a session without a threshold is due")
	}
}

func TestASessionIsDueExactlyAboveItsThreshold(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 100, 0.1, false, Counts{}})
	k := Key{Session: "counted"}
	add(t, s, k, counted(user("a", "x"), 60), counted(assistant("b", "y"), 40))
	if session(t, s, k).Due || len(gens(t, s)) > 0 {
		t.Error("due at the threshold, want due above it")
	}
	add(t, s, k, counted(user("c", "x"), 1))
	if !session(t, s, k).Due {
		t.Error("not due above the threshold")
	}
	// Estimates count with the margin: 90 estimated tokens are 99, 91 are 100.1.
	for tokens, want := range map[int]bool{90: false, 91: true} {
		k := Key{Session: fmt.Sprint("estimated ", tokens)}
		body := len(`{"role":"user","content":""}`)
		content := make([]byte, 3*tokens-body)
		for i := range content {
			content[i] = 'x'
		}
		add(t, s, k, user("", string(content)))
		row := session(t, s, k)
		if row.LiveTokens != chat.Tokens(tokens) || row.Due != want {
			t.Errorf("%d estimated tokens: counted as %d, due %v, want %v", tokens, row.LiveTokens, row.Due, want)
		}
	}
	wantConsistent(t, s)
}

func TestTheOutboxHasOneRowForEachDueSession(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 10, 0, false, Counts{}})
	a, b, c := Key{Session: "a"}, Key{Session: "b"}, Key{Session: "c"}
	add(t, s, a, counted(user("1", "x"), 11), counted(user("2", "x"), 11))
	add(t, s, b, counted(user("1", "x"), 5))
	add(t, s, a, counted(user("3", "x"), 1))
	add(t, s, a, counted(user("3", "x"), 1)) // nothing new
	add(t, s, b, counted(user("2", "x"), 6))
	must2(s.Import(t.Context(), c, "", []NewMessage{counted(user("1", "x"), 100)}))(t)
	equal(t, []string{"a 2", "b 1"}, gens(t, s), "outbox")
	if !session(t, s, c).Due {
		t.Error("an imported session is not due")
	}
	must2(s.Import(t.Context(), b, "", []NewMessage{counted(user("3", "x"), 100)}))(t)
	add(t, s, c, counted(user("2", "x"), 1))
	equal(t, []string{"a 2", "b 1", "c 1"}, gens(t, s), "outbox after another import and an append")
	if _, _, err := s.Import(t.Context(), c, "", []NewMessage{user("1", "other")}); !errors.Is(err, ErrConflict) {
		t.Errorf("import of a known id with other content: %v, want a conflict", err)
	}
}

func TestReportedUsageDecidesWhetherASessionIsDue(t *testing.T) {
	s := fresh(t)
	thresholds(t, s, Threshold{"", 100, 0, false, Counts{}})
	k := Key{Session: "s"}
	add(t, s, k, counted(user("1", "x"), 50), counted(assistant("2", "x"), 60), counted(user("3", "x"), 10))
	report := func(tokens chat.Tokens, seq chat.Seq, taken, due bool, context chat.Tokens) {
		t.Helper()
		got := must(s.ReportUsage(t.Context(), k, tokens, seq))(t)
		if row := session(t, s, k); got != taken || row.Due != due || row.ContextTokens != context {
			t.Errorf("report of %d up to %d: taken %v, due %v, context %d; want %v, %v, %d", tokens, seq, got, row.Due, row.ContextTokens, taken, due, context)
		}
	}
	report(80, 0, true, false, 80)
	report(80, 2, true, false, 90)
	report(95, 2, true, true, 105)
	add(t, s, k, counted(user("4", "x"), 7))
	report(20, 4, true, false, 20)
	add(t, s, k, counted(user("5", "x"), 80))
	if row := session(t, s, k); row.Due || row.ContextTokens != 100 {
		t.Errorf("due %v with %d in context, want not due with 100", row.Due, row.ContextTokens)
	}
	add(t, s, k, counted(user("6", "x"), 1))
	if !session(t, s, k).Due {
		t.Error("not due above the threshold by what was appended after the report")
	}
	apply(t, s, k, exclude(span(1, 2))) // 110 tokens less of 101
	if row := session(t, s, k); row.ContextTokens != 0 {
		t.Errorf("%d tokens in context after a run, want 0", row.ContextTokens)
	}
	report(500, 5, false, false, 0)
	report(500, 6, false, false, 0) // sent before the run, answered after it
	add(t, s, k, counted(user("7", "x"), 2))
	report(60, 7, true, false, 60)
	for _, tokens := range []chat.Tokens{-1} {
		wantError(t, second(s.ReportUsage(t.Context(), k, tokens, 0)), ErrInvalid, "report of %d", tokens)
	}
	wantError(t, second(s.ReportUsage(t.Context(), Key{Session: "unknown"}, 1, 0)), ErrNotFound, "report for an unknown session")
}

func TestTheContextOfEstimatedMessagesHasTheMarginOfThePolicy(t *testing.T) {
	s, k := freshSession(t)
	estimated := counted(text("", chat.RoleUser, "long"), 1000)
	estimated.Counter = chat.CounterChars4
	thresholds(t, s, Threshold{DueTokens: 1175, EstimateMargin: 0.125})
	for i, m := range []NewMessage{estimated, counted(text("", chat.RoleAssistant, "short"), 50), counted(text("", chat.RoleUser, "more"), 1)} {
		add(t, s, k, m)
		want := []chat.Tokens{1125, 1175, 1176}[i]
		if row := session(t, s, k); row.ContextTokens != want || row.Due != (want > 1175) || row.LiveTokens != want-125 {
			t.Errorf("due %t with %d in context and %d in view, want %d in context", row.Due, row.ContextTokens, row.LiveTokens, want)
		}
	}
}

func TestPoliciesWithoutThresholdsAreRefused(t *testing.T) {
	s := fresh(t)
	wantError(t, s.Scheduler.SavePolicy(t.Context(), "hash", []byte(`{}`), nil), ErrInvalid, "save")
	wantError(t, second(s.Operator.ChangePolicies(t.Context(), nil, "ann")), ErrInvalid, "change")
}

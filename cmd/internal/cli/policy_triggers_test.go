package cli

import (
	"strings"
	"testing"

	"github.com/sessionstore/compactor/cmd/internal/reports"
	"github.com/sessionstore/compactor/cmd/internal/term"
	"github.com/sessionstore/compactor/store"
)

func TestTriggersReachSessionsAndAreExplained(t *testing.T) {
	t.Parallel()
	db, _ := fleet(t)
	st := openStore(t, db)
	saveDefault(t, st)
	path := file(t, "events.yaml", `name: events
match: {agent: support}
window_tokens: 100000
triggers:
  - {name: end, when: closed && messages > 5}
  - {name: talk, when: messages_since_run >= 50}
guards: {max_per_hour: 3}
`)
	invoke(t, db, "policy", "apply", path, "--yes").want(t, 0, "triggers", `"when":"closed && messages > 5"`, "guards.max_per_hour", "none → 3")
	follow(t, st)
	due := func(session string) bool {
		t.Helper()
		row, err := st.Session(t.Context(), store.Key{Session: session})
		if err != nil {
			t.Fatal(err)
		}
		return row.Due
	}
	if due("help-2") {
		t.Error("due although nothing was reported")
	}
	invoke(t, db, "sessions").want(t, 0, "help-2")
	rows := decode[struct{ Sessions []store.SessionRow }](t, invoke(t, db, "sessions", "--json").want(t, 0)).Sessions
	for _, r := range rows {
		if (r.DueTokens == 0) != strings.HasPrefix(r.Session, "help-") {
			t.Errorf("%s: a start of %d", r.Session, r.DueTokens)
		}
	}
	yes := true
	if err := st.ReportState(t.Context(), store.Key{Session: "help-2"}, store.State{Closed: &yes}); err != nil {
		t.Fatal(err)
	}
	if !due("help-2") {
		t.Error("not due although it was reported as closed")
	}
	invoke(t, db, "policy", "explain", "help-2").want(t, 0, "yes: a trigger holds", "end, yes: closed && messages > 5", "messages 37, closed true", "talk, no: messages_since_run >= 50")
	x := decode[reports.Explanation](t, invoke(t, db, "policy", "explain", "help-1", "--json").want(t, 0))
	if x.Due || len(x.Triggers) != 2 || x.Triggers[0].Holds || x.Triggers[1].Values[0] == "" {
		t.Errorf("%+v", x)
	}
	invoke(t, db, "policy", "show", "events", "--model", "gpt-4o").want(t, 0, "trigger end: closed && messages > 5", "guard: at most 3 automatic runs an hour")
	invoke(t, db, "policy", "apply", file(t, "bad.yaml", "name: x\ntriggers: [{name: a, when: turn_completed}]"), "--yes").want(t, exitUsage, "bad.yaml:2: triggers[0].when")
}

func TestTheVocabularyIsGolden(t *testing.T) {
	t.Parallel()
	out := invoke(t, nil, "policy", "vocabulary").want(t, 0).stdout
	for line := range strings.Lines(out) {
		if term.Width(strings.TrimRight(line, "\n")) > 80 {
			t.Errorf("more than 80 columns, by the longest name of a word or the longest meaning: %s", line)
		}
	}
	golden(t, "policy_vocabulary", out)
}

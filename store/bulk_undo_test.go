package store

import (
	"testing"
	"time"
)

// undoAll calls NextBulkUndo until none is left and returns the result of each run.
func undoAll(t *testing.T, s *Store, id int64) map[RunID]string {
	t.Helper()
	out := map[RunID]string{}
	for {
		step := must(s.Operator.NextBulkUndo(t.Context(), id))(t)
		if step.Run == 0 {
			equal(t, "done", step.Code, "the bulk undo is at its end")
			return out
		}
		out[step.Run] = step.Code
	}
}

func TestBulkUndoTakesBackWhatMatchesAndNothingElse(t *testing.T) {
	s := fresh(t)
	key := func(tenant, session string) Key { return Key{Tenant: tenant, Session: session} }
	made := map[Key][]RunID{}
	for _, k := range []Key{key("ours", "a"), key("ours", "between"), key("ours", "b"), key("theirs", "a")} {
		add(t, s, k, talk("m", 10)...)
		made[k] = append(made[k], apply(t, s, k, summarize(span(1, 4), "first")))
	}
	between := made[key("ours", "between")][0]
	exec(t, s, `UPDATE compactor.runs SET policy = 'support', policy_version = 2, steps = '[{"strategy": "handoff"}]' WHERE id <> $1`, between)
	// A later run of a session that matches nothing.
	made[key("ours", "b")] = append(made[key("ours", "b")], apply(t, s, key("ours", "b"), exclude(span(5, 6))))

	for name, tt := range map[string]struct {
		tenant string
		match  RunMatch
		want   BulkUndoPreview
	}{
		"a policy of a tenant": {"ours", RunMatch{Policy: "support"}, BulkUndoPreview{2, 2, 0, 1}},
		"of all":               {"", RunMatch{Policy: "support", Version: 2}, BulkUndoPreview{3, 3, 0, 1}},
		"another version":      {"", RunMatch{Policy: "support", Version: 1}, BulkUndoPreview{}},
		"a strategy":           {"theirs", RunMatch{Strategy: "handoff"}, BulkUndoPreview{1, 1, 0, 0}},
		"a trigger":            {"", RunMatch{Trigger: TriggerNightly}, BulkUndoPreview{}},
		"since":                {"", RunMatch{Since: time.Now().Add(time.Hour)}, BulkUndoPreview{}},
		"until":                {"", RunMatch{Until: time.Now().Add(time.Hour), Trigger: TriggerOperator}, BulkUndoPreview{5, 4, 0, 0}},
		"a model":              {"", RunMatch{Model: "gpt"}, BulkUndoPreview{}},
		"a writer":             {"", RunMatch{Writer: "gpt"}, BulkUndoPreview{}},
	} {
		got := must(s.Operator.PreviewBulkUndo(t.Context(), tt.tenant, tt.match))(t)
		got.Tokens = 0
		equal(t, tt.want, got, "%s", name)
	}

	id := must(s.Operator.StartBulkUndo(t.Context(), "ours", RunMatch{Policy: "support"}, false, "lost the ids", "ann"))(t)
	// Runs that match later, new or old, are not part of it.
	later := key("ours", "c")
	add(t, s, later, talk("m", 10)...)
	apply(t, s, later, summarize(span(1, 4), "later"))
	exec(t, s, `UPDATE compactor.runs SET policy = 'support' WHERE id IN (SELECT max(id) FROM compactor.runs UNION SELECT $1)`, between)

	a, b := made[key("ours", "a")][0], made[key("ours", "b")]
	want := map[RunID]string{a: "undone", b[0]: "later_runs"}
	equal(t, want, undoAll(t, s, id), "runs")
	row := must(s.Operator.Bulk(t.Context(), BulkUndo, id))(t)
	if row.Status != "done" || row.EndedAt == nil || row.Matched != 2 || row.Done != 1 || row.Refused != 1 || row.Note != "lost the ids" || row.Match.Policy != "support" {
		t.Errorf("%+v", row)
	}
	left := must(s.Operator.BulkRefusals(t.Context(), id, 0, 10))(t)
	equal(t, []BulkRefusal{{b[0], "b", "ours", "later_runs"}}, left, "refusals")
	if !must(s.Run(t.Context(), made[key("theirs", "a")][0]))(t).InForce || !must(s.Run(t.Context(), b[1]))(t).InForce {
		t.Error("a run that does not match was undone")
	}
	equal(t, "ann (bulk undo 1)", one[string](t, s, `SELECT requested_by FROM compactor.runs WHERE undoes = $1`, a), "the undo is by")

	again := must(s.Operator.StartBulkUndo(t.Context(), "ours", RunMatch{Strategy: "handoff"}, true, "", "ann"))(t)
	equal(t, map[RunID]string{b[0]: "undone"}, undoAll(t, s, again), "with cascade")
	wantConsistent(t, s)
}

// Each run is a transaction of its own, so any process goes on with it. A session that
// another transaction holds is left, and a cancelled bulk undo ends.
func TestABulkUndoGoesOnWhereItWas(t *testing.T) {
	s := fresh(t)
	var runs []RunID
	for _, id := range []string{"a", "b", "c", "d"} {
		k := Key{Session: id}
		add(t, s, k, talk("m", 10)...)
		runs = append(runs, apply(t, s, k, summarize(span(1, 4), "first")))
	}
	id := must(s.Operator.StartBulkUndo(t.Context(), "", RunMatch{Trigger: TriggerOperator}, false, "", "ann"))(t)
	if step := must(s.Operator.NextBulkUndo(t.Context(), id))(t); step != (BulkUndoStep{runs[3], "undone"}) {
		t.Errorf("%+v", step)
	}

	tx := begin(t, s, `SELECT FROM compactor.sessions WHERE id = 'c' FOR UPDATE`)
	if step := must(s.Operator.NextBulkUndo(t.Context(), id))(t); step != (BulkUndoStep{runs[2], "locked"}) {
		t.Errorf("%+v", step)
	}
	noError(t, tx.Rollback(t.Context()))

	// The next run is undone by another operator meanwhile.
	must(s.Undo(t.Context(), Key{Session: "b"}, runs[1], false, "bob"))(t)
	if step := must(s.Operator.NextBulkUndo(t.Context(), id))(t); step != (BulkUndoStep{runs[0], "undone"}) {
		t.Errorf("%+v", step)
	}
	equal(t, 0, len(undoAll(t, s, id)), "runs after the last")
	wantError(t, s.Operator.CancelBulk(t.Context(), BulkUndo, id, "ada"), ErrNotApplicable, "cancelling what is done")
	open := must(s.Operator.StartBulkUndo(t.Context(), "", RunMatch{Trigger: TriggerOperator}, false, "", "ann"))(t)
	noError(t, s.Operator.CancelBulk(t.Context(), BulkUndo, open, "ada"))
	if step := must(s.Operator.NextBulkUndo(t.Context(), open))(t); step != (BulkUndoStep{0, "cancelled"}) {
		t.Errorf("%+v", step)
	}
	wantError(t, second(s.Operator.NextBulkUndo(t.Context(), 4711)), ErrNotFound, "one that does not exist")
	wantConsistent(t, s)
}

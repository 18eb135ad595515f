package store

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// compactAll takes pages of a bulk recompaction until there are no more, and returns the
// sessions of its runs, in their order.
func compactAll(t *testing.T, s *Store, id int64, limit int) (sessions []string) {
	t.Helper()
	for {
		page, more := must2(s.Scheduler.BulkCompactPage(t.Context(), id, limit, time.Minute))(t)
		sessions = append(sessions, sessionsOf(t, s, page)...)
		if !more {
			return sessions
		}
	}
}

func TestABulkRecompactionQueuesWhatMatchesOnce(t *testing.T) {
	s := fresh(t)
	for _, x := range []struct{ tenant, session, model string }{
		{"ours", "a", "gpt-4o"}, {"ours", "b", "gpt-4o"}, {"ours", "c", "claude-x"}, {"ours", "d", "gpt-4o"}, {"theirs", "e", "gpt-4o"}, {"ours", "never", "gpt-4o"},
	} {
		k := Key{Tenant: x.tenant, Session: x.session}
		must2(s.Append(t.Context(), k, x.model, talk("m", 10)))(t)
		if x.session != "never" {
			apply(t, s, k, summarize(span(1, 4), "first"))
		}
	}
	exec(t, s, `UPDATE compactor.runs SET policy = 'support', policy_version = 2, steps = '[{"strategy": "handoff"}]'`)
	// The last compaction of b is another one; that of d was undone.
	apply(t, s, Key{Tenant: "ours", Session: "b"}, exclude(span(5, 6)))
	must(s.Undo(t.Context(), Key{Tenant: "ours", Session: "d"}, apply(t, s, Key{Tenant: "ours", Session: "d"}, exclude(span(5, 6))), false, ""))(t)
	exec(t, s, `UPDATE compactor.runs SET options = '{"dry_run": true}', outcome = 'would_grow', status = 'skipped', in_force = false WHERE sid = 4 AND kind = 'compact' AND policy IS NULL`)

	for name, tt := range map[string]struct {
		tenant   string
		match    RunMatch
		sessions int64
	}{
		"a policy of a tenant": {"ours", RunMatch{Policy: "support", Version: 2}, 3},
		"of all":               {"", RunMatch{Policy: "support"}, 4},
		"another version":      {"", RunMatch{Policy: "support", Version: 1}, 0},
		"a strategy":           {"theirs", RunMatch{Strategy: "handoff"}, 1},
		"a model":              {"", RunMatch{Model: "claude"}, 1},
		"an outcome":           {"", RunMatch{Outcome: "applied", Policy: "default"}, 1},
		"since":                {"", RunMatch{Since: time.Now().Add(time.Hour)}, 0},
		"until":                {"", RunMatch{Until: time.Now().Add(time.Hour)}, 5},
	} {
		if got := must(s.Operator.PreviewBulkCompact(t.Context(), tt.tenant, tt.match))(t); got.Sessions != tt.sessions || (got.Tokens > 0) != (got.Sessions > 0) {
			t.Errorf("%s: %+v, want %d sessions", name, got, tt.sessions)
		}
	}

	match := RunMatch{Policy: "support"}
	id := must(s.Operator.StartBulkCompact(t.Context(), "ours", match, Options{From: "view"}, 0, "new prompt", "ann"))(t)
	request(t, s, Key{Tenant: "ours", Session: "c"}, TriggerOperator)
	equal(t, []int64{id}, must(s.Scheduler.OpenBulkCompacts(t.Context()))(t), "open")
	equal(t, []string{"d", "a"}, compactAll(t, s, id, 1), "sessions")
	row := must(s.Operator.Bulk(t.Context(), BulkCompact, id))(t)
	if row.Status != "done" || row.EndedAt == nil || row.Matched != 3 || row.Done != 2 || row.Refused != 1 || row.Waiting != 2 || row.Settled() ||
		row.Note != "new prompt" || row.Match != match || row.Options.From != "view" {
		t.Errorf("%+v", row)
	}
	if left := must(s.Operator.BulkRefusals(t.Context(), id, 0, 9))(t); len(left) != 1 || left[0].Session != "c" || left[0].Code != "under_way" {
		t.Errorf("left out: %+v", left)
	}
	runs := must(s.Operator.Runs(t.Context(), RunFilter{Key: Key{Tenant: "ours", Session: "a"}, Status: "queued", Limit: 9}))(t)
	if len(runs) != 1 || runs[0].Trigger != TriggerBulk || runs[0].RequestedBy != "ann" || string(runs[0].Options) != `{"from": "view"}` {
		t.Errorf("%+v", runs)
	}
	if got := must(s.Operator.PreviewBulkCompact(t.Context(), "missing", match))(t); got != (BulkCompactPreview{}) {
		t.Errorf("%+v", got)
	}
}

func TestABulkRecompactionObeysPausesAndGoesOnWhereItWasCancelled(t *testing.T) {
	s := fresh(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		k := Key{Tenant: "ours", Session: id}
		must2(s.Append(t.Context(), k, map[string]string{"c": "claude-x"}[id], talk("m", 10)))(t)
		apply(t, s, k, summarize(span(1, 4), "first"))
	}
	match := RunMatch{Trigger: TriggerOperator}
	id := must(s.Operator.StartBulkCompact(t.Context(), "ours", match, Options{}, 0, "", "ann"))(t)
	pause(t, s, "ours", "")
	if page, more := must2(s.Scheduler.BulkCompactPage(t.Context(), id, 9, time.Minute))(t); len(page) > 0 || more {
		t.Errorf("queued %v while all is paused, more %v", page, more)
	}
	resume(t, s, "ours", "")
	pause(t, s, "", "claude")
	first, _ := must2(s.Scheduler.BulkCompactPage(t.Context(), id, 2, time.Minute))(t)
	equal(t, []string{"d"}, sessionsOf(t, s, first), "queued")
	// A run that is queued already waits for the end of a pause, and holds no event up.
	pause(t, s, "ours", "")
	exec(t, s, `UPDATE compactor.runs SET deliver_at = now() WHERE trigger = 'bulk'`)
	none(t, must(s.Scheduler.Deliver(t.Context(), 9, 9, time.Minute))(t), "delivered while they are paused")
	resume(t, s, "ours", "")
	resume(t, s, "", "claude")
	if got := must(s.Scheduler.Deliver(t.Context(), 9, 9, time.Minute))(t); len(got) != 1 || got[0].Trigger != TriggerBulk {
		t.Errorf("delivered %v", got)
	}
	thresholds(t, s, Threshold{"", 1, 0, false, Counts{}})
	refresh(t, s, 9)
	add(t, s, Key{Tenant: "ours", Session: "d"}, talk("n", 2)...)
	if got := sessionsOf(t, s, must(s.Scheduler.Relay(t.Context(), 0, 0, 9, time.Minute))(t)); !slices.Equal(got, []string{"d"}) {
		t.Errorf("relayed %v while a run of the recompaction waits", got)
	}

	noError(t, s.Operator.CancelBulk(t.Context(), BulkCompact, id, "ada"))
	if row := must(s.Run(t.Context(), first[0].Run))(t); row.Outcome != "cancelled" {
		t.Errorf("%+v", row)
	}
	if _, more := must2(s.Scheduler.BulkCompactPage(t.Context(), id, 9, time.Minute))(t); more {
		t.Error("a cancelled one goes on")
	}
	noError(t, s.Operator.ResumeBulkCompact(t.Context(), id, "ada"))
	equal(t, []string{"a", "b"}, compactAll(t, s, id, 9), "queued after that")
	wantError(t, s.Operator.ResumeBulkCompact(t.Context(), id, "ada"), ErrNotApplicable, "resuming what is done")
	wantError(t, s.Operator.CancelBulk(t.Context(), BulkUndo, id, "ada"), ErrNotApplicable, "cancelling it as an undo")
	wantError(t, second(s.Operator.Bulk(t.Context(), BulkUndo, id)), ErrNotFound, "showing it as an undo")
	if _, err := s.Operator.StartBulkCompact(t.Context(), "", match, Options{From: "there"}, 0, "", ""); !errors.Is(err, ErrInvalid) {
		t.Errorf("options that are none: %v", err)
	}
	wantConsistent(t, s)
}

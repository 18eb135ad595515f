package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/llm/llmtest"
)

// Beyond a limit automatic and requested runs ask no model, and say so. Operators may.
func TestNoModelIsAskedBeyondALimitOfSpending(t *testing.T) {
	t.Parallel()
	f, server := modelled(t, database(t), modelPolicy())
	calls := int64(1)
	f.must(f.store.Operator.LimitSpending(t.Context(), store.SpendingLimit{CallsPerHour: &calls}))
	if row := f.run(f.event()); row.Outcome != OutcomeApplied || server.Calls() != 1 {
		t.Fatalf("below the limit: %s after %d requests", row.Outcome, server.Calls())
	}
	f.talk("other", 20)
	automatic := f.run(f.sweep()[0])
	requested := must(f.store.Request(t.Context(), key("other"), store.TriggerApplication, "test", store.Options{From: "view"}))(t)
	for name, row := range map[string]store.RunRow{"automatic": automatic, "requested": f.run(requested)} {
		if row.Outcome != OutcomeNoSummary || !strings.Contains(string(row.Steps), `"no_summary": "spending_limit"`) {
			t.Errorf("%s: %s %s", name, row.Outcome, row.Steps)
		}
	}
	if server.Calls() != 1 {
		t.Errorf("%d requests, want those below the limit", server.Calls())
	}
	asked := f.operator("other", store.Options{From: "view"})
	// As nothing was paid, the session does not wait longer each time.
	if claim, err := f.store.Worker.Load(t.Context(), asked); err != nil || claim.Session.IneffectiveRuns != 0 {
		t.Errorf("%d ineffective runs, %v", claim.Session.IneffectiveRuns, err)
	}
	if row := f.run(asked); row.Outcome != OutcomeApplied || server.Calls() != 2 {
		t.Errorf("an operator's run ended %s after %d requests", row.Outcome, server.Calls())
	}
}

// A session beyond a limit is shown as such for as long as the limit is reached, whatever comes to it in its cooldown, and is
// tried again, without a new message, when both are over.
func TestASessionBeyondALimitOfSpendingIsTriedAgain(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	conn := must(pgx.Connect(t.Context(), dsn))(t)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	fixture, server := modelled(t, dsn, modelPolicy())
	f := &clocked{fixture: fixture, conn: conn}
	must(f.store.Scheduler.Lead(t.Context(), "scheduler", "a", time.Hour))(t)
	f.exec(`SELECT compactor.limit_spending('default', NULL, NULL, 0)`)
	held := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, h := range must(f.store.Operator.HeldBack(t.Context(), ""))(t) {
			got = append(got, h.Reason)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: held back by (-want +got):\n%s", when, diff)
		}
	}
	none := func(when string) {
		t.Helper()
		if found := f.forgotten(); len(found) > 0 {
			t.Fatalf("%s: the reconciler queued %v", when, found)
		}
	}
	if row := f.run(f.event()); row.Outcome != OutcomeNoSummary {
		t.Fatalf("%s %s", row.Outcome, row.Steps)
	}
	held("in its cooldown", CodeSpendingLimit)
	if ids := f.sweep(); len(ids) > 0 {
		t.Errorf("a sweep queued %v", ids)
	}
	// An event of which the scheduler had read that the session is free.
	f.exec(`INSERT INTO compactor.runs (sid, trigger) SELECT sid, 'event' FROM compactor.sessions`)
	late := must(f.store.Operator.Runs(t.Context(), store.RunFilter{Limit: 1}))(t)[0].ID
	if row := f.run(late); row.Outcome != OutcomeCooldown {
		t.Fatalf("%s", row.Outcome)
	}
	held("after a run that came too soon", CodeSpendingLimit)
	none("in the cooldown")

	f.pass(time.Hour)
	found := f.forgotten()
	if len(found) != 1 {
		t.Fatalf("after the cooldown the reconciler queued %v", found)
	}
	if row := f.run(found[0].Run); row.Outcome != OutcomeNoSummary || server.Calls() != 0 {
		t.Fatalf("%s after %d requests", row.Outcome, server.Calls())
	}
	f.pass(time.Hour)
	held("after the cooldown", CodeSpendingLimit)
	none("at the limit")

	f.exec(`SELECT compactor.limit_spending('default', NULL, NULL, NULL)`)
	held("without the limit")
	if found = f.forgotten(); len(found) != 1 {
		t.Fatalf("without the limit the reconciler queued %v", found)
	}
	if row := f.run(found[0].Run); row.Outcome != OutcomeApplied || server.Calls() != 1 {
		t.Errorf("%s after %d requests", row.Outcome, server.Calls())
	}
	held("at last")
}

// Answers without usage count all the same: by the own counter, and marked as estimates.
func TestALimitOfCostHoldsWithoutReportedUsage(t *testing.T) {
	t.Parallel()
	f, server := modelled(t, database(t), modelPolicy(), llmtest.Step{Behaviour: llmtest.NoUsage, Times: 99})
	micros := int64(1000)
	f.must(f.store.Operator.LimitSpending(t.Context(), store.SpendingLimit{MicrosPerDay: &micros}))
	id := f.event()
	row, calls := f.run(id), must(f.store.Reader.SummaryCalls(t.Context(), id))(t)
	if row.Outcome != OutcomeApplied || row.InputTokens == 0 || row.OutputTokens == 0 || row.CostMicros < micros || calls[0].Estimated != 1 {
		t.Errorf("%s, %d tokens in, %d out, %d spent, calls %+v", row.Outcome, row.InputTokens, row.OutputTokens, row.CostMicros, calls)
	}
	if l := must(f.store.Operator.Spending(t.Context(), ""))(t)[0]; !l.Reached() || l.Estimated != 1 {
		t.Errorf("%+v", l)
	}
	if a := must(f.store.Operator.Activity(t.Context(), "", time.Hour))(t).Models; len(a) != 1 || a[0].Estimated != 1 {
		t.Errorf("%+v", a)
	}
	f.talk("other", 20)
	if row := f.run(f.sweep()[0]); row.Outcome != OutcomeNoSummary || row.ErrorCode != CodeSpendingLimit || server.Calls() != 1 {
		t.Errorf("beyond the limit: %s %s after %d requests", row.Outcome, row.ErrorCode, server.Calls())
	}
}

// What a server answered is in the log line, with the run, and on the call.
func TestWhatAServerAnsweredIsLoggedWithTheRun(t *testing.T) {
	t.Parallel()
	f, _ := modelled(t, database(t), modelPolicy(), llmtest.Step{Behaviour: llmtest.ModelNotFound})
	var log bytes.Buffer
	f.w.logger = slog.New(slog.NewJSONHandler(&log, nil))
	id := f.event()
	f.run(id)
	var line struct {
		Msg, Code, Server, Tenant string
		Run                       store.RunID `json:"run_id"`
		Session                   string      `json:"session_id"`
		Status                    int
	}
	lines := json.NewDecoder(&log)
	f.must(lines.Decode(&line))
	var end map[string]any
	if err := lines.Decode(&end); err != nil || end["msg"] != "run ended" || end["outcome"] != OutcomeNoSummary || end["model_failed"] != "model_not_found" {
		t.Errorf("%v, %v", end, err)
	}
	const said = `model_not_found, invalid_request_error: The model "m" does not exist or you do not have access to it.`
	if line.Msg != "model call failed" || line.Code != "model_not_found" || line.Status != 404 || line.Server != said || line.Run != id || line.Session != "s" || line.Tenant != "default" {
		t.Errorf("%+v", line)
	}
	if c := must(f.store.Reader.SummaryCalls(t.Context(), id))(t)[0]; c.ServerError != said || c.HTTPStatus != 404 || c.Code != "model_not_found" {
		t.Errorf("%+v", c)
	}
}

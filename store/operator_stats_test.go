package store

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func TestActivityIsWhatEndedLately(t *testing.T) {
	s := fresh(t)
	add(t, s, Key{Session: "s"}, counted(user("m1", "x"), 1))
	run := func(trigger, status, outcome string, ago time.Duration, before, after int64, took time.Duration) RunID {
		return one[RunID](t, s, `
			INSERT INTO compactor.runs (sid, trigger, status, outcome, ended_at, tokens_before, tokens_after, total_us, revision, live_before, live_after)
			SELECT sid, $1, $2, $3, now() - $4::interval, $5, $6, $7, 1, '{}', '{}' FROM compactor.sessions RETURNING id`,
			trigger, status, outcome, ago, before, after, took.Microseconds())
	}
	call := func(run RunID, key, model, state string, ago time.Duration, input, cost int64) {
		exec(t, s, `
			INSERT INTO compactor.summary_calls (key, sid, run, fence, state, code, prompt_hash, model, input_tokens, output_tokens, cost_micros, ended_at)
			SELECT $1, sid, $2, 1, $4, 'code', '', nullif($3, ''), $5, 7, $6, now() - $7::interval FROM compactor.sessions`, key, run, model, state, input, cost, ago)
	}
	const minute = time.Minute
	for i := range 20 {
		run("event", "applied", "applied", minute, 1000, 400, time.Duration(i+1)*time.Second)
	}
	run("event", "skipped", "dry_run", minute, 1000, 100, time.Second)
	old := run("nightly", "applied", "applied", 2*time.Hour, 500, 300, 0)
	last := run("nightly", "failed", "timeout", minute, 500, 500, 9*time.Second)
	run("nightly", "applied", "applied", 25*time.Hour, 1, 1, 0)
	request(t, s, Key{Session: "s"}, TriggerOperator) // has not ended
	call(old, "a", "big", "answered", 2*time.Hour, 100, 50)
	call(last, "b", "big", "rejected", minute, 30, 20)
	call(last, "c", "big", "failed", minute, 0, 0)
	call(last, "d", "", "failed", minute, 0, 0)
	call(last, "e", "small", "forgotten", 25*time.Hour, 1, 1)

	exec(t, s, `UPDATE compactor.runs SET error_code = 'model_not_found' WHERE trigger = 'event' AND total_us <= 3000000 AND status = 'applied'`)
	exec(t, s, `UPDATE compactor.runs SET error_code = outcome WHERE status = 'failed'`)
	exec(t, s, `UPDATE compactor.summary_calls SET estimated = 2 WHERE key = 'b'`)

	want := Activity{
		Seconds: 3600,
		Outcomes: []OutcomeActivity{
			{"event", "applied", "applied", 20, 3, 20_000, 8000, 10, 19},
			{"event", "skipped", "dry_run", 1, 0, 0, 0, 1, 1},
			{"nightly", "failed", "timeout", 1, 0, 0, 0, 9, 9},
		},
		Models: []ModelActivity{{"big", 2, 1, 1, 1, 30, 14, 20}, {"", 1, 1, 0, 0, 0, 7, 0}},
	}
	equal(t, want, must(s.Operator.Activity(t.Context(), "", time.Hour))(t), "of an hour")
	day := must(s.Operator.Activity(t.Context(), "", 24*time.Hour))(t)
	if diff := cmp.Diff(OutcomeActivity{"nightly", "applied", "applied", 1, 0, 500, 300, 0, 0}, day.Outcomes[2]); diff != "" || len(day.Outcomes) != 4 {
		t.Errorf("of a day: %+v", day.Outcomes)
	}
	if m := day.Models[0]; m.Calls != 3 || m.CostMicros != 70 {
		t.Errorf("of a day: %+v", day.Models)
	}
}

func TestActivityIsFoundByIndexes(t *testing.T) {
	s := fresh(t)
	tx := begin(t, s, `SET LOCAL enable_seqscan = off`)
	for query, index := range map[string]string{queryOutcomes: "runs_ended", queryModels: "summary_calls_ended"} {
		rows, _ := tx.Query(t.Context(), "EXPLAIN "+query, "", time.Hour) // rows hold the error
		plan := strings.Join(must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
		if !strings.Contains(plan, index) {
			t.Errorf("%s is not used:\n%s", index, plan)
		}
	}
}

package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
)

// compacted returns a database with three sessions that were compacted, the first of them twice.
func compacted(t *testing.T) []string {
	t.Helper()
	db := database(t)
	startWorker(t, db, nil)
	for i := range 3 {
		invoke(t, db, "import", file(t, "s.jsonl", conversation(fmt.Sprintf("chat-%d", i), 12))).want(t, 0)
		invoke(t, db, "compact", fmt.Sprintf("chat-%d", i), "--strategy=sliding_window:keep_last_groups=12").want(t, 0, "applied")
	}
	invoke(t, db, "compact", "chat-0", "--strategy=truncation:compact_to=8,max_n=10").want(t, 0, "applied")
	return db
}

func scrubBulk(text string) string {
	return regexp.MustCompile(`requested by  .*`).ReplaceAllString(scrubTimes(text), "requested by  SOMEBODY")
}

func TestManyRunsAreUndoneAfterALookAtThem(t *testing.T) {
	t.Parallel()
	db := compacted(t)
	golden(t, "bulk_undo_dry_run", scrubBulk(invoke(t, db, "bulk-undo", "start", "--strategy", "sliding_window", "--dry-run").want(t, 0).stdout))
	invoke(t, db, "bulk-undo", "start", "--strategy", "sliding_window").want(t, exitUsage, "standard input is not a terminal", "--yes")
	no := &Env{Environ: db, Stdin: strings.NewReader("n\n"), asks: true}
	invokeWith(t, no, "bulk-undo", "start", "--strategy", "sliding_window").want(t, 0, "Undo them? [y/N]", "nothing was changed")
	invoke(t, db, "bulk-undo", "list").want(t, 0, "no bulk undos")

	golden(t, "bulk_undo", scrubBulk(invoke(t, db, "bulk-undo", "start", "--strategy", "sliding_window", "--note", "lost the ids", "--yes").want(t, 0).stdout))
	golden(t, "bulk_undo_list", scrubBulk(invoke(t, db, "bulk-undo", "list").want(t, 0).stdout))
	invoke(t, db, "bulk-undo", "resume", "1").want(t, 0, "done")
	invoke(t, db, "bulk-undo", "cancel", "1").want(t, exitRefused, "not open")
	invoke(t, db, "bulk-undo", "show", "9").want(t, exitNotFound, "9")
	invoke(t, db, "bulk-undo", "start", "--strategy", "sliding_window", "--cascade", "--yes").want(t, 0, "1 matched: 1 undone, 0 left")
	invoke(t, db, "bulk-undo", "start", "--strategy", "sliding_window", "--yes").want(t, 0, "0 in force")

	type shown struct {
		store.BulkOperation
		Refusals []store.BulkRefusal
	}
	got := decode[shown](t, invoke(t, db, "bulk-undo", "show", "1", "--json").want(t, 0))
	if got.Done != 2 || got.Refused != 1 || len(got.Refusals) != 1 || got.Refusals[0].Code != "later_runs" || got.Match.Strategy != "sliding_window" {
		t.Errorf("%+v", got)
	}
}

func TestManySessionsAreCompactedAgainAfterALookAtThem(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	env := []string{"DATABASE_URL=" + p.config.Database.URL.Reveal(), "REDIS_URL=" + p.config.Redis.URL.Reveal()}
	p.start(works) // a scheduler would find what is due first
	for i := range 3 {
		invoke(t, env, "import", file(t, "s.jsonl", conversation(fmt.Sprintf("chat-%d", i), 12))).want(t, 0)
		invoke(t, env, "compact", fmt.Sprintf("chat-%d", i), "--strategy=sliding_window:keep_last_groups=12").want(t, 0)
	}
	p.start(schedules)
	start := func(args ...string) result {
		return invoke(t, env, append([]string{"bulk-compact", "start"}, args...)...)
	}
	golden(t, "bulk_compact_dry_run", start("--strategy=sliding_window", "--dry-run").want(t, 0).stdout)
	start("--strategy=sliding_window").want(t, exitUsage, "standard input is not a terminal", "--yes")
	start("--outcome=no_such_outcome", "--yes").want(t, 0, "0, of tenant default")
	invoke(t, env, "bulk-compact", "list").want(t, 0, "no bulk compacts")

	golden(t, "bulk_compact", scrubBulk(wantWidth(t, start("--strategy=sliding_window", "--note=the policy was wrong", "--yes").want(t, 0).stdout)))
	golden(t, "bulk_compact_list", scrubBulk(invoke(t, env, "bulk-compact", "list").want(t, 0).stdout))
	if n := p.number(`SELECT count(*) FROM compactor.runs WHERE trigger = 'bulk' AND bulk = 1 AND status = 'applied'`); n != 3 {
		t.Errorf("%d runs, want one for each session", n)
	}
	invoke(t, env, "bulk-compact", "resume", "1").want(t, 0, "done")
	invoke(t, env, "bulk-compact", "cancel", "1").want(t, exitRefused, "not open")
	invoke(t, env, "bulk-undo", "show", "1").want(t, exitNotFound, "1")

	invoke(t, env, "pause", "--tenant=default").want(t, 0)
	start("--trigger=bulk", "--yes", "--no-wait", "--allow-growth").want(t, 0, "open", "views may grow", "resume 2", "0 recompacted", "waits", "tenant default is paused since")
	invoke(t, env, "bulk-compact", "cancel", "2").want(t, 0, "cancelled", "resume 2")
	p.number(`WITH x AS (UPDATE compactor.bulk_operations SET status = 'stopped' WHERE id = 2) SELECT 1`)
	invoke(t, env, "bulk-compact", "show", "2").want(t, 0, "stopped, as too many of its runs failed (`compactor bulk-compact resume 2` goes on)")
	invoke(t, env, "resume", "--tenant=default").want(t, 0)
	invoke(t, env, "bulk-compact", "resume", "2").want(t, 0, "done", "3 recompacted")
	got := decode[store.BulkOperation](t, invoke(t, env, "bulk-compact", "show", "2", "--json").want(t, 0))
	if got.Kind != store.BulkCompact || got.Done != 3 || got.Match.Trigger != store.TriggerBulk || got.Options.From != "log" {
		t.Errorf("%+v", got)
	}
}

func TestABulkUndoNeedsAFilter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want []string }{
		{nil, []string{"since", "writer"}},
		{[]string{"--since", "yesterday"}, []string{"yesterday", "12h"}},
		{[]string{"--trigger", "daily"}, []string{"daily", "nightly"}},
		{[]string{"--policy", "support@0"}, []string{"NAME@VERSION"}},
	} {
		invoke(t, nil, append([]string{"bulk-undo", "start"}, tt.args...)...).want(t, exitUsage, tt.want...)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"12h": now.Add(-12 * time.Hour), "2026-11-19": time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC), "2026-11-19T22:00:00+01:00": time.Date(2026, 11, 19, 21, 0, 0, 0, time.UTC),
	} {
		var i instant
		if err := i.UnmarshalText([]byte(text)); err != nil || !i.time(now).Equal(want) {
			t.Errorf("%s: %s, %v", text, i.time(now), err)
		}
	}
}

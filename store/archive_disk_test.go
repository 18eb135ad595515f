package store

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store/storetest"
	"github.com/sessionstore/compactor/strategies/chat"
)

// ranAgo makes sessions 0, 1, … with 6 messages of which the first 4 left the view so many days
// ago, in this order of runs.
func ranAgo(t fataler, s *Store, days ...int) (keys []Key) {
	t.Helper()
	for i, n := range days {
		k := Key{Session: fmt.Sprint(i)}
		msgs := talk("m", 6)
		msgs[0].Content = chat.TextContent(strings.Repeat("what was said ", 300))
		add(t, s, k, msgs...)
		run := apply(t, s, k, exclude(span(1, 4)))
		exec(t, s, `UPDATE compactor.runs SET ended_at = now() - make_interval(days => $2), queued_at = now() - make_interval(days => $2) WHERE id = $1`, run, n)
		keys = append(keys, k)
	}
	return keys
}

// archivedSeqs returns the archived seqs by session.
func archivedSeqs(t fataler, s *Store) []string {
	t.Helper()
	return list[string](t, s, `SELECT id || ' ' || archived FROM compactor.sessions WHERE NOT isempty(archived) ORDER BY id`)
}

func TestADiskBudgetTakesTheOldestWordsFirstUntilEnoughIsMoved(t *testing.T) {
	s := fresh(t)
	keys := ranAgo(t, s, 40, 30, 20, 10)
	exec(t, s, `UPDATE compactor.sessions SET policy = 'without retention' WHERE id = '1'`)
	// The first session has words that left its view later, and one that is pinned.
	noError(t, s.Pin(t.Context(), keys[0], "m2"))
	later := apply(t, s, keys[0], exclude(span(5, 5)))
	exec(t, s, `UPDATE compactor.runs SET ended_at = now() - interval '5 days' WHERE id = $1`, later)
	today := Key{Session: "today"}
	add(t, s, today, talk("m", 6)...)
	apply(t, s, today, exclude(span(1, 4)))
	must2(s.Scheduler.Archive(t.Context(), 35*24*time.Hour, []string{"default"}, 1))(t)
	cursors := list[string](t, s, `SELECT c::text FROM compactor.archive_cursors c`)
	noError(t, s.Pin(t.Context(), keys[1], "m2"))

	got, more, err := s.Scheduler.ArchiveOldest(t.Context(), 1, 2)
	if err != nil || !more || got.Gain() < 1 || got.Sessions != 1 {
		t.Fatalf("%+v, %v, %v", got, more, err)
	}
	want := []string{"0 {[1,2),[3,5)}", "1 {[1,2),[3,5)}"}
	equal(t, want, archivedSeqs(t, s), "after the first byte")
	for more := true; more; {
		if _, more, err = s.Scheduler.ArchiveOldest(t.Context(), math.MaxInt64, 2); err != nil {
			t.Fatal(err)
		}
	}
	want = []string{"0 {[1,2),[3,6)}", "1 {[1,2),[3,5)}", "2 {[1,5)}", "3 {[1,5)}"}
	equal(t, want, archivedSeqs(t, s), "down to the floor")
	equal(t, cursors, list[string](t, s, `SELECT c::text FROM compactor.archive_cursors c`), "the cursors of the policies' ages")
	for _, k := range append(keys, today) {
		if all := must(s.All(t.Context(), k))(t); len(all) != 6 {
			t.Errorf("session %s has %d messages", k, len(all))
		}
	}
	wantConsistent(t, s)
}

func TestADiskBudgetIsKeptWithTheRightsOfTheWorkerRole(t *testing.T) {
	t.Parallel()
	s, dsn := openRoles(t)
	ranAgo(t, s, 40)
	_, own := storetest.Login(t, dsn, "compactor_worker")
	w := must(Open(t.Context(), Config{URL: own}))(t)
	t.Cleanup(w.Close)
	moved, _, err := w.Scheduler.ArchiveOldest(t.Context(), math.MaxInt64, 100)
	if use := must(w.Scheduler.DiskUse(t.Context()))(t); err != nil || moved.Messages != 4 || use.Freed != moved.Stored {
		t.Errorf("%+v, %v, then %+v", moved, err, use)
	}
}

func TestADiskBudgetLeavesWhatWasRestoredAndWhatAWriterHas(t *testing.T) {
	s := fresh(t)
	keys := ranAgo(t, s, 40, 30)
	must(s.Admin.ArchiveSession(t.Context(), keys[0], month))(t)
	must(s.Admin.Restore(t.Context(), keys[0]))(t)
	tx := begin(t, s, `SELECT FROM compactor.sessions WHERE id = '1' FOR NO KEY UPDATE`)
	if got, more, err := s.Scheduler.ArchiveOldest(t.Context(), math.MaxInt64, 100); err != nil || more || got.Messages != 0 {
		t.Errorf("%+v, %v, %v", got, more, err)
	}
	noError(t, tx.Rollback(t.Context()))
	if got, _, err := s.Scheduler.ArchiveOldest(t.Context(), math.MaxInt64, 100); err != nil || got.Messages != 4 {
		t.Errorf("when the writer is done: %+v, %v", got, err)
	}
}

// A writer has a session for milliseconds, and the next pass is ten minutes away.
func TestTheArchiverWaitsForAWriter(t *testing.T) {
	t.Parallel()
	s, dsn := openDSN(t)
	ranAgo(t, s, 40, 20)
	tx := begin(t, s, `SELECT FROM compactor.sessions WHERE id = '0' FOR NO KEY UPDATE`)
	var trips atomic.Int32
	w := must(Open(t.Context(), Config{URL: dsn, Observe: func(string, time.Duration, error) {
		if trips.Add(1) == 5 { // in the second attempt
			_ = tx.Rollback(context.WithoutCancel(t.Context()))
		}
	}}))(t)
	t.Cleanup(w.Close)
	trips.Store(0)
	if got, _, err := w.Scheduler.Archive(t.Context(), month, []string{"default"}, 100); err != nil || got.Messages != 4 {
		t.Errorf("%+v, %v, want the words of the session that was locked", got, err)
	}
}

// The figures are those of Postgres, and the sum of partitions.
func TestDiskUseCountsWhatWasFreedUntilItIsUsedAgain(t *testing.T) {
	t.Parallel()
	one16, _ := openPartitioned(t, 16)
	for name, s := range map[string]*Store{"one table": open(t), "16 partitions": one16} {
		t.Run(name, func(t *testing.T) {
			ranAgo(t, s, 40, 30, 20)
			use := func() DiskUse { return must(s.Scheduler.DiskUse(t.Context()))(t) }
			const sum = `SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c WHERE relnamespace = 'compactor'::regnamespace AND relkind = 'r' AND relname `
			if got := use(); got.Bytes != one[int64](t, s, sum+`<> ''`) || got.Freed != 0 || got.MovedAt != nil || !got.More {
				t.Errorf("before: %+v", got)
			}
			words := one[int64](t, s, `SELECT words FROM compactor.disk_use()`)
			if want := one[int64](t, s, sum+`~ '^message_body(_p[0-9]+)?$'`); words != want || words == 0 {
				t.Errorf("message_body takes %d bytes, want %d", words, want)
			}
			moved, _, err := s.Scheduler.ArchiveOldest(t.Context(), math.MaxInt64, 100)
			if err != nil || moved.Messages != 12 {
				t.Fatalf("%+v, %v", moved, err)
			}
			if got := use(); got.Freed != moved.Stored || got.MovedAt == nil || got.More {
				t.Errorf("after %+v was moved: %+v", moved, got)
			}
			set := func(what string) { exec(t, s, `UPDATE compactor.disk_passes SET `+what) }
			set(`words = words + 100`)
			if got := use(); got.Freed != moved.Stored-100 {
				t.Errorf("a vacuum returned 100 bytes to the disk: %+v", got)
			}
			set(`words = words - 200`)
			if got := use(); got.Freed != moved.Stored {
				t.Errorf("it grew, but no vacuum has made the room free: %+v", got)
			}
			set(`moved_at = now() - interval '1 day'`)
			exec(t, s, `VACUUM compactor.message_body`)
			set(`words = pg_size - 100 FROM (SELECT u.words AS pg_size FROM compactor.disk_use() u) u`)
			if got := use(); got.Freed != moved.Stored-100 {
				t.Errorf("it is 100 bytes larger after a vacuum: %+v", got)
			}
			set(`words = 1`)
			if got := use(); got.Freed != 0 {
				t.Errorf("it grew after a vacuum: %+v", got)
			}
		})
	}
}

func TestVacuumsComeSoonWhereWordsAreArchived(t *testing.T) {
	t.Parallel()
	one16, _ := openPartitioned(t, 16)
	for name, s := range map[string]*Store{"one table": open(t), "16 partitions": one16} {
		const early = `SELECT count(*) FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid WHERE c.relname ~ '^message_body(_p[0-9]+)?$'
			AND 'autovacuum_vacuum_scale_factor=0.02' = ANY(c.reloptions) AND 'autovacuum_vacuum_scale_factor=0.02' = ANY(t.reloptions)`
		if n := one[int](t, s, early); name == "16 partitions" && n != 16 || n == 0 {
			t.Errorf("%s: set for %d", name, n)
		}
	}
}

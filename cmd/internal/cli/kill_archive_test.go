package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sessionstore/compactor/store"
	"github.com/sessionstore/compactor/strategies/backoff"
)

// exec executes a statement of the test's own, as the owner.
func (p *plant) exec(sql string) {
	p.t.Helper()
	if _, err := p.db.Exec(p.t.Context(), sql); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

// compacted makes sessions whose runs were 40 days ago.
func (p *plant) compacted(n int) []string {
	p.t.Helper()
	names := p.backlog(n)
	stop := p.start(schedules, works)
	p.sweep()
	p.awaitRest()
	stop()
	p.exec(`UPDATE compactor.runs SET queued_at = now() - interval '40 days', ended_at = now() - interval '40 days'`)
	return names
}

// said returns the words of a session's first messages, wherever they are.
func (p *plant) said(name string) (words []string) {
	p.t.Helper()
	all, err := p.store.All(p.t.Context(), store.Key{Session: name})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, m := range all {
		if m.Seq <= p.seqs[name] {
			words = append(words, string(m.AppendJSON(nil)))
		}
	}
	return words
}

// wantSaid checks the words of sessions, and that those of each message are in one place.
func (p *plant) wantSaid(before map[string][]string) {
	p.t.Helper()
	for name, words := range before {
		if diff := cmp.Diff(words, p.said(name)); diff != "" {
			p.t.Errorf("session %s (-said +stored):\n%s", name, diff)
		}
	}
	if n := p.number(`SELECT count(*) FROM compactor.message_log l WHERE 1 <> (SELECT count(*) FROM compactor.message_body b WHERE b.sid = l.sid AND b.seq = l.seq)
			+ (SELECT count(*) FROM compactor.archive_segments a WHERE a.sid = l.sid AND a.seqs @> l.seq)`); n > 0 {
		p.t.Errorf("the words of %d messages are in no place, or in two", n)
	}
	p.wantSound()
}

// left returns how many sessions have words to archive.
func (p *plant) left() int {
	p.t.Helper()
	return p.number(`SELECT count(*) FROM compactor.sessions s WHERE NOT isempty(compactor.archivable(s, '1 day')) AND restored_at IS NULL`)
}

func TestAnArchiverAndARestoreThatAreKilledLoseNothing(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	names := p.compacted(40)
	before := map[string][]string{}
	for _, name := range names {
		before[name] = p.said(name)
	}
	// Each segment takes a while, in which its transaction is half done.
	p.exec(`CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.03 * random()); RETURN NULL; END $$;
		CREATE TRIGGER slow AFTER INSERT OR UPDATE OR DELETE ON compactor.archive_segments FOR EACH ROW EXECUTE FUNCTION public.slow()`)
	half := func() bool {
		return p.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`) > 0
	}
	var writers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	writers.Go(func() {
		for i := 0; backoff.Wait(ctx, 5*time.Millisecond) == nil; i++ {
			name := names[rand.IntN(len(names))]
			_, _, err := p.store.Append(ctx, store.Key{Session: name}, "", transcript(fmt.Sprintf("%s-later-%d", name, i), "ua"))
			if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrBusy) {
				t.Errorf("append: %v", err)
			}
		}
	})
	stop := func() { cancel(); writers.Wait() }
	t.Cleanup(stop)
	p.process(nil, "worker")

	archivers := []func() process{
		func() process { return p.program(nil, "archive", "--older-than=1d") },
		func() process {
			return p.process([]string{"COMPACTOR_POLICY_RETENTION_ARCHIVE_AFTER=1d"}, "scheduler")
		},
		func() process { return p.process([]string{"COMPACTOR_SCHEDULER_DISK_BUDGET=1MB"}, "scheduler") },
	}
	rounds := len(archivers)
	if os.Getenv("LONG_TESTS") != "" {
		rounds *= 3
	}
	for round := range rounds {
		p.exec(`DELETE FROM compactor.archive_cursors; DELETE FROM compactor.disk_passes`)
		archiver := archivers[round%len(archivers)]()
		late := time.Now().Add(5 * time.Second) // its pass may have ended at a session that a worker has
		p.await("a segment is half done", func() bool { return half() || p.left() == 0 || time.Now().After(late) })
		p.pass(time.Duration(rand.IntN(80)) * time.Millisecond)
		archiver.kill()
		for range 3 {
			p.await("what was killed is gone", func() bool { return !half() })
			var name string
			err := p.db.QueryRow(t.Context(), `SELECT id FROM compactor.sessions ORDER BY isempty(archived), random() LIMIT 1`).Scan(&name)
			if err != nil {
				t.Fatal(err)
			}
			restore := p.program(nil, "restore", name)
			p.await("a segment is half restored", func() bool {
				return half() || p.number(`SELECT count(*) FROM compactor.sessions WHERE id = $1 AND NOT isempty(archived)`, name) == 0
			})
			restore.kill()
		}
		p.exec(`UPDATE compactor.sessions SET restored_at = NULL`)
		if t.Failed() {
			break
		}
	}
	stop()
	p.await("what was killed is gone", func() bool { return !half() })
	p.wantSaid(before)

	p.exec(`DROP FUNCTION public.slow() CASCADE`)
	env := []string{"DATABASE_URL=" + p.config.Database.URL.Reveal(), "REDIS_URL=" + p.config.Redis.URL.Reveal()}
	invoke(t, env, "archive", "--older-than=1d").want(t, 0)
	if n := p.left(); n > 0 {
		t.Errorf("%d sessions have words left that a later archive does not take", n)
	}
	p.wantSaid(before)
	invoke(t, env, "doctor", "--deep").want(t, 0, "all checks passed")
	for _, name := range names {
		invoke(t, env, "restore", name).want(t, 0)
	}
	p.wantSaid(before)
	if n := p.number(`SELECT count(*) FROM compactor.archive_segments`); n > 0 {
		t.Errorf("%d segments are left", n)
	}
}

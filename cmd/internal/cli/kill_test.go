package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sessionstore/compactor/store"
)

// asProgram is the variable with which the binary of these tests is the program.
const asProgram = "TEST_AS_PROGRAM"

// process is a process of the program, which can be killed.
type process struct {
	cmd  *exec.Cmd
	kill func() // at once, as kill -9 does, and waits until it is gone
}

// process starts a role of the program in the installation. It is killed at the end of the test.
func (p *plant) process(environ []string, args ...string) process {
	p.t.Helper()
	return p.program(environ, append(args, "--log-format=json", "--metrics-listen=off", "--policy-debounce=0s", "--policy-min-gain-tokens=50",
		"--policy-start-tokens=600", "--policy-target-tokens=300", "--worker-concurrency=4", "--worker-lease=2s", "--worker-heartbeat=500ms",
		"--worker-check-interval=10ms", "--scheduler-leader-ttl=2s", "--scheduler-relay-interval=10ms", "--scheduler-redeliver-after=2s",
		"--scheduler-reconcile-interval=1s", "--wait-timeout=20s")...)
}

// program starts the program in the installation. It is killed at the end of the test.
func (p *plant) program(environ []string, args ...string) process {
	p.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), os.Args[0], args...)
	cmd.Env = append([]string{asProgram + "=1", "DATABASE_URL=" + p.config.Database.URL.Reveal(), "REDIS_URL=" + p.config.Redis.URL.Reveal()}, environ...)
	var logs bytes.Buffer
	cmd.Stderr = &logs
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
			p.t.Errorf("%v ended by itself: %v", args, err)
		}
		if p.t.Failed() {
			p.t.Logf("log of %v:\n%s", args, logs.String())
		}
	})
	p.t.Cleanup(kill)
	return process{cmd, kill}
}

// missed records an old tick of each schedule, so that a scheduler that starts has one to catch up on.
func (p *plant) missed(entries ...string) {
	p.t.Helper()
	p.number(`WITH x AS (INSERT INTO compactor.cron_ticks (entry, tick, fired_by) SELECT e, now() - interval '3 days', '' FROM unnest($1::text[]) e RETURNING 1) SELECT count(*) FROM x`, entries)
}

// wantTicks checks that each schedule had one tick since, with a sweep that was started for it or stands for it.
func (p *plant) wantTicks(entries int) {
	p.t.Helper()
	if n := p.number(`SELECT count(*) FROM compactor.cron_ticks WHERE fired_by <> ''`); n != entries {
		p.t.Errorf("%d ticks for %d schedules, want one of each", n, entries)
	}
	if n := p.number(`SELECT count(*) FROM compactor.cron_ticks t WHERE fired_by <> '' AND outcome = 'fired'
			AND 1 = (SELECT count(*) FROM compactor.sweeps w WHERE w.entry = t.entry AND w.tick = t.tick)`); n != entries {
		p.t.Errorf("%d ticks of %d have one sweep", n, entries)
	}
}

func TestASchedulerKilledInTheMiddleOfATickFiresItOnce(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{
		"its statement goes on":       ``,
		"its statement ends with it":  `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`,
		"the database loses them all": `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t)
			p.backlog(20)
			p.missed("work")
			schedule := []string{"COMPACTOR_SCHEDULES={work: {every: 24h}}"}
			tx, err := p.db.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			release := sync.OnceFunc(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
			t.Cleanup(release)
			if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended('compactor.schedules/work', 0))`); err != nil {
				t.Fatal(err)
			}
			first := p.process(schedule, "scheduler")
			p.await("the tick is being fired", func() bool {
				return p.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`) == 1
			})
			first.kill()
			if end != "" {
				p.number(end)
			}
			release()
			p.process(schedule, "scheduler")
			p.process(nil, "worker")
			p.await("the tick was fired", func() bool { return p.number(`SELECT count(*) FROM compactor.sweeps`) > 0 })
			p.awaitRest()
			p.wantTicks(1)
			p.wantOneEffect()
		})
	}
}

func TestThreeSchedulersAndFourWorkersDoEverythingOnceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	names := p.backlog(80)
	entries := []string{"a", "b", "c"}
	p.missed(entries...)
	schedules := []string{`COMPACTOR_SCHEDULES={a: {every: 24h}, b: {cron: "@daily", timezone: Asia/Tokyo}, c: {every: 12h, overlap: skip, canary: 0.1}}`}
	// A canary waits for its runs, so some of them are held, and others can end.
	release := p.hold(names[10:30]...)
	var schedulers, workers []process
	for range 3 {
		schedulers = append(schedulers, p.process(schedules, "scheduler"))
	}
	for range 4 {
		workers = append(workers, p.process(nil, "worker"))
	}
	p.awaitBlocked(4)
	p.await("all ticks are fired", func() bool {
		return p.number(`SELECT count(*) FROM compactor.cron_ticks WHERE fired_by <> ''`) == len(entries)
	})
	leads := func(s process) bool {
		return p.number(`SELECT count(*) FROM compactor.leader WHERE holder LIKE '%-' || $1 || '-%'`, fmt.Sprint(s.cmd.Process.Pid)) == 1
	}
	leader := slices.IndexFunc(schedulers, leads)
	if leader < 0 {
		t.Fatal("no scheduler leads")
	}
	schedulers[leader].kill()
	workers[0].kill()
	workers[1].kill()
	if err := p.queue.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	p.written("after the kill")
	release()
	workers[2].kill()
	p.awaitRest()
	p.wantTicks(len(entries))
	p.wantOneEffect()
	// The sessions that were held, and the one that was written, when two of the workers were dead.
	others := p.number(`SELECT count(*) FROM compactor.runs WHERE status = 'applied' AND (worker LIKE '%/' || $1 OR worker LIKE '%/' || $2)`,
		fmt.Sprint(workers[2].cmd.Process.Pid), fmt.Sprint(workers[3].cmd.Process.Pid))
	if others < 21 {
		t.Errorf("the workers that were left applied %d runs, want 21 or more", others)
	}
}

func TestABulkRecompactionOutlastsWhatDiesInItsMiddle(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	names := p.backlog(60)
	p.number(`WITH x AS (INSERT INTO compactor.runs (sid, trigger, status, outcome, snapshot_seq, ended_at)
		SELECT sid, 'event', 'skipped', 'ineffective', last_source_seq, now() FROM compactor.sessions RETURNING 1) SELECT count(*) FROM x`)
	release := p.hold(names[20:40]...)
	scheduler, worker := p.process(nil, "scheduler"), p.process(nil, "worker")
	id, err := p.store.Operator.StartBulkCompact(t.Context(), "", store.RunMatch{Outcome: "ineffective"}, store.Options{From: "view"}, 0, "", "test")
	if err != nil {
		t.Fatal(err)
	}
	p.awaitBlocked(4)
	scheduler.kill()
	p.queue.FlushAll(t.Context())
	worker.kill()
	release()
	p.process(nil, "scheduler")
	p.process(nil, "worker")
	p.await("the recompaction has ended", func() bool {
		b, err := p.store.Operator.Bulk(t.Context(), store.BulkCompact, id)
		return err == nil && b.Settled()
	})
	p.awaitRest()
	p.wantOneEffect()
	if n := p.number(`SELECT count(*) FROM compactor.runs WHERE bulk = $1`, id); n != len(names) {
		t.Errorf("%d runs for %d sessions", n, len(names))
	}
}

// A pause is in Postgres, so it is in force although Redis was away when it was made, and came back without memory.
func TestAPauseMadeWhileTheQueueIsAwayIsObeyedWhenItIsBack(t *testing.T) {
	t.Parallel()
	server := newRedisServer(t)
	p := newPlantOn(t, "redis://"+server.addr+"/0")
	names := p.backlog(40)
	release := p.hold(names...)
	p.start(schedules, works)
	p.sweep()
	p.awaitBlocked(p.config.Worker.Concurrency)
	p.leaveInRedis("left")
	server.kill()
	if err := p.store.Operator.PauseRuns(t.Context(), store.PauseScope{Tenant: "default"}, "why", "test"); err != nil {
		t.Fatal(err)
	}
	before := p.number(`SELECT count(*) FROM compactor.runs WHERE status = 'running'`)
	release() // what was being executed ends
	p.await("the outage is told", func() bool { return p.logs.has("queue unavailable, retrying") })
	server.start()
	forced, err := p.store.Request(t.Context(), store.Key{Session: names[39]}, store.TriggerOperator, "test", store.Options{Force: true})
	if err != nil {
		t.Fatal(err)
	}
	p.await("a forced run shows that the queue works, and no other is left in it", func() bool {
		return p.number(`SELECT count(*) FROM compactor.runs WHERE id = $1 AND status IN ('queued', 'running')`, forced) == 0 &&
			p.number(`SELECT count(*) FROM compactor.runs WHERE status = 'running' OR status = 'queued' AND deliver_at <= now()`) == 0
	})
	if n := p.number(`SELECT count(*) FROM compactor.runs WHERE status = 'applied' AND id <> $1`, forced); n > before {
		t.Errorf("%d runs were executed during the pause, of which %d had begun before", n, before)
	}
	if err := p.store.Operator.ResumeRuns(t.Context(), store.PauseScope{Tenant: "default"}, "test"); err != nil {
		t.Fatal(err)
	}
	p.awaitRest()
	p.wantOneEffect()
}

// A session whose messages cannot be read fails, with its code, and keeps nothing else of its page from its end.
func TestARowThatCannotBeDecodedKeepsNoOtherFromItsEnd(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	names := p.backlog(20)
	bad := names[9]
	tx, err := p.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`SET LOCAL session_replication_role = replica`, // no trigger
		`UPDATE compactor.message_body SET body = '{"role": "assist' WHERE sid = (SELECT sid FROM compactor.sessions WHERE id = '` + bad + `') AND seq IN (3, 8)`,
	} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	live := p.session(bad)
	delete(p.sums, bad)
	p.start(schedules, works)
	p.sweep()
	p.await("all runs have ended", func() bool {
		// In this order: the sweep has queued all runs when it ends.
		return p.number(`SELECT count(*) FROM compactor.sweeps WHERE ended_at IS NULL`) == 0 && len(p.runs(bad)) > 0 &&
			p.number(`SELECT count(*) FROM compactor.runs WHERE status IN ('queued', 'running')`) == 0
	})
	for name := range p.sums {
		if s := p.session(name); s.Revision != 1 || s.Due {
			t.Errorf("session %s has revision %d, due: %t", name, s.Revision, s.Due)
		}
	}
	runs := p.runs(bad)
	if r := runs[0]; r.Status != "failed" || r.ErrorCode == "" || r.Trigger != store.TriggerNightly {
		t.Errorf("run of the session: %+v", r)
	}
	if s := p.session(bad); s.Revision != 0 || s.LiveTokens != live.LiveTokens {
		t.Errorf("its view has changed: %+v", s)
	}
	p.pass(3 * p.config.Scheduler.ReconcileInterval)
	if n := len(p.runs(bad)); n > 2 {
		t.Errorf("%d runs of the session: it is run again and again", n)
	}
}

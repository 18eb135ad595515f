package cli

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sessionstore/compactor/store"
)

func TestRunThatOutlastsTheDrainIsDoneByTheNextWorker(t *testing.T) {
	t.Parallel()
	for name, pipeline := range pipelines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t)
			p.config.Policy.Pipeline = pipeline
			p.config.Worker.DrainTimeout = 300 * time.Millisecond
			p.config.Scheduler.RedeliverAfter = 30 * time.Second // returned runs must not wait for it
			p.written("s")
			release := p.hold("s")
			p.start(schedules)
			stop := p.start(works)
			p.awaitBlocked(1)
			stop()
			wantRun(t, p.runs("s")[0], "queued", "stopping", 0, 1)
			if n := p.session("s").Revision; n != 0 {
				t.Errorf("revision %d while the session was locked", n)
			}
			release()
			p.start(works)
			p.awaitRest()
			p.wantOneEffect()
		})
	}
}

func TestTwoWorkersAtOneRunAtTheSameTimeHaveOneEffect(t *testing.T) {
	t.Parallel()
	for name, pipeline := range pipelines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t)
			p.config.Policy.Pipeline = pipeline
			p.config.Worker.DrainTimeout = 2 * time.Second
			p.written("s")
			release := p.hold("s")
			p.start(schedules)
			stop := p.start(works)
			p.awaitBlocked(1)
			// The queue hands the task out again while its handler still runs.
			p.start(works)
			p.ring("s", 100)
			p.await("the second task was taken", func() bool { return p.pending() == 0 })
			if name == "a run unclaimed" {
				p.awaitBlocked(2)
			}
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				stop()
			}()
			release()
			<-stopped
			p.awaitRest()
			p.wantOneEffect()
			if n := p.runs("s")[0].Attempts; n != 1 {
				t.Errorf("%d attempts ended the run, want one", n)
			}
		})
	}
}

func TestRunPastItsDeadlineIsTriedAgainAndTheOldHandlerWritesNothing(t *testing.T) {
	t.Parallel()
	for name, pipeline := range pipelines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t)
			p.config.Policy.Pipeline = pipeline
			p.config.Worker.JobTimeout = time.Second
			p.written("s")
			release := p.hold("s")
			stop := p.start(schedules, works)
			p.awaitBlocked(1)
			p.await("the deadline has passed", func() bool { return p.runs("s")[0].Failures > 0 })
			if r := p.runs("s")[0]; r.ErrorCode != "timeout" || r.Status == "failed" {
				t.Errorf("after the deadline the run is %s (%s), want timeout and another try", r.Status, r.ErrorCode)
			}
			release()
			p.awaitRest()
			stop() // waits for all handlers, old ones too
			p.wantOneEffect()
		})
	}
}

func TestDatabaseThatDropsAllConnectionsInASweepIsWaitedOut(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	names := p.backlog(60)
	own := p.pids()
	release := p.hold(names[20:50]...)
	p.start(schedules, works)
	p.sweep()
	p.awaitBlocked(p.config.Worker.Concurrency)
	dropped := 0
	drop := func() {
		dropped += p.number(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'compactor' AND pid <> ALL($1)`, own)
	}
	end := time.NewTimer(time.Second)
	defer end.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for away := true; away; {
		select {
		case <-tick.C:
			drop()
		case <-end.C:
			away = false
		}
	}
	release()
	drop() // and in the midst of it all
	p.awaitRest()
	p.wantOneEffect()
	t.Logf("%d connections dropped", dropped)
	p.wantFewLogLines(4, "database unavailable, retrying", "database is back")
}

func TestRunsInTheQueueOutlastADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	gate := newGate(t, p.config.Database.URL.Reveal())
	gate.open()
	p.start(schedules)
	c := p.config
	c.Database.URL = gate.dsn
	c.Worker.DrainTimeout = 5 * time.Minute // longer than this test waits for anything
	stop := p.startWith(c, works)
	gate.shut()
	for i := range 60 {
		p.written(fmt.Sprint("s", i))
	}
	p.await("the tasks are in Redis", func() bool { return p.pending() >= 50 })
	p.await("the outage is told", func() bool { return p.logs.has("database unavailable, retrying") })
	p.pass(1500 * time.Millisecond)
	if n := p.pending(); n < 50 {
		t.Errorf("%d tasks wait after a while: the others were taken in vain", n)
	}
	p.wantFewLogLines(3)
	gate.open()
	p.awaitRest()
	p.wantOneEffect()
	p.wantFewLogLines(3, "database is back")

	// And a worker that is to stop does not wait for it.
	gate.shut()
	p.written("later")
	p.await("the outage is told again", func() bool {
		return strings.Count(strings.Join(p.logs.all(), "\n"), "database unavailable, retrying") == 2
	})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	p.await("the worker has stopped", func() bool {
		select {
		case <-stopped:
			return true
		default:
			return false
		}
	})
	p.start(works)
	p.awaitRest()
	p.wantOneEffect()
}

func TestStartBeforeTheDatabaseIsThereWaitsForIt(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.written("s")
	gate := newGate(t, p.config.Database.URL.Reveal())
	c := p.config
	c.Database.URL = gate.dsn
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for !p.logs.has("waiting for postgres") && t.Context().Err() == nil {
			<-tick.C
		}
		p.pass(300 * time.Millisecond)
		gate.open()
	}()
	p.startWith(c, schedules, works)
	<-opened
	p.awaitRest()
	p.wantOneEffect()
	p.wantFewLogLines(2, "waiting for postgres", "connected to postgres")

	// And when it goes away later, everything else being well.
	gate.shut()
	p.await("the outage is told", func() bool { return p.logs.has("database unavailable, retrying") })
	p.written("later")
	p.pass(500 * time.Millisecond)
	gate.open()
	p.awaitRest()
	p.wantOneEffect()
	p.wantFewLogLines(15, "database is back")
}

func TestWritersGoOnWhileTheirSessionsAreCompacted(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.start(schedules, works)
	const sessions, writers = 10, 4
	name := func(i int) string { return fmt.Sprintf("s%02d", i%sessions) }
	for i := range sessions {
		p.written(name(i))
	}
	p.awaitRest() // all is warm
	type written struct {
		ids     map[string][]string // by session
		longest time.Duration
	}
	all := make([]written, writers)
	var group sync.WaitGroup
	end := time.Now().Add(2 * time.Second)
	for w := range writers {
		all[w].ids = map[string][]string{}
		group.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				session := name(i*(w+1) + w)
				msgs := transcript(fmt.Sprintf("w%d-%d", w, i), []string{"ua", "u", "ct", "ucta"}[(i+w)%4])
				began := time.Now()
				if _, _, err := p.store.Append(t.Context(), store.Key{Session: session}, "", msgs); err != nil {
					t.Errorf("append: %v", err)
					return
				}
				all[w].longest = max(all[w].longest, time.Since(began))
				for _, m := range msgs {
					all[w].ids[session] = append(all[w].ids[session], m.ID)
				}
			}
		})
	}
	group.Wait()
	p.awaitRest()

	appended, runs := 0, 0
	var longest time.Duration
	for i := range sessions {
		log := map[string]store.Stored{}
		msgs, err := p.store.All(t.Context(), store.Key{Session: name(i)})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range msgs {
			log[m.ID] = m
			if !m.Included && (m.ExcludeReason == "" || m.ExcludedBy == 0) {
				t.Errorf("session %s: message %s is out of the view, and nothing says why", name(i), m.ID)
			}
		}
		for _, w := range all {
			for _, id := range w.ids[name(i)] {
				appended++
				if _, there := log[id]; !there {
					t.Errorf("session %s: message %s was appended and is not in the log", name(i), id)
				}
			}
		}
		applied := slices.DeleteFunc(p.runs(name(i)), func(r store.RunRow) bool { return r.Status != "applied" })
		for n, r := range applied {
			if r.Revision != int64(n+1) {
				t.Errorf("session %s: run %d made revision %d, want %d", name(i), r.ID, r.Revision, n+1)
			}
		}
		runs += len(applied)
	}
	for _, w := range all {
		longest = max(longest, w.longest)
	}
	if runs < 2*sessions {
		t.Errorf("%d runs in %d sessions: too few to have been in the writers' way", runs, sessions)
	}
	t.Logf("%d messages appended by %d writers, %d runs applied meanwhile; the longest append took %s", appended, writers, runs, longest)
	p.wantSound()
}

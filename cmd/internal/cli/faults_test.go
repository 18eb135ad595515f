package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"
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

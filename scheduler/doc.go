// Package scheduler starts runs: for the whole fleet at every tick of its schedules, for
// sessions after writes (from the outbox, debounced), for requests made in SQL, for bulk
// recompactions, and for work that was lost, which it finds in Postgres. It enqueues runs;
// the worker executes them. To start one:
//
//	s, err := scheduler.New(st, jobs.NewEnqueuer(redis, installation, timeout), scheduler.Config{Policy: p})
//	if err != nil {
//		return err
//	}
//	return s.Run(ctx)
//
// Any number of schedulers may run. A lease, a row in Postgres, makes one of them the
// leader, and only the leader works. Correctness does not depend on the lease: every step
// is one statement that takes effect once even if several schedulers execute it, and a
// task that is enqueued twice has one effect. The next leader finds the runs that the
// last one took but did not enqueue.
//
// It enqueues no more than the workers take in about a second, and nothing that an operator
// has paused; the rest waits in Postgres. A mark in Redis shows whether Redis has lost tasks,
// which are then delivered again.
//
// During an outage of Postgres or Redis the scheduler retries. It logs when the outage
// begins and when it ends.
//
// The package imports neither strategies nor the worker.
package scheduler

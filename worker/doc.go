// Package worker executes runs: the compactions that an application, an operator or
// the scheduler requested.
//
// A run arrives as a task of asynq. The worker claims it, plans with the strategies
// of the policy, checks the plan and applies it through the store. To start one, make
// a Planner, then:
//
//	w := worker.New(st, planner, worker.Config{})
//	err := w.Run(ctx, asynq.RedisClientOpt{Addr: "localhost:6379"})
//
// A program that adds strategies to all commands of compactor calls cmd.Main instead;
// see deploy/examples/strategy.
//
// asynq may deliver a task twice, concurrently, late, or never. The claim, its fence
// token and the status of the run in Postgres make each run take effect once. The
// worker decides in one place, outcome.go, whether a failed attempt is retried.
//
// A Worker works on Concurrency runs at a time. It is run once. A Planner is safe for
// concurrent use, and so must be the strategies' constructors and the model.
//
// The package does not import the scheduler.
package worker

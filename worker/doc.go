// Package worker executes runs: the compactions that an application, an operator or
// the scheduler requested.
//
// A run arrives as a task of asynq. The worker claims it, plans with the strategies
// of the policy, checks the plan and applies it through the store. To start one:
//
//	planner := &worker.Planner{Policy: policy.Default(), Registry: builtin.Registry(), …}
//	w := worker.New(st, planner, worker.Config{})
//	name, err := st.Installation(ctx)
//	err = w.Run(ctx, asynq.RedisClientOpt{Addr: "localhost:6379"}, jobs.Installation(name))
//
// The example is a complete program whose worker has a strategy of its own. A program that
// adds strategies to all commands of compactor calls cmd.Main instead; see
// deploy/examples/strategy.
//
// asynq may deliver a task twice, concurrently, late, or never. The claim, its fence
// token and the status of the run in Postgres make each run take effect once. Only
// outcome.go decides whether a failed attempt is retried.
//
// A task of a sweep carries many runs. Those that are decided by metadata are loaded, decided and ended
// together (page.go); the others are executed one by one, as single runs are.
//
// A Worker executes Config.Concurrency runs at a time. A Planner is safe for concurrent use,
// as the constructors of strategies and the model have to be.
//
// The package does not import the scheduler.
package worker

// Package scheduler starts runs: a sweep over the fleet at every slot of the
// cron, an event run after writes (the outbox, debounced), a run that was asked
// for in SQL, and, from what Postgres says alone, every run that was lost on the
// way. It rings for runs and never carries one out.
//
// Any number of schedulers may run; a row lease makes one of them lead, and only
// the leader works. The lead saves work, it guards nothing: every step is one
// statement whose effect happens once however many schedulers take it, and a
// task rung for twice has one effect. So losing the lead in the middle of
// anything is harmless, and whatever was not rung for is found again by the next
// leader.
//
// Postgres or Redis being away is waited out, with one log line when it goes and
// one when it is back.
//
// The package knows the store's lists and the queue's doorbell. It knows nothing
// of plans and strategies, and never the worker.
package scheduler

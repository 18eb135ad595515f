// Package store keeps sessions, messages and the ledger of runs in Postgres. It holds
// the only durable state of the system: queues and caches can be rebuilt from it.
//
// An application opens a store, appends each message of a conversation and sends View
// to its model:
//
//	st, err := store.Open(ctx, store.Config{URL: dsn})
//	seqs, _, err := st.Append(ctx, store.Key{Session: "chat-42"}, "gpt-4o", msgs)
//	view, revision, err := st.View(ctx, store.Key{Session: "chat-42"})
//
// The schema must exist (migrations.Up, or `compactor migrate up`). All methods of
// these, History and Cooldowns are safe for concurrent use, also from several
// processes: Append, Replace, Apply and Undo lock the session for the length of one
// transaction. Errors match the sentinels of this package by errors.Is. Methods that
// return ErrBusy or ErrUnavailable may be called again.
//
// Methods and files are grouped by caller:
//
//   - Store, app_*.go: the application's API: append, view, pins, usage reports, requests
//     for runs, undo, and History for an agent.Provider.
//   - Store.Worker, run_*.go: the protocol of a run: claim, load, apply or finish, requeue,
//     calls of models, cooldowns.
//   - Store.Scheduler, schedule*.go, sweep*.go: leader lease, policy thresholds, sweeps,
//     deliveries, reconciliation.
//   - Store.Operator, operator_*.go: lists, explanations, and the control of sweeps, bulk
//     operations, schedules, pauses, limits and policies.
//   - Store.Admin: audits and repairs, the archive, and erasure.
//
// dev.go has the few statements for the demo and the benches.
//
// The package depends on the schema and not on strategies, policies or queues. All
// times are the database's. Changes of a session go through the SQL functions that
// applications in other languages call too.
package store

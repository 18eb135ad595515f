// Package strategies decides what a compaction takes out of a view and what it
// puts in its place.
//
// A Strategy is pure: it sees a Transcript (metadata, and the content it asked
// for) and returns a chat.Plan. A Pipeline runs strategies in order, stops at a
// token budget, and falls back to a deterministic one; the Guard then holds the
// result to what must always be true of a view. The package knows no database,
// no clock and no network.
//
// Package builtin holds the strategies, package agent the hosts that run in an agent's own
// process.
package strategies

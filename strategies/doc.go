// Package strategies compacts conversations in memory: it shortens the messages that are
// sent to a model, so that they stay within its context window.
//
// [Compact] compacts a list of messages once:
//
//	s, err := builtin.Registry().New("sliding_window", plan.Params{"keep_last_groups": 20})
//	got, err := strategies.Compact(ctx, messages, s, strategies.Options{})
//	// send got.Messages to the model
//
// A [Conversation] holds the history of a tool loop and compacts it whenever it has grown.
// [Build] creates the pipeline of a policy: several strategies that run until the view is
// within a target, as in the worker.
//
// Compaction removes messages from the view, which is the part of the history that the
// model receives, and adds summaries and replacements to it. Whatever a strategy plans, the
// result is a valid view: tool calls keep their results, and system messages,
// pinned messages and the last user message stay verbatim. Signed and encrypted reasoning
// stays only where everything before it is unchanged, as newer models demand (see
// Options.FreeReasoning).
//
// Package builtin holds the strategies, package plan explains how to write one, package
// pipeline runs them, and package agent serves hosts that compact in their own loop or store
// histories. These packages use no database, and call models only through a
// plan.Summarizer.
package strategies

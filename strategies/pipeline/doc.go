// Package pipeline runs strategies one after the other and makes the result a valid
// view, whatever the strategies planned. It stores nothing and calls no model itself.
//
// A run needs a transcript, the steps, and a loader if the transcript holds metadata
// only:
//
//	p := pipeline.Pipeline{Steps: steps, Target: 50_000, Fallback: true}
//	r, err := p.Run(ctx, transcript, load)
//	// r.Plan is the one plan to apply; r.Steps and r.Repairs report the run.
//
// The order of a run, from the outside in:
//
//   - [Pipeline.Run] runs the steps and the guard. If the outcome cannot be made valid,
//     it discards the plans of the steps and repairs the view alone.
//   - [Draft.Run] runs one step: it loads the content that the strategy reads, asks for
//     its plan and pins, and applies the plan to the draft.
//   - [Draft.Apply] changes the draft and rejects additions that no view may contain.
//   - [Guard.Hold] enforces the invariants: it restores protected messages, completes
//     atomic groups, keeps one message at each position, drops additions that cover
//     nothing, moves summaries between groups, and repairs violations of the log.
//   - The fallback drops the oldest groups if the view still exceeds the target, and the
//     guard runs once more.
//   - Signed reasoning behind the first change leaves the view; if it belongs to an open tool
//     loop, everything is discarded instead (see Pipeline.FreeReasoning).
//   - [Draft.Plan] combines all changes into one minimal plan.
//   - [Pipeline.LimitGrowth] discards the plans of the steps if they make the view larger;
//     what a repair must add stays.
//
// A Pipeline and a Guard are immutable values and safe for concurrent use. A Draft and a
// transcript belong to one goroutine at a time.
package pipeline

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
// The order of a run, and the files that it passes through:
//
//   - [Pipeline.Run] makes a [Draft] of the transcript and runs the steps and the guard on it
//     (pipeline.go, draft.go). If the outcome cannot be made valid, it discards the plans of the
//     steps and repairs the view alone.
//   - Messages that PinTools and PinPaths name are pinned (pins.go).
//   - [Draft.Run] runs one step: it loads the content that the strategy reads, asks for its plan
//     and pins, and applies the plan (step.go). [Draft.Apply] rejects additions that no view may
//     contain.
//   - The [Guard] enforces the invariants on the places of the log: it restores protected
//     messages, completes atomic groups, keeps one message at each position, drops additions that
//     cover nothing, moves summaries between groups (guard.go), and repairs violations of the log
//     (repair.go). The fallback drops the oldest groups before it if the view still exceeds the
//     target, and once more after it.
//   - Signed reasoning after the first change leaves the view; if it belongs to an open tool
//     loop, everything is discarded instead (see Pipeline.FreeReasoning). [Draft.Plan] combines
//     all changes into one minimal plan (result.go).
//   - [Pipeline.LimitGrowth] discards the plans of the steps if they make the view larger;
//     what a repair must add stays.
//
// A Pipeline and a Guard are immutable values and safe for concurrent use. A Draft and a
// transcript belong to one goroutine at a time.
package pipeline

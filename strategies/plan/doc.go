// Package plan defines the contract between strategies and the pipeline that runs them:
// everything a strategy needs to plan a compaction, and nothing about how it is applied.
//
// A [Strategy] receives a [Transcript] and returns a chat.Plan: messages to exclude from
// the view, messages to include again, and additions, each of which is a summary of the
// messages it covers or a replacement of one message. A strategy does not change the
// transcript and does not check invariants; the pipeline completes atomic groups, keeps
// pinned messages and repairs the view. It must be immutable and safe for concurrent use,
// and should return the same plan for the same transcript.
//
// Entries of a transcript carry metadata: role, kind, number of tool calls and tokens.
// Plan on groups rather than on messages, so that a tool call and its results stay
// together: see [Transcript.Groups], [Transcript.GroupIncluded] and
// [Transcript.DropOldest]. This strategy excludes everything but the newest groups:
//
//	type keepNewest struct{ groups int }
//
//	func (keepNewest) Name() string { return "keep_newest" }
//
//	func (k keepNewest) Plan(_ context.Context, t *plan.Transcript) (chat.Plan, error) {
//		var excluded plan.SeqSet
//		for i := range max(0, len(t.Groups())-k.groups) {
//			if t.GroupIncluded(i) && !t.GroupPinned(i) {
//				t.GroupSeqs(&excluded, i)
//			}
//		}
//		return excluded.Exclude("keep_newest"), nil
//	}
//
// A strategy that reads the content of messages implements [Reader] to name them; the
// pipeline loads them before it calls Plan, which gets them with [Transcript.Read]. A
// strategy that implements [Pinner] keeps messages for the rest of the run. One that needs
// a summary calls [Do] with a [Task]; if it gets none, its error wraps [ErrNoSummary] and
// the pipeline goes on.
//
// A [Registry] creates strategies by name from the parameters of a configuration. The
// constructor reads each parameter from [Args], which checks it, collects the errors and
// supplies the help text:
//
//	err := registry.Register("keep_newest", "Keep the newest groups.",
//		func(a *plan.Args) (plan.Strategy, error) {
//			return keepNewest{groups: int(a.Int(plan.Int{
//				Name: "groups", Default: 20, Min: 1, Doc: "groups to keep",
//			}))}, nil
//		})
package plan

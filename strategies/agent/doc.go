// Package agent compacts conversations inside an agent's own process, without the
// compactor's worker.
//
// A Provider reads histories from sources, which stores or the host implement, compacts
// them and writes new messages back. An Engine decides when a tool loop compresses its
// messages and remembers per session how that went. Trigger, SplitMidLoop and JoinMidLoop
// serve hosts with a loop of their own, FeedbackOn describes a compression to its user.
package agent

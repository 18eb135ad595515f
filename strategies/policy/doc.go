// Package policy says when a session is compacted, how far, and by what: the
// window of its model, the start and target within it, the pipeline of
// strategies, and the guards around a run. It parses nothing itself (the types
// carry yaml and json tags), validates everything, resolves a policy for a model
// into plain numbers, and explains them in words.
//
// It knows no database, no queue, no clock and no strategy: the table of model
// windows and the registry of strategies come in as functions. What a strategy takes
// from a policy is declared by the strategy (FillFunc).
package policy

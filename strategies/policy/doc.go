// Package policy defines when a session is compacted, how far, and by which strategies:
// the window of its model, the start and target within it, the pipeline, and the guards of
// a run. It validates a policy, resolves it for a model, and describes the result.
//
// It uses no database, queue or clock, and no strategy by name: the windows of models and
// the registry of strategies are passed in as functions. A strategy declares the
// parameters that it takes from a policy (FillFunc).
package policy

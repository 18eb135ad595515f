// Package eval replays sessions under several compaction policies and measures
// what each of them retains, against the tokens it kept (see package retention).
//
// It runs sessions in parallel, keeps what was measured in a file so that a run can
// be resumed, puts intervals around every figure, and writes the outcome as a table,
// JSON, CSV and a page of HTML. What a policy does is none of its business: a Policy
// is a function from the messages before the cut to those that are kept.
package eval

// Package eval replays sessions under several compaction policies, in one round or several,
// and measures what each policy retains against the tokens it kept (see package retention).
//
// It processes sessions in parallel, stores measurements in a file so that a run can be
// resumed, computes confidence intervals, and writes the result as a table, JSON, CSV or
// HTML. It sees a Policy only as a function from the messages before the cut to those
// that are kept.
package eval

// Package attach puts an application's own table of messages under compaction: the application writes and reads its
// table as before.
//
// Triggers note which rows were inserted, updated or deleted, and nothing else, so that an insert costs little more
// and never fails or waits for the sake of the log. Drain reads the noted rows, in any process, and appends their
// messages to the log. A view with the columns of the table has the rows of the compacted view: each row that is
// still in it, a row with a shorter text in place of one that was rewritten, and for a summary a row with the key and
// the time of the first one that it replaces. Rows whose notes were not drained yet are behind them, so that it has
// every committed row.
//
// All of an attachment is in a schema of its own, which Detach drops.
package attach

// Package extract summarizes a conversation without a model, from its structure: roles, order, tools, arguments, paths, exit codes,
// error flags, sizes and times, which mean the same in every language. One table of words adds to it (tables.go).
//
// A summary is filled in the order in which a successor needs it, so that a small one loses the least: the newest request with the
// text that it replies to, open tasks, an earlier summary, how the files and the checks stand, earlier requests with their outcome, calls
// that changed something, code of the changes, and in a conversation without calls the sentences with the rarest words that come
// back. It ends with a block of references: ids, addresses and paths that stand nowhere else, with the words that label them. Lines
// that quote the user begin with >.
//
// A Digest reads messages one at a time, each into the part that owns its subject:
//
//	talk        requests of the user and texts of the assistant, turn by turn
//	ledger      calls with their arguments and results, and how often later messages name their values
//	tree        edits, commits, checks and failures
//	tasks       the list of tasks that a tool keeps
//	vocabulary  in how many messages each word occurs
//
// The sections (sections.go) make entries of these, and a page places the entries in its room. Packages below know
// nothing of messages:
//
//	internal/prose       lines and sentences of a text
//	internal/identifier  the identifiers of a text, and the words that label them
//	internal/reference   the identifiers of a conversation, ranked; the block of references
//
// Its memory is bounded, whatever it reads. Equal messages always give equal texts. The package does not depend on sessions, policies
// or models. Functions are pure and safe for concurrent use; a Digest is not.
package extract

// Package retention measures, without a model, how much of the information that a
// conversation uses later is still present after compaction.
//
// A session is cut in two. The identifiers (see package extract) that occur before the
// cut and are used after it have to be retained. A policy compacts the messages before
// the cut, and the score counts the identifiers left in its result, together with the
// tokens it kept:
//
//   - loose: the identifier occurs verbatim in the kept text.
//   - keyed: it occurs after a word that labelled it before the cut. A list of bare
//     identifiers scores 100 % loose and about half of that keyed.
//   - strict: loose, restricted to identifiers that the assistant had to remember: no
//     other message after the cut repeats them before the assistant uses them.
//
// Identifiers and tokens of system messages are not counted, because every policy keeps
// those messages. A token is a quarter of a character of content or of names and
// arguments of tool calls, independent of any tokenizer.
//
// The package sees a policy only as a function from messages to messages. Its functions
// are pure; a Case is safe for concurrent use.
package retention

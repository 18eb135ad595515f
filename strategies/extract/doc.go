// Package extract summarizes a conversation without a model: what was asked, done,
// decided and left open, in the words of the messages, and a block of references, the
// identifiers that are most likely to be needed again with the words that label them.
//
// A Digest reads messages one at a time and keeps a bounded amount of them, so a
// conversation of any length costs the same memory. The same messages always give the
// same text. The package knows nothing of sessions, policies or models.
//
// All finds the identifiers of a text: paths, file names, ids, order codes, hashes,
// e-mail addresses, long numbers and quoted names, in linear time. What counts as one
// is given by the expressions of each Kind, with the meaning they have in Python: \w,
// \d and \b are Unicode, [a-z] is not. Functions are pure and safe for concurrent use;
// a Digest is used by one goroutine at a time.
package extract

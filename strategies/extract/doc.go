// Package extract summarizes a conversation without a model. The summary quotes requests,
// results, decisions and open questions, and ends with a block of references: the
// identifiers that are most likely to be needed again, with the words that label them.
//
// A Digest reads messages one at a time in bounded memory. Equal messages always give
// equal texts. The package does not depend on sessions, policies or models.
//
// All finds the identifiers of a text in linear time: paths, file names, ids, order codes,
// hashes, e-mail addresses, long numbers and quoted names. Each Kind is defined by a
// regular expression with Python's semantics: \w, \d and \b are Unicode, [a-z] is not.
// Functions are pure and safe for concurrent use; a Digest is not.
package extract

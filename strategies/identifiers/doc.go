// Package identifiers finds what a conversation must not lose the spelling of:
// paths, file names, ids, order codes, hashes, e-mail addresses, long numbers and
// quoted names, and the words that label them.
//
// It reads one text at a time, in time linear in its length, and knows nothing of
// messages, tokens or summaries. What counts as an identifier is given by the
// expressions of each Kind, with the meaning they have in Python: \w, \d and \b are
// Unicode, [a-z] is not. All functions are pure and safe to call concurrently.
package identifiers

// Package redact masks secrets in text: keys and tokens of known vendors, passwords in
// assignments, headers, URLs, connection strings, commands and sentences of many languages,
// hashes of passwords, private keys, and numbers of payment cards.
//
// The knowledge is a table, secrets.tsv, which says at its beginning how it is read; the code is the engine for it: views of
// a text without escapes, passes that find secrets by their format or by their context, traps that keep other values, and
// the values that are known from other texts. Redact applies it to one text; Secrets applies it to texts that
// belong together, and masks what it has found in one of them in all. Both take linear time,
// keep all other text byte for byte, and count the masked secrets by kind. Redact has no state
// and is safe for concurrent use.
package redact

// Package redact masks secrets in text: keys and tokens of known vendors, passwords in
// assignments, headers, URLs, connection strings, commands and sentences of many languages,
// hashes of passwords, private keys, and numbers of payment cards.
//
// There is one set of rules. Redact applies it to one text; Secrets applies it to texts that
// belong together, and masks what it has found in one of them in all. Both take linear time,
// keep all other text byte for byte, and count the masked secrets by kind. Redact has no state
// and is safe for concurrent use.
package redact

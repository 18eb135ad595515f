// Package redact masks secrets in text: keys and tokens of known vendors, passwords
// in assignments, headers, URLs and connection strings, and private keys.
//
// Redact is the one entry point and the one set of rules. It runs in linear time,
// keeps all other text byte for byte, and counts what it masked by kind. Functions
// are pure and safe for concurrent use.
package redact

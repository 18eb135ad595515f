// Package redact masks secrets in text: keys and tokens of known vendors, passwords in
// assignments, headers, URLs and connection strings, and private keys.
//
// Redact is the only entry point; there is one set of rules. It takes linear time, keeps all
// other text byte for byte, and counts the masked secrets by kind. The package has no state
// and is safe for concurrent use.
package redact

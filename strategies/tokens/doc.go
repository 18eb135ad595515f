// Package tokens counts the tokens of messages, and maps the name of a model to its
// tokenizer and context window.
//
// It imports only chat of this module and never uses the network: the ranks of its
// tokenizers are compiled in. Counters are immutable and safe for concurrent use, and
// take time linear in the length of their input.
package tokens

// Package chat holds the vocabulary of the project: messages, the metadata that
// planning runs on, atomic groups, turns, the view a model is given, and what
// makes such a view valid. It also reads and writes chat-completions JSON; other
// formats are read and written by its sub-package formats.
//
// It is a leaf: it knows no database, no queue, no tokenizer and no strategy.
// All of its types are plain values; functions are pure and safe to call
// concurrently on values that are not written to.
package chat

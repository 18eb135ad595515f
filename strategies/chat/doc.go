// Package chat defines the types that all other packages share: messages, the metadata on
// which planning runs, atomic groups, plans, and the validity and repair of a view. It also
// reads and writes chat-completions JSON; package formats handles other formats.
//
// It is a leaf and depends on no database, queue, tokenizer or strategy. Its types are plain
// values; functions are safe for concurrent use on values that are not written to.
package chat

// Package extractive summarizes a conversation without a model: what was asked, done,
// decided and left open, in the words of the messages, and a block of references, the
// identifiers that are most likely to be needed again with the words that label them.
//
// It reads messages one at a time and keeps a bounded digest of them, so a conversation
// of any length costs the same memory. It knows nothing of sessions, policies or models;
// the same messages always give the same text.
package extractive

// Package tokens counts what messages cost a model, and knows which tokenizer
// and which context window a model has.
//
// It knows messages, but no policy, no store and no strategy. It never goes to
// the network: the ranks of its tokenizers are compiled in. Counters are
// immutable and safe for concurrent use, and no input takes them more than time
// proportional to its length.
package tokens

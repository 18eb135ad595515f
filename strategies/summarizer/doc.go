// Package summarizer writes the summaries that are stored: it cleans and shortens what
// is to be summarized, reads it in parts where it is too long for the model, asks, pays
// once, checks what came back, and puts what a model would lose beside its prose. Without
// a model it writes an extract.
//
// It is the summarize.Writer of a run. It knows no database and no queue: what was paid
// for is kept by who gives it Answers.
package summarizer

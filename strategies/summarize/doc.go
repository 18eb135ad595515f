// Package summarize is what surrounds the model that writes a summary: what it is
// asked, and what must not reach it.
//
// A strategy that needs a summary makes a Request and is given a Summarizer; it
// does not know which model answers, or whether one does.
package summarize

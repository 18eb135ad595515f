// Package term formats the output of the commands: tables, progress, colour on
// terminals, JSON elsewhere, and numbers.
//
// It strips control characters from text, so that stored conversations cannot control
// the terminal that shows them.
package term

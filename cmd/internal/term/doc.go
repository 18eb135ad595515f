// Package term is how the commands talk to people and to scripts: tables,
// progress, colour where there is a terminal to show it, JSON where there is not,
// and numbers written the same way everywhere.
//
// It writes to the writers it is given and knows nothing of what it prints. Text
// that comes from users' data is stripped of control characters, so that a stored
// conversation cannot drive the terminal of whoever looks at it.
package term

package formats

import "cmp"

// PlainSession is plainSession, for tests.
var PlainSession = plainSession

// Detect returns the format by the beginning of a file, "chat" if no other one matches.
func Detect(head []byte) string {
	return cmp.Or(detect(head).name, "chat")
}

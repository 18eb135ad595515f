package formats

// PlainSession is plainSession, for tests.
var PlainSession = plainSession

// Detect returns the format by the beginning of a file, "chat" if no other one matches.
func Detect(head []byte) string {
	name, _, _ := detect(head)
	return name
}

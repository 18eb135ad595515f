package formats

// PlainSession is plainSession, for tests.
var PlainSession = plainSession

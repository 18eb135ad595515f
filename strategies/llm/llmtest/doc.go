// Package llmtest is an OpenAI-compatible server that plays a script of answers and
// failures, for tests and the demo.
//
// A response depends on the request and the step alone, so a script can be repeated. The
// package does not import the client that it tests.
package llmtest

// Package llmtest is an OpenAI-compatible server that plays a script: good answers,
// and every way in which real servers fail. Tests use it, and the demo can.
//
// It knows the wire and nothing of the client that it is to be tried with. What it
// answers depends on what it is sent and on the step alone, so that the same script
// plays the same way again.
package llmtest

// Package trajectory compresses recorded runs of an agent, in the ShareGPT format
// (turns of "from" and "value"), to a token target. The first and last turns are kept
// unchanged; one summary replaces as many of the turns between them as necessary.
//
// Compress processes one trajectory, Run a stream of them with one JSON value per line.
// The package neither opens files nor calls models.
package trajectory

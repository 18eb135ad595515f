// Package trajectory compresses recorded runs of an agent, in the ShareGPT format
// (turns of "from" and "value"), to a token target: what the run starts with and
// what it ends with stay as they are, and as many turns between as it takes become
// one summary.
//
// Compress works on one trajectory; Run on a stream of them, one JSON object per
// line. The package knows neither files nor models.
package trajectory

// Package extract summarizes a conversation without a model. It is filled in the order of
// what a successor needs: the active request in full, the goal, the user's constraints and other
// requests, the state, what calls opened and no later call closed (processes, branches,
// subagents, tasks, with their ids), what was done by which call with what result, failures that
// no later success closed, files with what edits changed in them; in a chat without tools, the
// sentences that name people, places, numbers or dates. What room is left goes to decisions,
// findings and what was answered to each request. The summary ends with a block of references: the identifiers that are most
// likely to be needed again, with the words that label them; a mark tells what the user said.
//
// A Digest reads messages one at a time in bounded memory. Equal messages always give
// equal texts. The package does not depend on sessions, policies or models.
//
// What needs no conversation is read by packages below, of which each imports only those before it:
//
//	internal/charclass   runs of characters of a class
//	internal/queue       a priority queue
//	internal/prose       lines, sentences and words of a text
//	identifier           the identifiers of a text, and the words that label them
//	internal/reference   the identifiers of a conversation, ranked; the block of references
//	internal/toolname    what the name of a tool says
//	internal/argument    the arguments of calls, and results that are JSON
//	internal/shell       command lines: what they show, change and check
//	internal/toolresult  outputs without their wrapping, and the failures in them
//
// Here is the rest: a Digest reads messages into a history of turns, calls and files; the history makes items of
// what it knows, each for a section; a page places those that are worth most in its room, and is the summary.
//
// Functions are pure and safe for concurrent use; a Digest is not.
package extract

package builtin

import (
	"fmt"

	"github.com/sessionstore/compactor/strategies/plan"
)

// builtins lists the strategies of this package by origin. To add a strategy, write a file
// for it and add a line here.
var builtins = []struct {
	name, doc   string
	constructor plan.Constructor
}{
	// Microsoft Agent Framework.
	{"truncation", "drop the oldest groups once the view is too large", newTruncation},
	{"sliding_window", "keep the newest groups", newSlidingWindow},
	{"selective_tool_call", "drop all but the newest tool calls", newSelectiveToolCall},
	{"tool_result", "collapse all but the newest tool calls into their results", newToolResult},
	{"summarization", "replace all but the newest messages by a summary", newSummarization},
	{"token_budget", "run strategies until the view is within a token budget, then drop the oldest groups", newTokenBudget},
	{"context_window", "collapse older tool calls at one share of the context window, drop the oldest groups at another", newContextWindow},
	// Timbal.
	{"keep_last_n_turns", "keep the newest turns", newKeepLastTurns},
	{"keep_last_n_messages", "keep the newest messages", newKeepLastMessages},
	{"compact_tool_results", "drop or replace all but the newest tool results", newCompactToolResults},
	{"summarize", "keep one summary of all but the newest messages, updated by each run", newSummarize},
	// Hermes.
	{"prune_tool_results", "replace repeated and old tool outputs by one line each, and cut long tool arguments", newPruneToolResults},
	{"handoff", "summarize the messages between head and tail as notes for the next assistant, prune old tool results", newHandoff},
	{"extractive", "handoff with a summary that is extracted without a model: what the user said, what was done, files, references", newExtractive},
	// Split points: Codex, Gemini CLI, opencode.
	{"preserve_user_messages", "keep the messages of the user, and a summary of everything else", newPreserveUserMessages},
	{"preserve_recent_fraction", "keep the newest share of the view, and a summary of the rest", newPreserveRecentFraction},
	{"preserve_recent_turns", "keep the newest turns, and a summary of the rest", newPreserveRecentTurns},
	// Single purposes, mostly steps of a pipeline.
	{"attribution", "apply rules by source, role and tool of messages", newAttribution},
	{"clamp", "cut the middle out of messages that are too large", newClamp},
	{"dedupe_reads", "replace the results of file reads that were repeated or are out of date", newDedupeReads},
	{"clear_tool_arguments", "shorten the large arguments of older tool calls", newClearToolArguments},
	{"strip_media", "remove images and other media from older turns", newStripMedia},
	{"protect_head", "pin the beginning for all later steps", newProtectHead},
}

// Registry returns a new registry of the built-in strategies, to which others may be added.
func Registry() *plan.Registry {
	r := &plan.Registry{}
	for _, b := range builtins {
		if err := r.Register(b.name, b.doc, b.constructor); err != nil {
			panic(fmt.Sprintf("built-in strategies: %v", err)) // duplicate name
		}
	}
	return r
}

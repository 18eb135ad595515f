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
	{"summarize", "keep one summary of all but the newest messages, brought up to date each time", newSummarize},
	// Hermes.
	{"prune_tool_results", "replace repeated and old tool outputs by one line each, and cut long tool arguments", newPruneToolResults},
	{"handoff", "summarize what lies between head and tail as notes for who takes over, prune old tool results", newHandoff},
	// Split points: Codex, Gemini CLI, opencode.
	{"preserve_user_messages", "keep what the user said, and a summary of everything else", newPreserveUserMessages},
	{"preserve_recent_fraction", "keep the newest share of the view, and a summary of what is before it", newPreserveRecentFraction},
	{"preserve_recent_turns", "keep the newest turns, and a summary of what is before them", newPreserveRecentTurns},
	// Single purposes, mostly steps of a pipeline.
	{"attribution", "go by who said it: rules by source, role and tool", newAttribution},
	{"clamp", "cut the middle out of messages that are too large", newClamp},
	{"dedupe_reads", "stub file reads that were done again or are out of date", newDedupeReads},
	{"clear_tool_arguments", "shorten the large arguments of older tool calls", newClearToolArguments},
	{"strip_media", "leave out images and other media of older turns", newStripMedia},
	{"protect_head", "keep the beginning, whatever later steps want", newProtectHead},
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

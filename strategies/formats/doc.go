// Package formats reads and writes the files that conversations come in: those of
// model APIs (chat-completions, Responses items, Anthropic messages), of training
// sets (ShareGPT) and the session logs of coding agents (Claude Code, Codex, pi).
//
// Reading gives chat-completions messages. What they have no field for and what
// is needed for the way back is kept in the Extra of messages and sessions, under
// the name of the format ("claude_code", "codex", …); what any reader may want to
// know has a key of its own there:
//
//   - is_error: a tool result that is an error
//   - is_compact_summary: a summary that an agent wrote of what came before it
//   - is_meta: a message that the program, not the user, has written
//   - parent_id: the message this one follows, where it is not the one before
//
// A record that is no message is counted by its kind in the Report of its
// session. What a format cannot hold is counted in the Losses of Write.
//
// Some things say the same and are no loss: content that is null, "" or an empty
// list; one plain text as a string or as the only part; empty arguments and {};
// white space in arguments; reasoning that is empty.
//
// Reasoning is kept whole, with the signature that belongs to it, or dropped
// whole: it is written only to formats of the family it came from.
//
// The package knows no more of the module than package chat. Its functions are
// safe for concurrent use; a Reader is for one goroutine.
package formats

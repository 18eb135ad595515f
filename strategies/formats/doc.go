// Package formats reads and writes files of conversations: those of model APIs
// (chat-completions, Responses items, Anthropic messages), of training sets (ShareGPT) and the
// session logs of coding agents (Claude Code, Codex, pi). Others are only read: each is a table of
// paths, and one reader reads them all, also row by row from the tables of an application (Records).
//
// Reading gives chat-completions messages. Fields without an equivalent there that are
// needed to write the same format again are kept in the Extra of messages and sessions,
// under the name of the format ("claude_code", "codex", …). Some facts have a key of their
// own in Extra, whatever the format:
//
//   - is_error: a tool result that is an error
//   - is_compact_summary: a summary that an agent wrote of the messages before it
//   - is_meta: a message written by the program rather than the user
//   - parent_id: the message that this one follows, if that is not the one before it
//
// Reading is strict: a file is of a format only where its records have the fields that the
// format requires, and one that looks like another program's is refused by that name. Texts of
// the user are read wherever a host keeps them: as a message, in a queue or an attachment, or
// in the history of a compaction, once each.
//
// A record that is not a message is counted by its kind, with the line of the first, in the
// ReadReport of its session; so are fields and parts of a table's format that no message holds, and
// lines that were not written whole, with SkipLines. The
// parts of a session that a format cannot hold are counted in the Losses of Write.
//
// Some forms are equivalent, and changing one into another is no loss: content that is null,
// "" or an empty list; one plain text as a string or as the only part; empty arguments and
// {}; white space in arguments; reasoning that is empty.
//
// Reasoning is kept whole, with its signature, or dropped whole: it is written only to
// formats of the family that it came from.
//
// The functions are safe for concurrent use; a Reader is not.
package formats

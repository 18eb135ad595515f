// Package retention measures, without a model, how much of the information that a
// conversation uses later is still present after compaction.
//
// A session is cut in two. The identifiers (see package extract) that occur before the
// cut and are used after it have to be retained. A policy compacts the messages before
// the cut, and the score counts the identifiers left in its result, together with the
// tokens it kept:
//
//   - loose: the identifier occurs verbatim in the kept text.
//   - keyed: it occurs after a word that labelled it before the cut. A list of bare
//     identifiers scores 100 % loose and about half of that keyed.
//   - strict: loose, restricted to identifiers that the assistant had to remember: no
//     other message after the cut repeats them before the assistant uses them.
//
// A Detail has further measures, of identifiers and of other parts of the conversation:
//
//   - rare: loose, of identifiers that occur in at most 5 % of a Corpus, or in two sessions.
//   - next10: the identifiers that the assistant uses in the 10 messages after the cut.
//   - asks, asks3: the first 60 characters of each message of the user, and of the latest 3.
//   - constraints: sentences of the user with never, always, prefer and the like in one of six
//     languages, nearly.
//   - errors: lines about failures in the latest tool results before the cut, nearly.
//   - words: the words that occur in at most 5 % of the messages before the cut, or in two, and of
//     the sessions of a Corpus, and that the user or the assistant uses after it. They are runs of
//     three letters or more, case apart, or of a script without blanks three adjacent characters.
//     No list and no pattern chooses them.
//   - facts: the annotated answers of the session that stood before the cut.
//   - reference precision: how many of the identifiers in the block of references of a
//     summary are used after the cut; reference share: the block's share of the tokens.
//
// A sentence is kept nearly if a line holds four of five of its words of three characters or more, of
// a script without blanks of its sequences of three.
//
// Identifiers and tokens of system messages are not counted, because every policy keeps
// those messages. A token is four characters of content or of names and
// arguments of tool calls, independent of any tokenizer, unless a Sizer has a counter. Sessions
// are cut by the former, at the same message whatever counts.
//
// The package sees a policy only as a function from messages to messages. Its functions
// are pure; a Case is safe for concurrent use.
package retention

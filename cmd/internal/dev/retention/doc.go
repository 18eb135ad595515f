// Package retention measures, without a model, what a compacted history still
// holds of what the conversation went on to need.
//
// A session is cut in two. The identifiers (see package identifiers) that stood
// before the cut and are used behind it are what has to be retained; a policy
// compacts what is before the cut, and the measure counts how many of them its
// result still has, against the tokens it kept:
//
//   - loose: the identifier stands in what was kept, letter by letter.
//   - keyed: it stands behind a word that labelled it before. A list of bare
//     identifiers scores 100 % loose and about half of that keyed.
//   - strict: loose, of those alone that the assistant had to remember: nobody
//     else said them again behind the cut before it used them.
//
// Identifiers of system messages do not count, as every policy keeps those, and
// neither do their tokens. A token is a quarter of a character of content, names
// and arguments of tool calls, whatever a tokenizer would say.
//
// The package knows strategies only as functions from messages to messages. Its
// functions are pure; a Case is safe for concurrent use.
package retention

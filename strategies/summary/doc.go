// Package summary writes the summaries that are stored. A Writer takes the messages
// that a strategy wants summarized and, in order,
//
//   - redacts secrets and indexes the sources (plan.Task.Mask),
//   - fills the digest, from which references and extracts are made: with the messages, or, if
//     earlier summaries stand for some, with all that these cover (plan.Originals), so that a
//     chain of summaries loses no more than one of them,
//   - shortens the messages and splits them into parts that fit the model,
//   - asks the model with one prompt, which numbers the messages, storing each answer before it
//     is used (Prompt, AnswerStore),
//   - cleans and validates the answer, checks it against the messages that its items name, and may
//     ask for one repair (Clean),
//   - assembles the stored text: how to read it, the user's request, the answer with its links to
//     messages (Links), the log of actions and the references.
//
// Without a model it writes an extract (package extract); the text of an operator takes the way of
// an answer (Operator). The package knows no database and no queue. A Writer serves one step of
// one run and is used by one goroutine at a time.
package summary

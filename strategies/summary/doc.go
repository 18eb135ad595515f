// Package summary writes the summaries that are stored. A Writer takes the messages
// that a strategy wants summarized and, in order,
//
//   - redacts secrets and indexes the sources (plan.Task.Mask, SourceIndex),
//   - fills the digest, from which references and extracts are made: with the messages, or, if
//     earlier summaries stand for some, with all that these cover (plan.Originals), so that a
//     chain of summaries loses no more than one of them,
//   - shortens the messages and splits them into parts that fit the model (trimMessages),
//   - asks the model with one prompt, which gives it the user's messages and what will be
//     appended as facts, storing each answer before it is used (Prompt, Fact, AnswerStore),
//   - cleans and validates the answer and may ask for one repair (Clean, Validator, RepairNote),
//   - assembles the stored text: the answer, the active task in the user's words, the log of
//     actions and the references that a model would lose (InsertRequest).
//
// Without a model it writes an extract (package extract). The package knows no
// database and no queue. A Writer serves one step of
// one run and is used by one goroutine at a time.
package summary

// Package summary writes the summaries that are stored. A Writer takes the messages
// that a strategy wants summarized and, in order,
//
//   - redacts secrets and indexes the sources (plan.Task.Redact, SourceIndex),
//   - shortens the messages and splits them into parts that fit the model (trimMessages),
//   - asks the model with one prompt, storing each answer before it is used
//     (Prompt, AnswerStore),
//   - cleans and validates the answer and may ask for one repair (Clean, Validator, RepairNote),
//   - assembles the stored text: the answer, the active task in the user's words and
//     the references that a model would lose (InsertRequest).
//
// Without a model it writes an extract (package extract). The package knows no
// database and no queue. A Writer serves one step of
// one run and is used by one goroutine at a time.
package summary

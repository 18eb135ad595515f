// Package llm is the model client: one call to one of a chain of models behind
// OpenAI-compatible servers, with deadlines, retries within a budget, limits that
// all workers share, and every failure told by a class.
//
// A Client knows models, not conversations: it sends the two texts it is given and
// returns the model's words unjudged. Whether they are a summary is for the gate.
// What keeps a caller out of trouble is here, though: an answer that was cut off
// says so (FinishReason), what failed attempts cost is counted, and neither keys
// nor prompts nor answers get into an error or a log line.
//
// What counts as an answer and what as a failure:
//
//   - Text with any finish reason but "content_filter" is an answer. One that was
//     cut off has FinishReason FinishLength; its text is there, for the caller to
//     judge.
//   - A refusal in the field that servers have for it is an answer with Refusal set.
//   - The finish reason "content_filter" is the failure ContentFilter: what is left
//     of a filtered text is no summary. Another model may answer.
//   - No text, no choices, no JSON, an error in place of an answer, or a connection
//     that ends within one are the failure MalformedAnswer.
package llm

// Package llm calls models of OpenAI-compatible servers. A Client has a chain of
// models and calls them in order until one answers, with deadlines, retries within a
// budget, limits per minute that workers share, and a class for every failure.
//
// Requests are those of github.com/sashabaranov/go-openai and sent by its client, through exchange.
//
// A Client does not judge answers: package summary validates them. Neither keys nor
// prompts nor answers are in its errors and log lines.
//
// Responses are classified as follows:
//
//   - Text with any finish reason but "content_filter" is an answer. FinishLength marks
//     one that was cut off.
//   - A refusal in the field for it is an answer with Refusal set.
//   - The finish reason "content_filter" is the failure ContentFilter. Another model may
//     answer.
//   - A response without text, without choices, that is not JSON, holds an error or ends
//     early is the failure MalformedAnswer.
package llm

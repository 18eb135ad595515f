// Package summarize is what surrounds the model that writes a summary: what it is
// asked, what must not reach it, and what its answer has to be before it counts.
//
// A strategy that needs a summary makes a Request and is given a Summarizer; it
// does not know which model answers, or whether one does. Around the call, in order:
//
//   - Coverable: no instruction and no pinned message is to be summarized.
//   - Task.Redact masks the secrets, before anything is cut.
//   - Evidence takes every covered message, one by one, as it was said.
//   - PreTrim and Trimmer make them small enough, and say what they cut.
//   - Size says how large the summary may be, Prompt what is asked.
//   - Gate reads the answer, or rejects it with a Code; RepairNote is for one more try.
//   - Assemble takes the active task, the last user message and pins from the messages.
//
// All of it is pure: no clock, no network, no state.
package summarize

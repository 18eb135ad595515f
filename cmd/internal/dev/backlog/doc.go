// Package backlog makes up a backlog of conversations for demonstrations and
// measurements: support chats and coding-agent sessions with tool calls, in the
// shapes and sizes that real deployments show, the same for the same seed.
//
// What Generate gives, by default 400 sessions:
//
//   - 58 % support chats (an airline and a shop), 42 % coding agents (Go and Python).
//   - Models by window, so that a backlog of a few megabytes has sessions that are
//     over it: support on gpt-4 (8,192 tokens, 62 %), gpt-3.5-turbo (16,385, 36 %)
//     and gpt-4o (128,000, 2 %); coding on gpt-4-32k (32,768, 42 %), gpt-3.5-turbo
//     (38 %), gpt-4 (12 %) and gpt-4o (8 %).
//   - Lengths are log-normal shares of the window, median 0.42, sigma 0.7, cut at
//     1.25: about a quarter of the sessions stand above 0.75 of their window, and
//     the longest hold some 20 times the tokens of the median. The whole is about 5
//     million tokens by characters / 4, 20 MB of text, 28,000 messages, made in
//     0.2 s.
//   - Every session starts with a system prompt. A support turn takes no tool step
//     (35 %), one or two, now and then of parallel calls (15 %); a coding task takes 2 to 9 tool steps, a fifth
//     of them parallel calls. Results are order and flight records, numbered source
//     files, test output, logs, search hits and stack traces, a few per cent of
//     them errors, mostly short and now and then as long as an eighth of the window.
//   - 30 % of the coding sessions carry reasoning (reasoning_content).
//   - 2 % of the sessions have one defect that real logs have: a call that was
//     abandoned without a result before the user went on, or a result whose call
//     is missing. The label "defect" says which.
//   - Messages have ids, unique in their session, and times that only go forward,
//     spread over the ten days before Options.End.
//
// All names, companies and texts are made up. The package knows only chat.
package backlog

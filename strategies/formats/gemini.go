package formats

import "github.com/sessionstore/compactor/strategies/chat"

// geminiParts are the parts of a Content of the Gemini API (googleapis/js-genai 1.x, src/types.ts). A call has
// no id before Gemini 3; its result is the one at its place.
var geminiParts = []rule{
	{when: "thought=true", is: isReasoning, text: "text", ignore: "thought"},
	{when: "functionCall", is: isCall, id: "functionCall.id", name: "functionCall.name", args: "functionCall.args"},
	{
		when: "functionResponse", is: isResult, id: "functionResponse.id", name: "functionResponse.name", output: "functionResponse.response",
		failed: "functionResponse.response.error",
	},
	{when: "inlineData", is: isMedia, data: "inlineData.data", mime: "inlineData.mimeType", file: "inlineData.displayName"},
	{when: "fileData", is: isMedia, url: "fileData.fileUri", mime: "fileData.mimeType", file: "fileData.displayName"},
	{when: "executableCode", text: "executableCode.code", ignore: "executableCode.language executableCode.id"},
	{when: "codeExecutionResult", text: "codeExecutionResult.output", ignore: "codeExecutionResult.outcome codeExecutionResult.id"},
	{when: "text", text: "text", ignore: "thought"},
	{when: "parts", is: isList, text: "parts", ignore: "role"}, // a system instruction
}

var geminiRoles = map[string]chat.Role{"user": chat.RoleUser, "model": chat.RoleAssistant, "function": chat.RoleTool}

// gemini describes requests to the Gemini API, and lists of their Contents, as the Gemini CLI saves them by
// /chat save.
var gemini = table{
	list:   "contents history",
	doc:    kind{session: "session_id id", model: "model", system: "systemInstruction system_instruction"},
	roles:  geminiRoles,
	kinds:  []kind{{when: "role parts", role: "role", from: []source{{at: "parts"}}}},
	parts:  geminiParts,
	unwrap: "output error result",
}

// geminiCLI describes session files of the Gemini CLI: a document, and from version 0.39 on lines, of
// which one with the id of another takes its place. Facts: google-gemini/gemini-cli 016443b
// (packages/core/src/services/chatRecordingService.ts, chatRecordingTypes.ts).
var geminiCLI = table{
	list: "messages",
	doc: kind{
		session: "sessionId", title: "summary",
		ignore: "projectHash startTime lastUpdated directories kind activeExtensionName memoryScratchpad",
	},
	kinds: []kind{
		{when: "sessionId projectHash !type", other: "=header", session: "sessionId", title: "summary"},
		{when: "$rewindTo", other: "=$rewindTo", rewind: "$rewindTo"},
		{when: "$set", other: "=$set", title: "$set.summary"},
		{
			when: "type=user content?", role: "=user", id: "id", at: "timestamp", replaces: true,
			from: []source{{at: "content"}}, ignore: "type displayContent",
		},
		geminiAnswer("type=gemini toolCalls.0", append([]rule{{when: "functionCall", is: isNothing}}, geminiParts...)), // in toolCalls, too
		geminiAnswer("type=gemini content?", nil),
		{when: "type=info|error|warning", other: "type", id: "id", replaces: true},
	},
	parts:  geminiParts,
	unwrap: "output error result",
	notes:  "header $set $rewindTo",
}

func geminiAnswer(when string, parts []rule) kind {
	return kind{
		when: when, role: "=assistant", id: "id", at: "timestamp", model: "model", replaces: true,
		from: []source{
			{at: "thoughts", parts: []rule{{
				when: "description", is: isGroup, from: []source{{at: "subject", text: isReasoning}, {at: "description", text: isReasoning}},
				ignore: "timestamp",
			}}},
			{at: "content", parts: parts},
			{at: "toolCalls", parts: []rule{{
				when: "name", is: isCall, id: "id", name: "name", args: "args", done: "status=success|error|cancelled", failed: "status=error|cancelled",
				output: "result resultDisplay", ignore: "status timestamp agentId displayName description resultDisplay renderOutputAsMarkdown",
			}}},
		},
		ignore: "type displayContent tokens",
	}
}

// qwenCode describes session files of Qwen Code: lines as those of Claude Code, with Contents of the Gemini
// API as messages. Facts: QwenLM/qwen-code 015346f (packages/core/src/services/chatRecordingService.ts),
// ~/.qwen/projects/*/chats/*.jsonl.
var qwenCode = table{
	roles: geminiRoles,
	kinds: []kind{
		{
			when: "type=user|assistant|tool_result message.parts", role: "message.role", id: "uuid", parent: "parentUuid", at: "timestamp",
			session: "sessionId", model: "model", meta: "subtype=notification|cron|goal_runtime", from: []source{{at: "message.parts"}},
			ignore: "type subtype cwd version gitBranch usageMetadata contextWindowSize provenance promptId daemonPromptId deliveredTurn " +
				"goalContext backgroundTurn agentId agentName agentColor isSidechain agentRunId agentRound externalInputKind forkedFrom",
		},
		{when: "type=system uuid", other: "type subtype", id: "uuid", parent: "parentUuid", session: "sessionId", title: "systemPayload.customTitle"},
	},
	parts:  geminiParts,
	unwrap: "output error result",
}

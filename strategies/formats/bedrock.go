package formats

import "github.com/sessionstore/compactor/strategies/chat"

// bedrock describes requests and messages of the Converse API of Amazon Bedrock (service model of
// bedrock-runtime, 2023-09-30), with bytes in base64 as the AWS CLI writes them.
var bedrock = table{
	list:  "messages",
	doc:   kind{session: "session_id", model: "modelId", system: "system"},
	roles: map[string]chat.Role{"user": chat.RoleUser, "assistant": chat.RoleAssistant},
	kinds: []kind{{when: "role content", role: "role", from: []source{{at: "content"}}}},
	parts: []rule{
		{when: "text", text: "text"},
		{when: "toolUse", is: isCall, id: "toolUse.toolUseId", name: "toolUse.name", args: "toolUse.input"},
		{when: "toolResult", is: isResult, id: "toolResult.toolUseId", output: "toolResult.content", failed: "toolResult.status=error", ignore: "toolResult.status"},
		{when: "json", is: isResult, output: "json"},
		{when: "image", is: isMedia, data: "image.source.bytes", mime: "image.format"},
		{when: "document", is: isMedia, data: "document.source.bytes", mime: "document.format", file: "document.name"},
		{when: "reasoningContent.reasoningText", is: isReasoning, text: "reasoningContent.reasoningText.text", signature: "reasoningContent.reasoningText.signature"},
		{when: "reasoningContent.redactedContent", is: isRedacted, text: "reasoningContent.redactedContent"},
		{when: "guardContent.text", text: "guardContent.text.text", ignore: "guardContent.text.qualifiers"},
		{when: "cachePoint", is: isNothing},
	},
}
